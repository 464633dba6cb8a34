"""A place with a configuration and a home, driven by the real command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CANARY = "canary-5f1d0c77-do-not-show"
"""A secret every site has in its configuration; no output may ever show it (T24)."""


def eventually(check, seconds=60.0, what=""):
    """Poll until `check` gives something true; its last answer otherwise fails the test."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or check}"
        time.sleep(0.02)


class Answer:
    """What a command printed and exited with."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Site:
    """One folder with uphold.toml in it; leaves no process behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".uphold"
        self.config = folder / "uphold.toml"
        self.outputs: list[str] = []
        self.python: str | Path = sys.executable
        """Whose uphold is run; a proof of upgrades has more than one."""
        (folder / ".env").write_text(f"SITE_SECRET={CANARY}\n")

    def write(self, text: str) -> None:
        """Replace the configuration, as an editor does."""
        temp = self.folder / "uphold.toml.new"
        temp.write_text(text)
        temp.rename(self.config)

    def workers(self, **commands: str | dict) -> None:
        """Declare workers by shell command, or by a table of keys."""
        lines = ["[supervisor]", 'name = "site"', "[defaults]"]
        lines.append('environment = { SITE_TOKEN = "${SITE_SECRET}" }')
        for name, terms in commands.items():
            keys = {"command": terms, "shell": True} if isinstance(terms, str) else terms
            lines.append(f"[workers.{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in keys.items()]
        self.write("\n".join(lines) + "\n")

    def run(self, *words: str, timeout: float = 100.0, env: dict | None = None) -> Answer:
        done = subprocess.run(
            [self.python, "-m", "uphold", "-c", str(self.config), *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "NO_COLOR": "1", **(env or {})},
        )
        self.outputs += [done.stdout, done.stderr]
        return Answer(done)

    def ok(self, *words: str, timeout: float = 100.0) -> Answer:
        answer = self.run(*words, timeout=timeout)
        assert answer.code == 0, f"uphold {' '.join(words)}: {answer}"
        return answer

    def status(self) -> dict:
        return self.run("status", "--json").json

    def worker(self, slot: str) -> dict:
        return {row["slot"]: row for row in self.status()["workers"]}[slot]

    def until(self, slot: str, seconds: float = 60.0, **wanted) -> dict:
        """Wait until a worker's row has these values."""

        def look():
            row = self.worker(slot)
            return row if all(row[key] == value for key, value in wanted.items()) else None

        return eventually(look, seconds, f"{slot} with {wanted}")

    @property
    def pid(self) -> int:
        return json.loads((self.home / "lock").read_text())["pid"]

    def kill_supervisor(self) -> int:
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: is_gone(pid), what=f"supervisor {pid} gone")
        return pid

    def processes(self) -> list[int]:
        """Every live process of this home, found by its environment, without uphold's code."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                environ = Path(f"/proc/{entry}/environ").read_bytes()
                cmdline = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            ours = b"UPHOLD_NONCE=" in environ and _cwd(entry) == str(self.folder)
            if ours or str(self.home).encode() in cmdline:
                found.append(int(entry))
        return found

    def log(self, slot: str) -> str:
        path = self.home / "logs" / f"{slot}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Stop, and see that nothing shows the secret and nothing is left."""
        if self.home.exists():
            self.run("stop", "--timeout", "20")
            self._force()
        self.assert_no_canary()

    def _force(self) -> None:
        for pid in self.processes():
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)

    def assert_no_canary(self) -> None:
        for text in self.outputs:
            assert CANARY not in text
        for name in ("runtime.json", "lock", "logs/supervisor.log", "logs/runtime.log"):
            path = self.home / name
            if path.exists():
                assert CANARY not in path.read_text(errors="replace"), name


def _cwd(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended (a zombie has, once its last thread has)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX" and len(threads) <= 1


def _toml(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value)
