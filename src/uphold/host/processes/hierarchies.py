"""Where control groups can be made on this machine. Looks only; nothing is made here.

Groups are made below our own: that is what a service manager delegates, and what root may use
anyway. Processes, memory and processors may be limited by the second version of control groups or
by hierarchies of the first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.host.proctable import read_proc
from uphold.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTROLLERS: Final = ("pids", "memory", "cpu")
_ESCAPED: Final = pattern(r"\\([0-7]{3})")


class Hierarchies(NamedTuple):
    """Our own folder in each hierarchy that matters; None if there is none to write in."""

    tree: str | None = None
    """Of the second version, which can end a group and tells when it is empty."""
    pids: str | None = None
    """Of the first version, with the controller that counts processes."""
    memory: str | None = None
    """Of the first version, with the controller that limits memory."""
    cpu: str | None = None
    """Of the first version, with the controller that limits processors."""

    def by_kind(self) -> list[tuple[str, str]]:
        """Give the folders that there are, each with its controller ("": version 2)."""
        kinds = zip(("", *_CONTROLLERS), self, strict=True)
        return [(kind, folder) for kind, folder in kinds if folder is not None]

    def offers(self, controller: str) -> bool:
        """Tell whether something can be limited here."""
        if getattr(self, controller) is not None:
            return True
        return self.tree is not None and is_offered(self.tree, controller)

    @property
    def counts(self) -> bool:
        """Tell whether the number of processes can be limited here."""
        return self.offers("pids")


def find_hierarchies() -> Hierarchies:
    """Look where we are and what of it we may write."""
    mounts = read_proc("/proc/self/mountinfo").decode("utf-8", "surrogateescape")
    places = place_all(mounts, read_proc("/proc/self/cgroup").decode("utf-8", "surrogateescape"))
    tree = _writable(delegated(path) for kind, path in places if kind == "")
    found = (_writable(path for kind, path in places if kind == each) for each in _CONTROLLERS)
    return Hierarchies(tree, *found)


def place_all(mounts: str, memberships: str) -> list[tuple[str, str]]:
    """Give the folders of a process's groups, each with its controllers' name ("": version 2).

    `mounts` is what /proc/self/mountinfo says, `memberships` what /proc/PID/cgroup says.
    """
    inside = dict(_memberships(memberships))
    found = []
    for kind, root, folder in _mounts(mounts):
        path = inside.get(kind)
        above = root.rstrip("/")
        # Otherwise this mount, or our view of names, shows another part of the hierarchy.
        if path is not None and f"{path}/".startswith(f"{above}/"):
            below = path[len(above) :].rstrip("/")
            if ".." not in below.split("/"):
                found.append((kind, folder + below))
    return found


def delegated(folder: str) -> str:
    """Give the group that systemd has left to us, where ours is one in it for the supervisor alone.

    The kernel hands memory on only from groups that have no processes of their own.
    """
    above = os.path.dirname(folder)  # noqa: PTH120 - text is enough
    for mark in ("user.delegate", "trusted.delegate"):
        with suppress(OSError, AttributeError):  # no such mark; no such call
            if os.getxattr(above, mark) == b"1":
                return above
    return folder


def is_offered(folder: str, controller: str) -> bool:
    """Tell whether a group of the second version may have those below it limited in this way."""
    return controller.encode() in read_proc(f"{folder}/cgroup.controllers").split()


def _writable(folders: Iterator[str]) -> str | None:
    may = os.R_OK | os.W_OK | os.X_OK
    return next((folder for folder in folders if os.access(folder, may)), None)


def _memberships(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            yield controller, path.removesuffix(" (deleted)")


def _mounts(text: str) -> Iterator[tuple[str, str, str]]:
    """Give controller, root and folder of each mounted hierarchy."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, rest = after.partition(" ")
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, folder = (_plain(word) for word in before.split(" ")[3:5])
        options = rest.rpartition(" ")[2].split(",")
        for controller in ("",) if kind == "cgroup2" else options:
            yield controller, root, folder


def _plain(word: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), word)
