"""The pump's loop: waits for output, words from the supervisor, signals and its own timers.

Words come as datagrams to `run/pump.sock`, separated by newlines: `add NAME` (a FIFO in `run/`),
`scan`, `settings`, `owner PID`. A lost one is mended by the next `scan`. With nothing to do the
loop sleeps without a limit; it ends on SIGTERM, or when the supervisor is gone and every FIFO
has been hung up and emptied.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # it has no stubs
import _socket
import os
import resource
import select
import time

from uphold.pump import owners
from uphold.pump.clocks import monotonic, wall
from uphold.pump.compressing import Compressor
from uphold.pump.moving import Mover
from uphold.pump.saying import say
from uphold.pump.settings import SETTINGS_NAME, AllSettings, read_settings
from uphold.pump.syncing import Syncer

SOCKET_NAME = "pump.sock"
_LONGEST_WORDS = 65536
_DRAIN_LIMIT = 1.0
_RESCAN_AFTER = 5.0
_NAP = 0.04
"""After a round in which little came the pump rests so long; what comes meanwhile is one round."""
_ROUND = 256
"""So many are served in one round; when more may wait there is no rest."""
_BUSY, _BUSY_FOR = 16384, 0.25
"""Where one FIFO gave so much at once there is no rest for so long: nobody is slowed by it."""


def run(home: str) -> int:
    """Run the pump of a home; returns the exit code."""
    os.umask(0o077)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        pump = Pump(home)
    except OSError as problem:
        say(f"cannot start in {home}: {problem.strerror} ({problem.filename}). Is it a home?")
        return 1
    pump.loop()
    return 0


class Pump:
    """Everything the loop turns around."""

    def __init__(self, home: str) -> None:
        self._stopping = False
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        _signal.signal(_signal.SIGTERM, self._stop)
        _signal.signal(_signal.SIGINT, self._stop)
        _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._run = open_folder("run", folder)
        self._epoll = select.epoll()
        self._epoll.register(self._bell, select.EPOLLIN)
        self._compressor = Compressor(ring=self._ring)
        self._syncer = Syncer(ring=self._ring)
        self._mover = Mover(
            run=self._run,
            logs=open_folder("logs", folder),
            epoll=self._epoll,
            compressor=self._compressor,
            syncer=self._syncer,
        )
        # The door opens before the first look around, so nothing can be missed in between.
        self._door = open_door(self._run)
        self._epoll.register(self._door.fileno(), select.EPOLLIN)
        self._owner: int | None = None
        self._follow(owners.find_owner(folder))
        os.close(folder)
        self._settings = self._read_settings()
        self._rescan_at: float | None = None
        self._scan()

    def loop(self) -> None:
        """Go on until told to stop, or until nobody is left who could need us."""
        mover, busy_until = self._mover, 0.0
        while not self._stopping and (self._owner is not None or mover.channels):
            ready = self._epoll.poll(self._patience(), _ROUND)
            at, now, largest = wall(), monotonic(), 0
            for fd, _ in ready:
                channel = mover.channels.get(fd)
                if channel is None:
                    self._hear(fd)
                else:
                    largest = max(largest, mover.serve(channel, at, now))
            if largest >= _BUSY:
                busy_until = now + _BUSY_FOR
            elif largest and now > busy_until and len(ready) < _ROUND:
                time.sleep(_NAP)
            self._keep_time(now)
        mover.drain(_DRAIN_LIMIT)

    def _patience(self) -> float | None:
        """Tell how long the loop may sleep: until the next timer, without one for ever."""
        timers = (
            self._mover.next_due(),
            self._compressor.next_due(),
            self._syncer.next_due(),
            self._rescan_at,
        )
        due = [timer for timer in timers if timer is not None]
        return max(0.0, min(due) - monotonic()) if due else None

    def _keep_time(self, now: float) -> None:
        self._mover.retry(now)
        self._compressor.work(now)
        self._syncer.work(now)
        if self._rescan_at is not None and self._rescan_at <= now:
            self._scan()

    def _hear(self, fd: int) -> None:
        if fd == self._bell:
            os.eventfd_read(fd)
            self._compressor.finish(monotonic())
        elif fd == self._door.fileno():
            self._obey()
        elif fd == self._owner:
            say("the supervisor is gone; output goes on being kept")
            self._follow(None)

    def _obey(self) -> None:
        try:
            words = self._door.recv(_LONGEST_WORDS)
        except OSError:
            return
        for line in words.decode(errors="replace").splitlines():
            verb, _, about = line.strip().partition(" ")
            if verb == "add":
                self._opened(self._mover.add(about, self._settings))
            elif verb == "owner" and about.isdecimal():
                self._follow(owners.watch(int(about)))
            elif verb == "settings":
                self._settings = self._read_settings()
                self._mover.apply(self._settings)
            elif verb == "scan":
                self._scan()
        if len(words) == _LONGEST_WORDS:
            # It was cut; what the rest said is found by looking.
            self._scan()

    def _scan(self) -> None:
        self._rescan_at = None
        self._opened(self._mover.scan(self._settings))

    def _opened(self, all_well: bool) -> None:  # noqa: FBT001 - the answer of add and scan
        if not all_well:
            self._rescan_at = monotonic() + _RESCAN_AFTER

    def _follow(self, owner: int | None) -> None:
        if self._owner is not None:
            self._epoll.unregister(self._owner)
            os.close(self._owner)
        self._owner = owner
        if owner is not None:
            self._epoll.register(owner, select.EPOLLIN)

    def _read_settings(self) -> AllSettings:
        settings = read_settings(self._run)
        if settings.problems:
            told = "; ".join(settings.problems[:5])
            say(f"run/{SETTINGS_NAME} is wrong, defaults are used where needed: {told}")
        return settings

    def _ring(self) -> None:
        os.eventfd_write(self._bell, 1)

    def _stop(self, _signal_number: int, _frame: object) -> None:
        self._stopping = True
        self._ring()


def open_folder(name: str, home: int) -> int:
    """Open a folder of the home that nobody else can write to."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(name, flags, dir_fd=home)
    found = os.fstat(folder)
    if found.st_uid not in {os.geteuid(), 0} or found.st_mode & 0o022:
        os.close(folder)
        raise PermissionError(1, "others may write to this folder", name)
    return folder


def open_door(run: int) -> _socket.socket:
    """Bind the socket for the supervisor's words, private from its first moment."""
    door = _socket.socket(
        _socket.AF_UNIX, _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC, 0
    )
    os.fchmod(door.fileno(), 0o600)
    try:  # noqa: SIM105 - contextlib is not worth its memory here
        os.unlink(SOCKET_NAME, dir_fd=run)
    except FileNotFoundError:
        pass
    # Through the descriptor: a socket's address has room for about a hundred characters only.
    door.bind(f"/proc/self/fd/{run}/{SOCKET_NAME}")
    return door
