"""Private MariaDB and PostgreSQL servers for tests: free ports, temporary folders, no service.

A `Server` can be killed, frozen and started again on the same data, as often as a test likes.
`fresh()` gives the address of a new, empty database in it. The programs come from Debian's
packages (tools/provide.sh); where they are missing, tests that need them are skipped and say so.
"""

from __future__ import annotations

import glob
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from uphold.testing.waiting import until

_PASSWORD = "canary-Pa55-of-the-database"
"""In every address; tests look for it in all outputs."""
_SMALL = ("--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M")
"""For MariaDB's first start as well: else it begins with a hundred megabytes."""


def _program(name: str) -> str | None:
    folders = ["/usr/sbin", "/sbin", *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


def _real(name: str) -> str | None:
    """Find a server's own program; a wrapper in the PATH may do something else."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)
    return found[0] if found else _program(name)


def _stands_still(pid: int) -> bool:
    """Tell whether each thread has stopped: the signal takes a moment to reach them all."""
    try:
        stats = [
            Path(f"/proc/{pid}/task/{task}/stat").read_text()
            for task in os.listdir(f"/proc/{pid}/task")
        ]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(stat.rpartition(")")[2].split()[0] in "TtZX" for stat in stats)


def _install(folder: Path, *command: str, **account) -> None:
    """Make a server's first files, at the second try if need be: a busy machine failed one once.

    Where it fails for good, all that was said is told, and how full the disk is.
    """
    said = []
    for _ in range(2):
        shutil.rmtree(folder / "data", ignore_errors=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False, **account)
        if done.returncode == 0:
            return
        said.append(f"{done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    room = shutil.disk_usage(folder).free >> 20
    raise AssertionError(f"{command[0]} failed twice, with {room} MiB free: {' / '.join(said)}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One database server that belongs to the test alone."""

    kind: str
    scheme: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen | None = None

    def url(self, database: str, *, user: str = "uphold", password: str = _PASSWORD) -> str:
        return f"{self.scheme}://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        assert self.process is None
        log = (self.folder / "server.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.account()
            )
        until(self._answers, within=60, what=self.kind)

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            text = (self.folder / "server.log").read_text(errors="replace")[-2000:]
            raise AssertionError(f"{self.kind} ended with {self.process.returncode}: {text}")
        return self.greets()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, number: int | None = None) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number or self.gentle)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    @contextmanager
    def frozen(self):
        """Let it accept and never answer."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: _stands_still(self.process.pid), within=30, what="a frozen server")
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def fresh(self) -> str:
        """Make an empty database; give its address."""
        name = f"test_{secrets.token_hex(4)}"
        self.make(name)
        return self.url(name)

    # What differs between the two.
    gentle = signal.SIGTERM
    abrupt = signal.SIGKILL

    def set_up(self) -> None:
        """Start it for the first time, and make the user of `url`."""
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def account(self) -> dict:
        return {}

    def greets(self) -> bool:
        raise NotImplementedError

    def make(self, database: str) -> None:
        raise NotImplementedError

    def run(self, statement: str, database: str | None = None) -> list[tuple]:
        """Run a statement as the server's administrator; give its rows."""
        raise NotImplementedError


