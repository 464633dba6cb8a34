"""What is really there after a crash, seen without uphold: processes by what they were born with.

Nothing here imports uphold. The files of a home are read as the next supervisor would find
them, and never locked or written.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import time
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

PATIENCE = 60.0
"""Seconds after which something counts as hanging, on a slow and busy machine too."""
_SOME_TIME = 5.0
_PIDS = int(Path("/proc/sys/kernel/pid_max").read_text())


class Seen(NamedTuple):
    """One living process of a worker."""

    pid: int
    slot: str
    nonce: str
    main: bool
    """It leads a session, as only the process does that was started for a slot."""
    edit: str
    """What the file said of it when it was started."""

    def __str__(self):
        return f"{self.slot} as {self.pid} ({self.nonce[:8]})"


class Witness:
    """Looks at one home, and at every process that was ever started for it.

    The process that looks is a sub-reaper: whatever a dead supervisor leaves is its child, or
    descends from one.
    """

    def __init__(self, home, *, forgotten=frozenset()):
        self.home = home
        self.codes = {}
        """How children of ours ended that were reaped by the way."""
        self._forgotten = forgotten
        """Slots that the file drops and takes up again, as if they had never been."""
        self._known = set()
        self._marks = []
        self._generations = {}

    def look(self, *, full=False):
        """Find the workers' processes; with `full` every process of the machine is looked at.

        Otherwise only those known before, and those with a number given out of late: numbers
        are given out in turn, so nothing new can have another one.
        """
        since = self._given_out()
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        if not full and since is not None:
            width = (_last_given_out() - since) % _PIDS
            numbers = [n for n in numbers if n in self._known or 0 < (n - since) % _PIDS <= width]
        seen, unborn = [], set()
        for number in numbers:
            found = self._examine(number)
            if isinstance(found, Seen):
                seen.append(found)
            elif found:
                unborn.add(number)
        self._known = {each.pid for each in seen} | unborn
        return seen, unborn

    def _given_out(self):
        """Tell which number was given out some time before the last look; None at first.

        Some time: a number is given out well before there is a process to be seen by it.
        """
        now = time.monotonic()
        self._marks.append((now, _last_given_out()))
        while len(self._marks) > 2 and self._marks[1][0] < now - _SOME_TIME:
            del self._marks[0]
        return self._marks[0][1] if len(self._marks) > 1 else None

    def after_a_kill(self, *, full=False):
        """Look when no supervisor lives, as soon as whatever it had begun to start shows itself.

        Between fork and exec a process has no environment of its own yet.
        """
        limit = time.monotonic() + PATIENCE
        while True:
            self.reap()
            seen, unborn = self.look(full=full)
            if not unborn:
                return seen
            assert time.monotonic() < limit, f"{sorted(unborn)} belong to no worker"

    def reap(self):
        """Let go of dead children; True if living ones are left."""
        with suppress(ChildProcessError):
            while True:
                number, status = os.waitpid(-1, os.WNOHANG)
                if not number:
                    return True
                self.codes[number] = os.waitstatus_to_exitcode(status)
        return False

    def strike(self, victim):
        """Kill a process if it still is the one that was seen."""
        with suppress(OSError):
            handle = os.pidfd_open(victim.pid)
            try:
                found = self._examine(victim.pid)
                if isinstance(found, Seen) and found.nonce == victim.nonce:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    return True
            finally:
                os.close(handle)
        return False

    def doubles(self, seen):
        """Say which slots have two instances."""
        for slot in sorted({each.slot for each in seen}):
            of_it = [each for each in seen if each.slot == slot]
            mains = [each for each in of_it if each.main]
            if len(mains) > 1 or len({each.nonce for each in of_it}) > 1:
                yield f"{slot} lives twice: {', '.join(map(str, of_it))}"

    def unknown(self, seen):
        """Say which processes are not in the slot's own file, or not in the journal."""
        files, rows = self.records(), self._rows()
        for each in seen:
            if files.get(each.slot, ("", 0))[0] != each.nonce:
                yield f"{each} is not in its slot's file: {files.get(each.slot)}"
            if rows.get(each.slot, ("", 0))[0] != each.nonce:
                yield f"{each} is not in the journal: {rows.get(each.slot)}"
        for slot, (_, generation) in rows.items():
            if generation < self._generations.get(slot, 0) and slot not in self._forgotten:
                yield f"the generation of {slot} fell to {generation}"
            self._generations[slot] = generation

    def records(self):
        """Read nonce and generation of the last intent of each slot, from the slots' own files."""
        found = {}
        for path in Path(self.home, "slots").glob("*.lock"):
            words = _read(path).decode().split()
            if len(words) == 6:
                found[path.name.removesuffix(".lock")] = (words[1], int(words[0]))
        return found

    def unreadable(self, *, thorough=False):
        """Say what of the state on disk cannot be used."""
        yield from self._lock()
        for name in ("runtime.json", "runtime.json.prev"):
            yield from self._mirror(name)
        if thorough:
            yield from self._journal()

    def _examine(self, number):
        """Give a worker's process, True for a child of ours that is no worker, or None."""
        with suppress(OSError):
            born_with = _read(f"/proc/{number}/environ")
            stat = _read(f"/proc/{number}/stat").rpartition(b")")[2].split()
            if stat[0] in b"ZX":
                return None
            if b"UPHOLD_NONCE=" not in born_with:
                return int(stat[1]) == os.getpid() or None
            words = dict(each.partition("=")[::2] for each in born_with.decode().split("\0"))
            # The pump is no worker of the file, so it has no mark from there.
            home = str(self.home)
            if words.get("CRASH_HOME") == home or home.encode() in _read(f"/proc/{number}/cmdline"):
                return Seen(
                    pid=number,
                    slot=words["UPHOLD_SLOT"],
                    nonce=words["UPHOLD_NONCE"],
                    main=int(stat[3]) == number,
                    edit=words.get("CRASH_EDIT", ""),
                )
        return None

    def _lock(self):
        with suppress(FileNotFoundError):
            content = Path(self.home, "lock").read_bytes()
            if not content:
                return
            try:
                record = json.loads(content)
            except ValueError as problem:
                yield f"the lock file is torn: {problem}"
                return
            check = record.pop("check")
            if check != zlib.crc32(json.dumps(record).encode()):
                yield "the lock file has a wrong checksum"

    def _mirror(self, name):
        with suppress(FileNotFoundError):
            try:
                state = json.loads(Path(self.home, name).read_bytes())
            except ValueError as problem:
                yield f"{name} is torn: {problem}"
                return
            check = state.pop("checksum")
            canonical = json.dumps(state, sort_keys=True, separators=(",", ":"))
            if check != hashlib.sha256(canonical.encode()).hexdigest():
                yield f"{name} has a wrong checksum"

    def _rows(self):
        """Read nonce and generation of each slot from the journal."""
        found = self._ask("SELECT slot, nonce, generation FROM slots_t")
        return {slot: (nonce, generation) for slot, nonce, generation in found}

    def _journal(self):
        for (verdict,) in self._ask("PRAGMA quick_check"):
            if verdict != "ok":
                yield f"the journal is damaged: {verdict}"
        for first, last, count in self._ask("SELECT min(seq), max(seq), count(*) FROM events_t"):
            if count and last - first + 1 != count:
                yield f"events {first} to {last} are only {count}"
        for path in Path(self.home).glob("journal.db.corrupt-*"):
            itself = path.with_name(path.name.removesuffix("-journal"))
            # An empty one was about to be made, whatever its first transaction had noted.
            if path.stat().st_size and not (itself.exists() and not itself.stat().st_size):
                yield f"{path.name} was set aside as damaged"

    def _ask(self, question):
        path = Path(self.home, "journal.db")
        if not path.exists():
            return []
        try:
            opened = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE)
            with closing(opened) as reader:
                return reader.execute(question).fetchall()
        except sqlite3.Error as problem:
            if "no such table" in str(problem):  # it was about to be made
                return []
            raise AssertionError(f"the journal cannot be read: {problem}") from None


def children(parents):
    """Find the living children of some processes, each with its parent."""
    found = []
    for number in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            stat = _read(f"/proc/{number}/stat").rpartition(b")")[2].split()
            if stat[0] not in b"ZX" and int(stat[1]) in parents:
                found.append((number, int(stat[1])))
    return found


def describe(number):
    """Say what a process is, for a sentence."""
    with suppress(OSError):
        words = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return f"{number} ({words.strip() or 'a zombie'})"
    return f"{number} (gone)"


def _last_given_out():
    return int(_read("/proc/loadavg").split()[4])


def _read(path):
    """Read a file of the kernel; by hand, since it is done a hundred times in each round."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
