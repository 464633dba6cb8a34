"""What a process and its children use, read from /proc.

Children are found by the kernel's own list of them, so nothing else of the machine is looked at.
Kept light, because the command line imports it for every `status`.
"""

from __future__ import annotations

import os

from uphold.host.proctable import read_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Final, NamedTuple
else:
    from uphold.tuples import NamedTuple

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MOST: Final = 10_000
"""Processes of one tree beyond which nobody counts on."""
_FEW: Final = 20
_MANY_OTHERS: Final = 3
"""A look at a process costs as much as asking for its children; from here on, more than both."""


class Use(NamedTuple):
    """What one process uses."""

    pid: int
    cpu: float
    """Processor seconds since it began, with those of children that have ended."""
    rss: int
    """Bytes of memory that it has in use, shared ones included."""
    started: float
    """Seconds after boot."""
    threads: int


def read_use(pid: int) -> Use | None:
    """Look at one process; None if it is gone."""
    fields = _fields(pid)
    return _use(pid, fields) if fields else None


def read_trees(pids: Collection[int]) -> dict[int, list[Use]]:
    """Look at these processes and everything that descends from each, parents first.

    Those that are gone are left out. Where they are most of what runs here, one look at all
    processes costs less than asking each for its children.
    """
    numbers = _all_numbers() if len(pids) > _FEW else []
    if len(numbers) > _MANY_OTHERS * len(pids) or not numbers:
        trees = {pid: read_tree(pid) for pid in pids}
        return {pid: tree for pid, tree in trees.items() if tree}
    known: dict[int, Use] = {}
    below: dict[int, list[int]] = {}
    for number in numbers:
        if fields := _fields(number):
            known[number] = _use(number, fields)
            below.setdefault(int(fields[1]), []).append(number)
    return {pid: _gather(pid, known, below) for pid in pids if pid in known}


def read_tree(pid: int) -> list[Use]:
    """Look at a process and everything that descends from it, parents first; [] if it is gone."""
    found: list[Use] = []
    todo = [pid]
    seen = set(todo)
    while todo and len(found) < _MOST:
        use = read_use(todo.pop())
        if use is None:
            continue
        found.append(use)
        # A number may be used again between two looks: nobody is counted twice for it.
        children = [child for child in _children(use) if child not in seen]
        seen.update(children)
        todo.extend(reversed(children))
    return found


def read_command(pid: int) -> str:
    """Read the command line of a process; its name where it has none."""
    words = read_proc(f"/proc/{pid}/cmdline").rstrip(b"\0").replace(b"\0", b" ")
    return (words or read_proc(f"/proc/{pid}/comm").strip()).decode("utf-8", "replace")


def resident(pids: Iterable[int]) -> int:
    """Add up the memory of processes; pages that several of them share count several times."""
    uses = (read_use(pid) for pid in pids)
    return sum(use.rss for use in uses if use is not None)


def proportional(pids: Iterable[int]) -> int:
    """Add up the memory of processes, shared pages once; dear, so asked only when it matters.

    Where the kernel does not tell, shared pages count several times.
    """
    return sum(_share_of(pid) for pid in pids)


def _gather(pid: int, known: dict[int, Use], below: dict[int, list[int]]) -> list[Use]:
    if pid not in below:
        return [known[pid]]
    found: list[Use] = []
    todo = [pid]
    while todo and len(found) < _MOST:
        number = todo.pop()
        found.append(known[number])
        todo.extend(reversed(below.get(number, ())))
    return found


def _share_of(pid: int) -> int:
    for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return resident((pid,))


def _fields(pid: int) -> list[bytes]:
    # The name before the last bracket may itself contain brackets and spaces.
    return read_proc(f"/proc/{pid}/stat", at_once=True).rpartition(b")")[2].split()


def _use(pid: int, fields: list[bytes]) -> Use:
    cpu = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    rss, started = int(fields[21]) * _PAGE, int(fields[19]) / _TICKS
    return Use(pid, cpu / _TICKS, rss, started, int(fields[17]))


def _children(use: Use) -> list[int]:
    """List the children of a process: each of its threads has a list of its own."""
    folder = f"/proc/{use.pid}/task"
    if use.threads <= 1:
        return _numbers(f"{folder}/{use.pid}/children")
    try:
        threads = os.listdir(folder)  # noqa: PTH208 - text is enough
    except OSError:
        return []
    return [child for thread in threads for child in _numbers(f"{folder}/{thread}/children")]


def _all_numbers() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _numbers(path: str) -> list[int]:
    return [int(word) for word in read_proc(path).split()]
