"""A stand-in supervisor on a real socket, and a way to run commands against it."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from uphold.cli.main import main
from uphold.host.homes import Home
from uphold.host.locks import HomeLock, Owner

STARTED_AT = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def make_row(name: str = "api", **changes: Any) -> dict[str, Any]:
    row = {
        "name": name.partition(".")[0],
        "slot": name,
        "kind": "process",
        "team": None,
        "admin": "enabled",
        "state": "running",
        "health": "healthy",
        "condition": "running",
        "pid": None,
        "generation": 3,
        "since": "2026-01-01T00:00:00.000Z",
        "uptime": 12.4,
        "restarts": 2,
        "exit": None,
        "last_heartbeat_at": None,
        "last_health_at": None,
        "cpu_percent": None,
        "rss_bytes": None,
        "tools": None,
        "last_error": None,
        "next_attempt_at": None,
        "why": "up since 12 s",
    }
    return row | changes


def make_document(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    supervisor = {
        "id": "5e9a",
        "name": "orion",
        "ownership": "running",
        "status": "active",
        "health": "healthy",
        "pid": 4242,
        "started_at": "2026-01-01T00:00:00.000Z",
        "stopped_at": None,
        "version": 17,
        "last_error": None,
        "home": "/srv/orion",
    }
    return {"schema": 1, "supervisor": supervisor | changes, "workers": list(rows)}


class StandIn:
    """Answers like a supervisor: a canned result, an error, or a function of the parameters."""

    def __init__(self, home: Path, **answers: Any) -> None:
        self.home = home
        self.answers: dict[str, Any] = {"ping": {"pid": os.getpid()}, **answers}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.news: list[dict[str, Any]] = []
        self.hang_up = threading.Event()
        self._listening = socket.socket(socket.AF_UNIX)
        self._open: list[socket.socket] = []
        self._wake, self._woken = os.pipe()
        folder = os.open(home, os.O_PATH)
        self._listening.bind(f"/proc/self/fd/{folder}/control.sock")
        os.close(folder)
        self._listening.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def fails(self, method: str, code: str, exit_code: int, message: str, **more: Any) -> None:
        error = {"code": code, "message": message, "remedy": "Do this.", "exit_code": exit_code}
        self.answers[method] = {"error": error | more}

    def asked(self, method: str) -> dict[str, Any]:
        return [params for name, params in self.requests if name == method][-1]

    def close(self) -> None:
        os.write(self._woken, b"x")
        self._threads[0].join()
        for connection in self._open:
            with connection:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        for thread in self._threads[1:]:
            thread.join()
        self._listening.close()
        os.close(self._wake)
        os.close(self._woken)

    def _accept(self) -> None:
        while True:
            ready, _, _ = select.select([self._listening, self._wake], [], [])
            if self._wake in ready:
                return
            connection, _ = self._listening.accept()
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection.makefile("rwb") as stream:
            try:
                for line in stream:
                    self._answer(stream, json.loads(line))
                    if self.hang_up.is_set():
                        connection.shutdown(socket.SHUT_RDWR)
                        return
            except (OSError, ValueError):
                return

    def _answer(self, stream: Any, request: dict[str, Any]) -> None:
        method, params = request["method"], request["params"]
        self.requests.append((method, params))
        answer = self.answers.get(method)
        if callable(answer):
            answer = answer(params)
        if answer is None:
            return  # silence
        refused = isinstance(answer, dict) and isinstance(answer.get("error"), dict)
        shape = "error" if refused else "result"
        content = answer["error"] if shape == "error" else answer
        stream.write(json.dumps({"id": request["id"], shape: content}).encode() + b"\n")
        if method == "subscribe":
            for event in self.news:
                stream.write(json.dumps({"event": event}).encode() + b"\n")
            self.hang_up.set()
        stream.flush()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which uphold is configured, and the home beside the configuration."""
    monkeypatch.delenv("UPHOLD_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
    (tmp_path / "uphold.toml").write_text('[workers.api]\ncommand = ["sleep", "60"]\n')
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ".uphold"
    place.mkdir(mode=0o700)
    return place


@pytest.fixture
def own(home: Path) -> Iterator[Callable[[], Owner]]:
    """Make this very process the owner of the home."""
    held: list[HomeLock] = []

    def take() -> Owner:
        extra = {"config": str(home.parent / "uphold.toml")}
        owner = Owner.this_process("5e9a", STARTED_AT, extra)
        held.append(HomeLock.take(Home(home), owner))
        return owner

    yield take
    for lock in held:
        lock.release(STARTED_AT)


@pytest.fixture
def supervisor(home: Path, own: Callable[[], Owner]) -> Iterator[StandIn]:
    """A stand-in that owns the home and answers on its socket."""
    own()
    stand_in = StandIn(home)
    yield stand_in
    stand_in.close()


@pytest.fixture
def late_supervisor(home: Path) -> Iterator[Callable[..., threading.Timer]]:
    """A stand-in whose socket appears only after a while."""
    opened: list[StandIn] = []

    def open_socket() -> None:
        opened.append(StandIn(home, why={"schema": 1, "name": "api", "text": "Because."}))

    def begin(*, after: float) -> threading.Timer:
        timer = threading.Timer(after, open_socket)
        timer.start()
        return timer

    yield begin
    for stand_in in opened:
        stand_in.close()


@pytest.fixture
def uphold(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command in this process."""

    def run(*words: str) -> Outcome:
        capsys.readouterr()
        code = main(words)
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def as_somebody_else() -> Iterator[Callable[[Path], None]]:
    """Take from this process the right to use a folder."""
    closed: list[tuple[Path, int]] = []

    def lose(folder: Path) -> None:
        closed.append((folder, folder.stat().st_mode))
        if os.geteuid() == 0:
            os.seteuid(65534)
        else:
            folder.chmod(0)

    yield lose
    if os.getuid() == 0:
        os.seteuid(0)
    for folder, mode in closed:
        folder.chmod(mode)


@pytest.fixture
def row() -> Callable[..., dict[str, Any]]:
    return make_row


@pytest.fixture
def document() -> Callable[..., dict[str, Any]]:
    return make_document


@pytest.fixture
def sleeper() -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Start real processes that do nothing, and end them afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "600"]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a short path, for what has a limit."""
    folder = Path(tempfile.mkdtemp(prefix="uph-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Let a script stand where the supervisor's own program is started."""

    def stand_in(body: str) -> Path:
        path = tmp_path / "stand-in-python"
        path.write_text(f"#!{sys.executable} -I\n{body}")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))
        return path

    return stand_in
