"""The moving itself: every FIFO that is open, the log it fills, and what happens on trouble.

A FIFO gets a bounded share of each round, so a flood starves nobody. While a log cannot be
written its FIFO is left alone and its worker waits (`block`), or it is emptied and counted
(`drop`); the file is tried again after 0.1 s, then less and less often, up to every 5 s.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat

from uphold.pump.chains import Chain, log_name
from uphold.pump.clocks import monotonic, wall
from uphold.pump.logfiles import LogFile
from uphold.pump.saying import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from uphold.pump.compressing import Compressor
    from uphold.pump.settings import AllSettings
    from uphold.pump.syncing import Syncer

SHARE = 1_048_576
"""The most that one FIFO is served in one round."""
_FIRST_DELAY, _LAST_DELAY = 0.1, 5.0
_FIFO_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_FIONREAD = 0x541B
_USUAL, _WIDE = 65_536, 262_144
"""What a FIFO may hold, and what it may hold during a flood: writer and pump then take turns less
often, which saves a quarter of the cost."""
_MOST_WIDE = 4
"""The kernel lends every user 64 MiB for pipes, and a thousand usual ones need nearly all of it."""


class Channel:
    """One open FIFO and the log it fills."""

    __slots__ = ("delay", "dropped", "fd", "inode", "log", "name", "paused", "retry_at", "wide")

    def __init__(self, name: str, fd: int, inode: int, log: LogFile) -> None:
        self.name = name
        self.fd = fd
        self.inode = inode
        self.log = log
        self.delay = 0.0
        """How long it was waited for the log before the next try; 0 while all is well."""
        self.retry_at = 0.0
        self.dropped = 0
        self.paused = False
        self.wide = False


class Mover:
    """Moves output from FIFOs to logs."""

    def __init__(
        self,
        *,
        run: int,
        logs: int,
        epoll: select.epoll,
        compressor: Compressor,
        syncer: Syncer,
    ) -> None:
        self.channels: dict[int, Channel] = {}
        """By descriptor."""
        self._run = run
        self._logs_folder = logs
        self._epoll = epoll
        self._compressor = compressor
        self._syncer = syncer
        self._names: dict[str, Channel] = {}
        self._logs: dict[str, LogFile] = {}
        self._troubled: dict[int, Channel] = {}
        self._wide = 0
        self._nowhere = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)

    def scan(self, settings: AllSettings) -> bool:
        """Open every FIFO that is not open yet; False if one could not be opened."""
        try:
            names = sorted(os.listdir(self._run))  # noqa: PTH208 - by descriptor, no pathlib
        except OSError as problem:
            say(f"cannot look into run/: {problem.strerror}")
            return False
        all_well = True
        for name in names:
            all_well = self.add(name, settings) and all_well
        return all_well

    def add(self, name: str, settings: AllSettings) -> bool:
        """Open one FIFO if it is one, is ours and is not open; False if that failed just now."""
        log = log_name(name)
        if log is None:
            return True
        try:
            inode = self._fifo_inode(os.stat(name, dir_fd=self._run, follow_symlinks=False))
            known = self._names.get(name)
            if inode is None or (known is not None and known.inode == inode):
                return True
            fd = os.open(name, _FIFO_FLAGS, dir_fd=self._run)
        except FileNotFoundError:
            return True
        except OSError as problem:
            say(f"cannot open run/{name}: {problem.strerror}")
            return False
        inode = self._fifo_inode(os.fstat(fd))
        if inode is None:
            os.close(fd)
            return True
        channel = Channel(name, fd, inode, self._log(log, settings))
        self.channels[fd] = self._names[name] = channel
        self._touch(fd)
        self._epoll.register(fd, select.EPOLLIN)
        return True

    def apply(self, settings: AllSettings) -> None:
        """Let every open log follow these settings from now on."""
        for name, log in self._logs.items():
            log.settings = settings.of(name)
            if log.settings.compress:
                self._compressor.want(log.chain, log.settings.keep, monotonic())
        for channel in self._troubled.values():
            # Whether it waits or drops may have changed.
            channel.retry_at = 0.0

    def serve(self, channel: Channel, at: int, now: float) -> int:
        """Give a FIFO its share of this round; tell how many bytes were moved.

        `at` is the wall time in microseconds, `now` the monotonic time; the round reads both once.
        """
        if channel.delay:
            if channel.retry_at > now:
                return self._discard(channel) if channel.log.settings.overflow == "drop" else 0
            if not self._mark_dropped(channel):
                return 0
        log, rotations = channel.log, channel.log.rotations
        if moved := self._take(channel, at):
            self._syncer.changed(log, now)
            if log.rotations != rotations and log.settings.compress:
                self._compressor.want(log.chain, log.settings.keep, now)
            if channel.delay and channel.retry_at <= now:
                self._note_recovery(channel)
            if moved >= SHARE and not channel.wide and self._wide < _MOST_WIDE:
                self._resize(channel, wide=True)
            elif channel.wide and moved < _USUAL:
                self._resize(channel, wide=False)
        return moved

    def next_due(self) -> float | None:
        """Tell when `retry` has something to do, on the monotonic clock."""
        if not self._troubled:
            return None
        return min(channel.retry_at for channel in self._troubled.values())

    def retry(self, now: float) -> None:
        """Try again to write the logs whose time has come."""
        for channel in [each for each in self._troubled.values() if each.retry_at <= now]:
            del self._troubled[channel.fd]
            if channel.paused:
                self._epoll.register(channel.fd, select.EPOLLIN)
                channel.paused = False
            self.serve(channel, wall(), now)

    def drain(self, limit: float) -> None:
        """Empty every FIFO, within a time limit; what was there when this began is always moved."""
        for channel in list(self.channels.values()):
            waiting = self._waiting(channel)
            channel.retry_at = 0.0
            while waiting > 0 and (moved := self._serve_now(channel)):
                waiting -= moved
        until = monotonic() + limit
        while monotonic() < until:
            # Only where something waits: a full log is not rotated for nothing.
            full = [each for each in self.channels.values() if self._waiting(each)]
            if not sum(self._serve_now(channel) for channel in full):
                break
        for channel in list(self.channels.values()):
            if channel.delay and (left := self._waiting(channel)):
                say(f"{left} bytes stay in run/{channel.name}; its log cannot be written")
            channel.log.close()

    def _take(self, channel: Channel, at: int) -> int:
        try:
            moved = channel.log.take(channel.fd, SHARE, at)
        except BlockingIOError:
            return 0
        except OSError as problem:
            self._note_trouble(channel, problem)
            return 0
        if not moved:
            self._close(channel)
        return moved

    def _resize(self, channel: Channel, *, wide: bool) -> None:
        try:
            fcntl.fcntl(channel.fd, fcntl.F_SETPIPE_SZ, _WIDE if wide else _USUAL)
        except OSError:
            # The user has more pipes than the kernel likes, or it holds too much just now.
            return
        channel.wide = wide
        self._wide += 1 if wide else -1

    def _serve_now(self, channel: Channel) -> int:
        return self.serve(channel, wall(), monotonic())

    def _log(self, name: str, settings: AllSettings) -> LogFile:
        log = self._logs.get(name)
        if log is None:
            log = self._logs[name] = LogFile(Chain(self._logs_folder, name), settings.of(name))
            try:
                # At once, not with the next output: somebody may read the log before that.
                log.settle()
                if log.settings.compress and log.chain.first_plain(log.settings.keep):
                    self._compressor.want(log.chain, log.settings.keep, monotonic())
            except OSError as problem:
                say(f"cannot look after logs/{name}: {problem.strerror}")
        return log

    def _note_recovery(self, channel: Channel) -> None:
        channel.delay = 0.0
        self._troubled.pop(channel.fd, None)
        say(f"logs/{channel.log.chain.name} can be written again")

    def _note_trouble(self, channel: Channel, problem: OSError) -> None:
        log = channel.log
        blocks = log.settings.overflow == "block"
        if not channel.delay:
            what = "its worker waits" if blocks else "its output is dropped"
            say(f"cannot write logs/{log.chain.name}: {problem.strerror}; {what} until I can")
        channel.delay = min(max(channel.delay * 2, _FIRST_DELAY), _LAST_DELAY)
        channel.retry_at = monotonic() + channel.delay
        self._troubled[channel.fd] = channel
        if blocks and not channel.paused:
            # Not merely deaf to input: a hang-up would still be reported, without end.
            self._epoll.unregister(channel.fd)
            channel.paused = True
        elif not blocks:
            channel.dropped += log.give_up_held()

    def _discard(self, channel: Channel) -> int:
        try:
            count = os.splice(channel.fd, self._nowhere, SHARE, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            return 0
        if count == 0:
            self._close(channel)
        channel.dropped += count
        return count

    def _mark_dropped(self, channel: Channel) -> bool:
        """Say in the log what is missing, if anything is; False if that cannot be written."""
        if channel.dropped:
            try:
                channel.log.mark_dropped(channel.dropped, wall())
            except OSError as problem:
                self._note_trouble(channel, problem)
                return False
            channel.dropped = 0
        return True

    def _close(self, channel: Channel) -> None:
        self._mark_dropped(channel)
        if channel.dropped:
            say(f"{channel.dropped} bytes of run/{channel.name} were dropped at its end")
        self._troubled.pop(channel.fd, None)
        del self.channels[channel.fd]
        self._wide -= channel.wide
        if not channel.paused:
            self._epoll.unregister(channel.fd)
        os.close(channel.fd)
        if self._names.get(channel.name) is channel:
            del self._names[channel.name]
        if all(other.log is not channel.log for other in self.channels.values()):
            channel.log.close()
            del self._logs[channel.log.chain.name]

    def _waiting(self, channel: Channel) -> int:
        """Tell how many bytes were written to a FIFO and are not in its log yet."""
        answer = fcntl.ioctl(channel.fd, _FIONREAD, b"\0\0\0\0")
        return int.from_bytes(answer, "little") + channel.log.held

    @staticmethod
    def _touch(fd: int) -> None:
        """Be a writer for a moment: only a reader that has seen one is told of a hang-up.

        Without this a FIFO that nobody holds any more would be kept for ever.
        """
        try:
            os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError:
            return

    @staticmethod
    def _fifo_inode(found: os.stat_result) -> int | None:
        """Tell which FIFO this is; None if it is none, or somebody else's.

        Root keeps FIFOs that belong to the users its workers run as.
        """
        ours = os.geteuid() in {0, found.st_uid} and found.st_nlink == 1
        return found.st_ino if ours and stat.S_ISFIFO(found.st_mode) else None
