"""Homes as a supervisor makes them, with a real pump, for the tests of both sides of logs."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uphold.pump

PROGRAM = Path(uphold.pump.__file__).with_name("__main__.py")


def eventually(true: Callable[[], Any], within: float = 30.0) -> Any:
    """Poll until something is true; fail after the limit."""
    until = time.monotonic() + within
    while not (result := true()):
        assert time.monotonic() < until, "it did not become true in time"
        time.sleep(0.01)
    return result


class PumpHome:
    """A home directory as a supervisor would make it, and what a supervisor would do in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / "run"
        self.logs = path / "logs"
        for folder in (self.run, self.logs):
            folder.mkdir(parents=True, mode=0o700)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._held: list[int] = []
        self.pump: subprocess.Popen[bytes]

    @property
    def said(self) -> str:
        return (self.path / "pump.out").read_text()

    def configure(self, *, slots: dict[str, Any] | None = None, **default: Any) -> None:
        told = {"default": {"compress": False} | default, "slots": slots or {}}
        (self.run / "logs.json").write_text(json.dumps(told))

    def start(self) -> subprocess.Popen[bytes]:
        with (self.path / "pump.out").open("ab") as out:
            command = [sys.executable, "-I", "-S", str(PROGRAM), str(self.path)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._processes.append(process)
        self.pump = process
        return process

    def started(self) -> subprocess.Popen[bytes]:
        """Start the pump and wait until it listens."""
        (self.run / "pump.sock").unlink(missing_ok=True)
        process = self.start()
        eventually(lambda: self.run.joinpath("pump.sock").exists() or process.poll() is not None)
        return process

    def tell(self, words: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            folder = os.open(self.run, os.O_PATH)
            sender.connect(f"/proc/self/fd/{folder}/pump.sock")
            os.close(folder)
            sender.send(words.encode())

    def fifo(self, name: str) -> int:
        """Make a FIFO and hold it, as the supervisor does."""
        os.mkfifo(self.run / name, 0o600)
        self._held.append(os.open(self.run / name, os.O_RDWR))
        return self._held[-1]

    def let_go(self, fd: int) -> None:
        self._held.remove(fd)
        os.close(fd)

    def worker(self, fifo: int, code: str, *words: object) -> subprocess.Popen[bytes]:
        """Start a real process whose output goes to a FIFO."""
        command = [sys.executable, "-I", "-S", "-c", code, *map(str, words)]
        process = subprocess.Popen(command, stdout=fifo, pass_fds=(fifo,))
        self._processes.append(process)
        return process

    def stop(self) -> int:
        self.pump.send_signal(signal.SIGTERM)
        return self.pump.wait(30)

    def places(self, log: str) -> list[Path]:
        return places(self.logs, log)

    def text(self, log: str) -> bytes:
        return text(self.logs, log)

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for fd in list(self._held):
            self.let_go(fd)


def places(logs: Path, log: str) -> list[Path]:
    """The files of a log, oldest first, found without uphold's code."""
    found = [path for path in logs.glob(f"{log}.[0-9]*") if path.suffix != ".idx"]
    numbers = {int(path.name.split(".log.")[1].split(".")[0]) for path in found}
    paths = []
    for number in sorted(numbers, reverse=True):
        plain = logs / f"{log}.{number}"
        paths.append(plain if plain.exists() else logs / f"{log}.{number}.gz")
    return [*paths, *([logs / log] if (logs / log).exists() else [])]


def text(logs: Path, log: str) -> bytes:
    """Everything a log holds, oldest first."""
    while True:
        try:
            return b"".join(content(path) for path in places(logs, log))
        except FileNotFoundError:
            continue  # rotated between two looks


def content(path: Path) -> bytes:
    """One file of a log, as it was written."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as source:
        return source.read()
