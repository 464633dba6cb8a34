"""A folder with a worker's code, hosted by the real runner, heard by a socket of ours."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEADLINE = 60.0


class Nursery:
    """Hosts workers written for one test, and keeps what they say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        """Every line of every message, in order."""
        self._heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # The folder of a test may be too deep for the name of a socket.
        self._address = f"@uphold-test-{os.getpid()}-{id(self)}"
        self._socket.bind("\0" + self._address[1:])
        self._born: list[subprocess.Popen[str]] = []
        self._marks = 0
        # All the time: the kernel keeps only ten messages for those who do not listen.
        self._ear = threading.Thread(target=self._listen, daemon=True)
        self._ear.start()

    def write(self, text: str, name: str = "app.py") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def host(self, target: str = "app:Job", **environment: str) -> subprocess.Popen[str]:
        return self.start("-m", "uphold.runner", target, **environment)

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("UPHOLD", "NOTIFY"))}
        child = subprocess.Popen(
            [sys.executable, "-P", *words],
            cwd=self.folder,
            env={**inherited, "NOTIFY_SOCKET": self._address, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._born.append(child)
        return child

    def end(self, child: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Wait for its end; give its exit code and what it printed."""
        out, err = child.communicate(timeout=DEADLINE)
        self.hear()
        return child.returncode, out, err

    def stop(self, child: subprocess.Popen[str]) -> tuple[int, str, str]:
        child.send_signal(signal.SIGTERM)
        return self.end(child)

    def hear(self) -> None:
        """See that what has been said until now is in `said`: it comes before a mark of ours."""
        self._marks += 1
        mark = f"MARK={self._marks}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mouth:
            mouth.sendto(mark.encode(), "\0" + self._address[1:])
        deadline = time.monotonic() + DEADLINE
        while mark not in self._heard:
            assert time.monotonic() < deadline, "the ear is deaf"
            time.sleep(0.01)
        self.said = [line for line in self._heard if not line.startswith("MARK=")]

    def _listen(self) -> None:
        while (data := self._socket.recv(1 << 20)) != b"END":
            self._heard += data.decode().split("\n")

    def until(self, check: Callable[[], Any], what: str = "") -> Any:
        deadline = time.monotonic() + DEADLINE
        while True:
            self.hear()
            found = check()
            if found:
                return found
            assert time.monotonic() < deadline, f"{what or check}; said: {self.said}"

    def until_said(self, line: str) -> None:
        self.until(lambda: line in self.said, line)

    @property
    def beats(self) -> list[dict[str, Any]]:
        return [json.loads(line[12:]) for line in self.said if line.startswith("UPHOLD_BEAT=")]

    @property
    def errors(self) -> list[dict[str, str]]:
        return [json.loads(line[13:]) for line in self.said if line.startswith("UPHOLD_ERROR=")]

    def close(self) -> None:
        for child in self._born:
            if child.poll() is None:
                child.kill()
            child.communicate()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mouth:
            mouth.sendto(b"END", "\0" + self._address[1:])
        self._ear.join()
        self._socket.close()
