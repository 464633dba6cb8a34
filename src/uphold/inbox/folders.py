"""The folders of a share, opened so that nothing can be slipped in between (helper's side).

Everything is reached by descriptors from the top down, and no link is followed on the way: what
is verified to be mounted stays the file system that is written to, also if it is unmounted in
the middle. Stands alone: nothing of uphold but its neighbours is imported.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
MADE = {"processing": "inbox", "rejected": "inbox", "diagnostics": "logs"}
"""The only folders that are made where they are missing, and where they lie."""


class Unmounted(Exception):  # noqa: N818 - a state of affairs
    """The share is not there; nothing may be written."""


class Wrong(Exception):  # noqa: N818
    """Something else was asked for than is ever done."""


class Mark:
    """What tells the share from the empty folder it is mounted on."""

    __slots__ = ("beneath", "device")

    def __init__(self, device: int | None = None, beneath: tuple[int, ...] = ()) -> None:
        self.device = device
        """The file system of the state folder, as last verified."""
        self.beneath = beneath
        """File systems on the way to it: what shows when the share is not mounted."""

    def plain(self) -> dict[str, object]:
        """Give it as plain values, for the next helper."""
        return {"device": self.device, "beneath": list(self.beneath)}


class Top:
    """The top folder of a share that is verified to be mounted; a context manager."""

    def __init__(self, root: str, layout: dict[str, str], mark: Mark) -> None:
        self._layout = layout
        self._open: list[int] = []
        self._folders: dict[str, int] = {}
        try:
            self.descriptor = self._keep(os.open(root, _FOLDER))
            state = self._walk(layout["state"])
            self._compare(root, os.fstat(state).st_dev, mark)
        except (FileNotFoundError, NotADirectoryError) as cause:
            self.close()
            text = f"{root} has no folder {layout['state']}, so the share is not mounted there"
            raise Unmounted(text) from cause
        except PermissionError as cause:
            self.close()
            raise Unmounted(f"{root} may not be entered by this user") from cause
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every folder."""
        while self._open:
            os.close(self._open.pop())

    def folder(self, name: str, *, make: bool = True) -> int:
        """Open one of the share's folders; those that are ours are made if they are missing."""
        if name == "top":
            return self.descriptor
        if name not in self._folders:
            self._folders[name] = self._entered(name, make=make)
        return self._folders[name]

    def parent_of(self, path: str) -> tuple[int, str]:
        """Open the folder that holds a path below the top, and give it with the last name."""
        *above, name = path.split("/")
        return self._walk("/".join(above)), checked(name)

    def _entered(self, name: str, *, make: bool) -> int:
        if name not in MADE:
            return self._walk(self._layout[name])
        parent = self.folder(MADE[name])
        try:
            return self._keep(os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent))
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
        return self._keep(os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent))

    def _walk(self, path: str) -> int:
        here = self.descriptor
        for name in path.split("/") if path else ():
            flags = _FOLDER | os.O_NOFOLLOW
            here = self._keep(os.open(checked(name), flags, dir_fd=here))
        return here

    def _keep(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def _compare(self, root: str, device: int, mark: Mark) -> None:
        """Refuse what lies on the disk beneath; another mount in the same place is welcome."""
        if device == mark.device:
            return
        if device in mark.beneath:
            raise Unmounted(f"{root} lies on the disk it is mounted on: it is not mounted")
        # A share that is mounted again may have another number than before.
        mark.device = device
        mark.beneath = tuple({*mark.beneath, *_devices_above(root)} - {device})


def checked(name: str) -> str:
    """Refuse a name that would lead anywhere else."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise Wrong(f"{name!r} is no name of a file")
    return name


def _devices_above(root: str) -> set[int]:
    return {folder.stat().st_dev for folder in Path(root).resolve().parents}