class MariaDB(Server):
    kind, scheme = "MariaDB", "mysql"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        installer = _program("mariadb-install-db")
        if installer is None or _program("mariadbd") is None:
            pytest.skip("MariaDB is not installed (as root: tools/provide.sh)")
        _install(
            folder,
            *(installer, "--no-defaults", f"--datadir={folder}/data", *_SMALL),
            *("--auth-root-authentication-method=normal", "--skip-test-db", *self._as_root()),
        )

    def set_up(self):
        self.start()
        self.run(f"CREATE USER 'uphold'@'127.0.0.1' IDENTIFIED BY '{_PASSWORD}'")
        self.run("GRANT ALL PRIVILEGES ON *.* TO 'uphold'@'127.0.0.1' WITH GRANT OPTION")

    def command(self):
        return [
            *(_program("mariadbd"), "--no-defaults", f"--datadir={self.folder}/data"),
            *(f"--socket={self.folder}/s", f"--port={self.port}", "--bind-address=127.0.0.1"),
            *("--skip-name-resolve", "--performance-schema=OFF", *_SMALL, *self._as_root()),
        ]

    def _as_root(self):
        return ["--user=root"] if os.geteuid() == 0 else []

    def greets(self):
        # It hangs on a TERM sent right after it accepts: its first bytes are waited for.
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                probe.settimeout(5)
                return bool(probe.recv(4))
        except OSError:
            return False

    def make(self, database):
        self.run(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")

    def run(self, statement, database=None):
        import pymysql

        with pymysql.connect(
            unix_socket=f"{self.folder}/s", user="root", database=database, autocommit=True
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall())


class PostgreSQL(Server):
    kind, scheme = "PostgreSQL", "postgresql"
    gentle = signal.SIGINT  # its "fast" shutdown: sessions are ended, not waited for
    abrupt = signal.SIGQUIT  # nothing is written any more, but shared memory is given back

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if _real("initdb") is None or _real("postgres") is None:
            pytest.skip("PostgreSQL is not installed (as root: tools/provide.sh)")
        if os.geteuid() == 0:  # it refuses to run as root
            try:
                account = pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("there is no user postgres to run PostgreSQL as")
            os.chown(folder, account.pw_uid, account.pw_gid)
        _install(
            folder,
            *(_real("initdb"), "-D", f"{folder}/data", "-U", "root", "-A", "trust"),
            *("-E", "UTF8", "--locale=C", "--no-sync"),
            **self.account(),
        )
        hba = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        (folder / "data/pg_hba.conf").write_text(hba)

    def set_up(self):
        self.start()
        self.run(f"CREATE ROLE uphold LOGIN SUPERUSER PASSWORD '{_PASSWORD}'")

    def account(self):
        if os.geteuid() != 0:
            return {}
        account = pwd.getpwnam("postgres")
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}

    def command(self):
        return [
            *(_real("postgres"), "-D", f"{self.folder}/data", "-p", str(self.port)),
            *("-k", str(self.folder), "-c", "listen_addresses=127.0.0.1"),
            *("-c", "shared_buffers=8MB", "-c", "max_connections=30"),
            # What is written survives a kill without reaching the disk; reading all of it again
            # after one would take longer the more databases there are.
            *("-c", "fsync=off", "-c", "max_wal_size=64MB"),
        ]

    def greets(self):
        import psycopg

        try:
            self._connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def make(self, database):
        self.run(f'CREATE DATABASE "{database}"')

    def run(self, statement, database=None):
        with self._connect(database or "postgres") as connection:
            cursor = connection.execute(statement)
            return [] if cursor.description is None else cursor.fetchall()

    def _connect(self, database):
        import psycopg

        return psycopg.connect(
            host=str(self.folder),
            port=self.port,
            user="root",
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def kill(self):
        """End all of it: its children would keep the data folder for a moment."""
        _send([self.process.pid], signal.SIGSTOP)  # or it would beget new ones meanwhile
        children = self._children()
        _send(children, signal.SIGKILL)
        super().kill()
        until(lambda: all(map(_is_gone, children)), within=60, what="the end of its children")

    @contextmanager
    def frozen(self):
        """Freeze the one who accepts and those who serve."""
        everyone = [self.process.pid]
        try:
            # First the one who begets others; one who is just ending may be gone at any moment.
            _send(everyone, signal.SIGSTOP)
            everyone += self._children()
            _send(everyone[1:], signal.SIGSTOP)
            until(lambda: all(map(_stands_still, everyone)), within=30, what="a frozen server")
            yield
        finally:
            _send(everyone, signal.SIGCONT)

    def _children(self) -> list[int]:
        parent = str(self.process.pid)
        found = subprocess.run(["pgrep", "-P", parent], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextmanager
def running(kind: type[Server]):
    """Start a server of this kind for as long as it is needed."""
    # Not below pytest's own folder: PostgreSQL's user must be able to come there, and the path
    # of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="uphold-db-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = kind(folder)
        try:
            server.set_up()
            yield server
        finally:
            server.stop(server.abrupt)  # its data go with it: an orderly end takes long
