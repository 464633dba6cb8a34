"""One control group for each slot that asks for it: the kernel keeps its processes together.

Whatever is born in a group stays in it, is counted there, and ends with it; the kernel tells
when it is empty. Groups lie below our own in `uphold-<home>/<slot>.slot`, so that the next
supervisor of the home finds them. See decision 0013.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from uphold.errors import HostFailure
from uphold.host.processes.caps import (
    LIMITS,
    UNKEPT,
    caps_memory,
    controllers_of,
    is_firm,
    lift_others,
    oom_kills,
    write_cap,
    write_word,
)
from uphold.host.processes.hierarchies import Hierarchies, find_hierarchies, place_all
from uphold.host.proctable import read_proc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.core.specs import WorkerSpec
    from uphold.host.homes import Home
    from uphold.ports.logs import Log

NO_GROUP: Final = "UPH_START_NO_GROUP"
SLOT_HELD: Final = "UPH_SLOT_HELD"
_SUFFIX: Final = ".slot"
"""Keeps a worker's name from being that of a file of the kernel's."""


class Group:
    """The groups of one slot."""

    __slots__ = ("caps", "limited", "ooms", "tree")

    def __init__(
        self,
        tree: str | None,
        caps: Mapping[str, str] | None = None,
        limited: tuple[str, ...] = (),
    ) -> None:
        self.tree = tree
        """The folder that holds all its processes, and can end them; None: only caps."""
        self.caps = dict(caps or {})
        """Its folders in hierarchies of the first version, by what they limit."""
        self.limited = limited
        """What it keeps to a limit: `pids`, `memory`, `cpu`."""
        self.ooms = 0
        """How often the kernel had ended a process for want of memory before this run."""

    @property
    def memory(self) -> str | None:
        """The folder in which its memory is limited; None if it is not."""
        return self.caps.get("memory", self.tree) if "memory" in self.limited else None

    def ran_out_of_memory(self) -> bool:
        """Tell whether the kernel has ended a process of this run for want of memory."""
        return self.memory is not None and oom_kills(self.memory) > self.ooms

    def do_without(self, controller: str) -> None:
        """Leave out a limit that the kernel refuses."""
        self.limited = tuple(each for each in self.limited if each != controller)
        self.caps.pop(controller, None)

    @property
    def proves(self) -> bool:
        """Tell whether the kernel can say that nothing is left of it."""
        return self.tree is not None

    def kill(self) -> None:
        """End everything in it, also what is being forked right now."""
        if self.tree is not None:
            with suppress(OSError):  # it is gone; or each process is ended by itself, as without
                write_word(f"{self.tree}/cgroup.kill", "1")

    def is_empty(self) -> bool:
        """Tell whether nothing lives in it; what cannot be looked at counts as alive."""
        if self.tree is None:
            return True
        try:
            descriptor = os.open(f"{self.tree}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as cause:
            return isinstance(cause, FileNotFoundError)
        try:
            return _says_empty(descriptor)
        finally:
            os.close(descriptor)

    def members(self) -> list[int]:
        """List the processes in it and below it, as far as they are visible to us."""
        found: list[int] = []
        for folder in _folders(self.tree):
            with suppress(ValueError):
                found += map(int, read_proc(f"{folder}/cgroup.procs").split())
        return [pid for pid in found if pid > 0]

    async def emptied(self, limit: float) -> None:
        """Wait until the kernel says that nothing lives in it, but no longer than `limit`."""
        try:
            descriptor = os.open(f"{self.tree}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        with select.epoll() as news:
            try:
                # Such a file is always readable; only its changes are of interest.
                news.register(descriptor, select.EPOLLPRI)
                loop.add_reader(news.fileno(), changed.set)
                with suppress(TimeoutError):
                    async with asyncio.timeout(limit):
                        while not _says_empty(descriptor):
                            changed.clear()
                            await changed.wait()
            finally:
                loop.remove_reader(news.fileno())
                os.close(descriptor)

    def remove(self) -> bool:
        """Remove it; False if something lives in it. What it made below goes with it."""
        gone = True
        for root in (self.tree, *self.caps.values()):
            for folder in reversed(_folders(root)):
                try:
                    os.rmdir(folder)  # noqa: PTH106 - text is enough
                except FileNotFoundError:
                    pass
                except OSError:
                    gone = False
        return gone

    def doors(self) -> tuple[int | None, tuple[int, ...]]:
        """Open the folder to be born in, and those to be moved to."""
        opened: list[int] = []
        try:
            for folder in (*filter(None, (self.tree,)), *self.caps.values()):
                opened.append(_open_folder(folder))  # noqa: PERF401 - those before are closed
        except OSError:
            for descriptor in opened:
                os.close(descriptor)
            raise
        return (None, tuple(opened)) if self.tree is None else (opened[0], tuple(opened[1:]))


class Groups:
    """The groups of one home."""

    def __init__(
        self, home: Home, hierarchies: Hierarchies | None = None, log: Log | None = None
    ) -> None:
        """Look for hierarchies only when the first group is asked for, unless they are given."""
        self._home = home
        self._log = log
        self._unkept: set[tuple[str, str]] = set()
        """What the log has been told already: a worker that crashes does not repeat it."""
        self._given = hierarchies
        self._found: Hierarchies | None = None
        self._name = ""
        self._left: dict[str, Group] | None = None

    def begin(self, slot: str, spec: WorkerSpec) -> Group | None:
        """Make the group that a start asks for; None if it asks for none, or can do without.

        HostFailure if there can be none, or if something of an earlier run lives in it.
        """
        if not asks(spec):
            return None
        group = self._wanted(slot, spec)
        if group is not None:
            self._begin(slot, spec, group)
        self._tell_unkept(slot, spec, () if group is None else group.limited)
        return group

    def _begin(self, slot: str, spec: WorkerSpec, group: Group) -> None:
        try:
            self._make(group, spec)
        except OSError as cause:
            raise HostFailure(
                f"no control group could be made for {slot}: {cause}.",
                code=NO_GROUP,
                remedy="May the supervisor write there? See docs/configuration.md, Groups.",
            ) from cause
        if not group.is_empty():
            group.kill()
            raise HostFailure(
                f"{slot} was not started: something of its last run lived on in its group.",
                code=SLOT_HELD,
                remedy="It has been sent SIGKILL; uphold tries again.",
            )
        group.ooms = 0 if group.memory is None else oom_kills(group.memory)

    def _tell_unkept(self, slot: str, spec: WorkerSpec, kept: tuple[str, ...]) -> None:
        for each in controllers_of(spec.limits):
            if each in kept or self._log is None or (slot, each) in self._unkept:
                continue
            self._unkept.add((slot, each))
            self._log.write("WARNING", "limits.unkept", f"{slot}: {UNKEPT[each]}", worker=slot)

    def around(self, slot: str, spec: WorkerSpec, pid: int) -> Group | None:
        """Find the group in which a process of a slot lives; never one that is not the slot's."""
        left = self.left(slot)
        if left is None and not asks(spec):
            return None
        mounts = read_proc("/proc/self/mountinfo").decode("utf-8", "surrogateescape")
        where = read_proc(f"/proc/{pid}/cgroup").decode("utf-8", "surrogateescape")
        found: dict[str, str] = {}
        for kind, path in place_all(mounts, where):
            if path.endswith(f"/{self._own_name()}/{slot}{_SUFFIX}"):
                found.setdefault(kind, path)
        if found:
            return _as_found(found)
        # It is not in the slot's group, but what else of the slot is there ends with it.
        return None if left is None or left.is_empty() else left

    def left(self, slot: str) -> Group | None:
        """Give the group that an earlier supervisor of this home left for a slot."""
        return self._all_left().get(slot)

    def inhabited(self) -> list[str]:
        """Name the slots in whose groups, left by an earlier supervisor, something lives."""
        return [slot for slot, group in self._all_left().items() if not group.is_empty()]

    def close(self) -> None:
        """Remove what is empty; groups in which workers live on stay for the next supervisor."""
        if self._found is None:
            return
        for slot in self._slots():
            Group(*self._paths(slot)).remove()
        for base in self._bases().values():
            with suppress(OSError):
                os.rmdir(base)  # noqa: PTH106 - text is enough

    def _wanted(self, slot: str, spec: WorkerSpec) -> Group | None:
        found = self._hierarchies()
        if spec.containment == "group" and found.tree is None:
            raise HostFailure(
                f"{slot} asks for containment = 'group', but the supervisor can write no "
                "control group of the second version here.",
                code=NO_GROUP,
                remedy="Run it where it can (root, or a delegated group), or use 'marks'.",
            )
        needs = controllers_of(spec.limits)
        offered = tuple(each for each in needs if found.offers(each))
        for each in needs:
            if each not in offered and is_firm(spec, each):
                raise _not_offered(slot, each)
        if not offered and spec.containment != "group":
            return None
        tree, caps = self._paths(slot)
        return Group(tree, {each: caps[each] for each in offered if each in caps}, offered)

    def _make(self, group: Group, spec: WorkerSpec) -> None:
        self._ask_for_controllers(group, spec)
        for path in filter(None, (group.tree, *group.caps.values())):
            _make_folder(os.path.dirname(path))  # noqa: PTH120 - text is enough
            _make_folder(path)
        asked = spec.containment == "group"
        if asked and not os.path.exists(f"{group.tree}/cgroup.kill"):  # noqa: PTH110
            raise OSError("this kernel cannot end a group (Linux 5.14 can)")
        if group.tree is not None:
            lift_others(group.tree, group.limited)
        for each in group.limited:
            folder = group.caps.get(each, group.tree)
            assert folder is not None, "what limits is one of the two"
            try:
                write_cap(each, folder, spec.limits)
            except OSError:
                if is_firm(spec, each):
                    raise
                group.do_without(each)

    def _ask_for_controllers(self, group: Group, spec: WorkerSpec) -> None:
        """Have groups of the second version limit what those of the first do not."""
        for each in group.limited:
            if each in group.caps:
                continue
            # Before there is anything below us: afterwards the kernel may refuse it.
            assert group.tree is not None, "what limits is one of the two"
            base = os.path.dirname(group.tree)  # noqa: PTH120 - text is enough
            _make_folder(base)
            try:
                for folder in (os.path.dirname(base), base):  # noqa: PTH120 - text is enough
                    write_word(f"{folder}/cgroup.subtree_control", f"+{each}")
            except OSError:
                if is_firm(spec, each):
                    raise
                group.do_without(each)

    def _all_left(self) -> dict[str, Group]:
        if self._left is None:
            self._left = {slot: Group(*self._paths(slot)) for slot in self._slots()}
        return self._left

    def _slots(self) -> set[str]:
        found: set[str] = set()
        for base in self._bases().values():
            with suppress(OSError):
                found.update(name for name in os.listdir(base) if name.endswith(_SUFFIX))  # noqa: PTH208
        return {name.removesuffix(_SUFFIX) for name in found}

    def _paths(self, slot: str) -> tuple[str | None, dict[str, str]]:
        """Give the folders of a slot: that of the second version, and those of the first."""
        paths = {kind: f"{base}/{slot}{_SUFFIX}" for kind, base in self._bases().items()}
        return paths.pop("", None), paths

    def _bases(self) -> dict[str, str]:
        """Give our folder in each hierarchy, by what it limits ("": version 2)."""
        return {kind: f"{own}/{self._own_name()}" for kind, own in self._hierarchies().by_kind()}

    def _hierarchies(self) -> Hierarchies:
        if self._found is None:
            self._found = self._given or find_hierarchies()
        return self._found

    def _own_name(self) -> str:
        if not self._name:
            # Not by its path alone: another container may have a home at the same place.
            home = self._home.path.stat()
            mark = f"{home.st_dev} {home.st_ino} {self._home.path}".encode(errors="surrogateescape")
            self._name = f"uphold-{sha256(mark).hexdigest()[:16]}"
        return self._name


