"""Those that are measured: each supervises the same commands in a folder of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import xmlrpc.client
from pathlib import Path
from typing import ClassVar, Protocol

from benching.processes import DEADLINE, cmdline, run, wait_for_end

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
KEPT = 3
MAX_SIZE = 50_000_000
"""How the flood is rotated: alike for everybody, and never compressed."""


class Contender(Protocol):
    """What the measurements need from each."""

    name: ClassVar[str]

    def __init__(self, folder: Path, commands: list[str]) -> None: ...
    def start(self) -> None:
        """Start, and come back when it says itself that everything runs."""

    def stop(self) -> None:
        """End everything, and come back when it is over."""

    def own(self) -> list[int]:
        """Name the supervisor's own processes."""

    def status(self) -> None:
        """Ask as people ask, through the command line."""

    def ask(self) -> None:
        """Ask as programs ask, through the socket."""

    def reload(self, commands: list[str]) -> None:
        """Have other commands kept running from now on."""


class Uphold:
    """uphold as it was installed beside this interpreter."""

    name = "uphold"

    def __init__(self, folder: Path, commands: list[str]) -> None:
        self.folder = folder
        self._file = folder / "uphold.toml"
        self._connection: socket.socket | None = None
        self._write(commands)

    def start(self) -> None:
        """Give the command; it waits by itself."""
        self._run("start")

    def stop(self) -> None:
        """Give the command; it waits by itself."""
        if self._connection is not None:
            self._connection.close()
        self._run("stop")

    def own(self) -> list[int]:
        """Find the supervisor in its lock, and the pump by its command line."""
        supervisor = json.loads((self.folder / ".uphold/lock").read_text())["pid"]
        home = f"{self.folder}/.uphold".encode()
        pumps = [
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if home in (words := cmdline(pid).split(b"\0"))
            and any(b"pump" in word for word in words)
        ]
        return [supervisor, *pumps]

    def status(self) -> None:
        """Run `uphold status`."""
        self._run("status")

    def ask(self) -> None:
        """Send the request of `status` and read the answer, on a connection that stays."""
        if self._connection is None:
            self._connection = socket.socket(socket.AF_UNIX)
            self._connection.connect(str(self.folder / ".uphold/control.sock"))
        self._connection.sendall(b'{"id":1,"method":"status","params":{}}\n')
        while not self._connection.recv(1 << 20).endswith(b"\n"):
            pass

    def reload(self, commands: list[str]) -> None:
        """Write the file and give the command."""
        self._write(commands)
        self._run("reload")

    def _write(self, commands: list[str]) -> None:
        defaults = f"[defaults.logs]\nmax_size = {MAX_SIZE}\nkeep = {KEPT}\ncompress = false\n"
        self._file.write_text(
            defaults
            + "".join(
                f"[workers.w{at}]\ncommand = {json.dumps(each)}\n"
                for at, each in enumerate(commands)
            )
        )

    def _run(self, verb: str) -> None:
        run([str(BIN / "uphold"), "-c", str(self._file), verb])


class Supervisord:
    """supervisord from PyPI, with limits that let it hold thousands."""

    name = "supervisord"

    def __init__(self, folder: Path, commands: list[str]) -> None:
        self.folder = folder
        self._file = folder / "supervisord.conf"
        self._log = folder / "supervisord.log"
        self._size = len(commands)
        self._write(commands)

    @staticmethod
    def program(name: str) -> Path:
        """Find one of its programs: beside this interpreter, else where `make bench` puts it."""
        beside = BIN / name
        return beside if beside.exists() else HERE.parents[1] / ".venv-bench/bin" / name

    def start(self) -> None:
        """Start the daemon and ask it until it calls everything running."""
        self._popen = subprocess.Popen(
            [str(self.program("supervisord")), "-n", "-c", str(self._file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # Its log is read rather than its socket asked: that would cost it time and memory.
        end = time.perf_counter() + DEADLINE
        while self._called_running() < self._size:
            if time.perf_counter() > end:
                raise TimeoutError("supervisord did not start everything")
            time.sleep(0.005)

    def stop(self) -> None:
        """Tell it to end, by the quickest way there is, and wait for it."""
        self._popen.send_signal(signal.SIGTERM)
        wait_for_end(self._popen)

    def own(self) -> list[int]:
        """Name the one process it is."""
        return [self._popen.pid]

    def status(self) -> None:
        """Run `supervisorctl status`."""
        self._control("status")

    def ask(self) -> None:
        """Ask over XML-RPC."""
        self._proxy().supervisor.getAllProcessInfo()

    def reload(self, commands: list[str]) -> None:
        """Write the file and run `supervisorctl update`."""
        self._write(commands)
        self._control("update")

    def _called_running(self) -> int:
        return self._log.read_bytes().count(b"entered RUNNING state") if self._log.exists() else 0

    def _proxy(self) -> xmlrpc.client.ServerProxy:
        return xmlrpc.client.ServerProxy(
            "http://local/RPC2", transport=_LocalTransport(self.folder / "s.sock")
        )

    def _control(self, verb: str) -> None:
        run([str(self.program("supervisorctl")), "-c", str(self._file), verb])

    def _write(self, commands: list[str]) -> None:
        at = self.folder
        (at / "logs").mkdir(exist_ok=True)
        self._file.write_text(
            f"[supervisord]\nminfds={len(commands) * 4 + 1000}\nminprocs=200\n"
            f"logfile={self._log}\nlogfile_maxbytes=0\npidfile={at}/pid\nchildlogdir={at}/logs\n"
            f"[unix_http_server]\nfile={at}/s.sock\n"
            "[rpcinterface:supervisor]\n"
            "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
            f"[supervisorctl]\nserverurl=unix://{at}/s.sock\n"
            + "".join(
                f"[program:w{number}]\ncommand={each}\nstartsecs=0\nautorestart=true\nredirect_stderr=true\n"
                f"stdout_logfile_maxbytes={MAX_SIZE}\nstdout_logfile_backups={KEPT}\n"
                for number, each in enumerate(commands)
            )
        )


class Floor:
    """Bare `posix_spawn` and pidfds in Python (`floor.py`)."""

    name = "floor"

    def __init__(self, folder: Path, commands: list[str]) -> None:
        self.folder = folder
        self._commands = commands

    def start(self) -> None:
        """Start it and wait for its sign."""
        reading, writing = os.pipe()
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HERE / "floor.py"), str(writing), *self._commands],
            pass_fds=[writing],
        )
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)

    def stop(self) -> None:
        """Tell it to end and wait for it."""
        self._popen.terminate()
        wait_for_end(self._popen)

    def own(self) -> list[int]:
        """Name the one process it is."""
        return [self._popen.pid]

    def status(self) -> None:
        """Start an interpreter that does nothing: no command line in Python is quicker."""
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)

    def ask(self) -> None:
        """Nothing can be asked."""

    def reload(self, commands: list[str]) -> None:
        """Nothing can be changed."""


class _LocalTransport(xmlrpc.client.Transport):
    """XML-RPC over a socket in the file system."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, _host: object) -> http.client.HTTPConnection:
        """Connect to the path instead of a host."""
        connection = http.client.HTTPConnection("local")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self._path))
        return connection