def asks(spec: WorkerSpec) -> bool:
    """Tell whether a worker is to be started in a group of its own."""
    return spec.containment == "group" or bool(controllers_of(spec.limits))


def _as_found(found: Mapping[str, str]) -> Group:
    """Take the folders in which a process lives as the group of its slot."""
    tree = found.get("")
    caps = {kind: path for kind, path in found.items() if kind}
    limited = ("memory",) if "memory" in caps or (tree is not None and caps_memory(tree)) else ()
    group = Group(tree, caps, limited)
    group.ooms = 0 if group.memory is None else oom_kills(group.memory)
    return group


def _not_offered(slot: str, controller: str) -> HostFailure:
    key, does = LIMITS[controller]
    return HostFailure(
        f"{slot} asks for limits.{key}, but the supervisor can write no control group that "
        f"{does} here.",
        code=NO_GROUP,
        remedy="Run it where it can (root, or a delegated group), or remove the limit.",
    )


def _says_empty(descriptor: int) -> bool:
    try:
        return b"populated 0" in os.pread(descriptor, 4096, 0)
    except OSError as cause:
        return cause.errno == errno.ENODEV  # it was removed meanwhile


def _folders(root: str | None) -> list[str]:
    """List a folder and those below it, parents first."""
    return [] if root is None else list(_walk(root))


def _walk(folder: str) -> Iterator[str]:
    yield folder
    try:
        with os.scandir(folder) as entries:
            below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for each in below:
        yield from _walk(each)


def _make_folder(path: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(path, 0o755)  # noqa: PTH102 - text is enough


def _open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
