"""Answering requests about a share, one line of JSON each (helper's side).

Whatever goes wrong with a request is its answer; nothing that a share can do ends the helper.
Stands alone: nothing of uphold but its neighbours is imported.
"""

from __future__ import annotations

import errno
import json
import os
from binascii import a2b_base64

from uphold.inbox.folders import Mark, Top, Unmounted, Wrong
from uphold.inbox.listings import Scan, names_in
from uphold.inbox.shelves import Shelves, write_all
from uphold.inbox.surveys import survey
from uphold.inbox.trusting import numbers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PIECE = 1 << 16
_OUT_OF_REACH = frozenset(
    {
        errno.EIO,
        errno.ENODEV,
        errno.ENXIO,
        errno.ENOTCONN,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ENETUNREACH,
        errno.ENETDOWN,
    }
)
"""What a file system says when its server is gone; everything else is about one file."""


class Helper:
    """Answers requests about one share."""

    def __init__(self, root: str, settings: dict[str, Any]) -> None:
        self._root = root
        self._layout: dict[str, str] = settings["layout"]
        self._paths: list[str] = settings["paths"]
        self._owner: str = settings["owner"]
        mark = settings.get("mark") or {}
        self._mark = Mark(mark.get("device"), tuple(mark.get("beneath", ())))
        self._trusted = numbers_of(settings.get("trusted") or ())
        self._scan = Scan(settings["pattern"], self._trusted)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked; whatever goes wrong is an answer too."""
        number = request.pop("id")
        try:
            device = self._mark.device
            with Top(self._root, self._layout, self._mark) as top:
                if self._mark.device != device:
                    self._scan.close()  # what it was looking through is not the same any more
                result = self._do(top, request.pop("do"), request)
        except Unmounted as cause:
            self._scan.close()
            return {"id": number, "no": "unmounted", "text": str(cause)}
        except Wrong as cause:
            return {"id": number, "no": "wrong", "text": str(cause)}
        except OSError as cause:
            self._scan.close()
            gone = cause.errno in _OUT_OF_REACH
            where = f" ({cause.filename})" if isinstance(cause.filename, str) else ""
            return {
                "id": number,
                "no": "unreachable" if gone else "failed",
                "text": f"{cause.strerror}{where}",
                "errno": cause.errno,
            }
        return {"id": number, "ok": result, "mark": self._mark.plain()}

    def _do(self, top: Top, what: str, given: dict[str, Any]) -> Any:
        if what == "flags":
            return self._flags(top, given)
        if what == "names":
            return self._names(top, given["folder"], given["most"])
        if what == "survey":
            return survey(top, self._paths)
        if what not in _SHELVED:
            raise Wrong(f"nobody knows how to {what}")
        return _shelve(Shelves(top, self._owner, self._trusted), what, given)

    def _names(self, top: Top, folder: str, most: int) -> list[dict[str, Any]]:
        try:
            descriptor = top.folder(folder, make=False)
        except FileNotFoundError:
            return []
        return names_in(descriptor, most, self._scan.is_ours if folder == "inbox" else None)

    def _flags(self, top: Top, given: dict[str, Any]) -> dict[str, Any]:
        after = given["after"]
        try:
            folder = top.folder("inbox")
        except FileNotFoundError:
            return {"entries": [], "last": None, "more": False, "missing": True}
        return self._scan.flags(folder, None if after is None else tuple(after), given["most"])


_SHELVED = frozenset(
    {
        "peek",
        "claim",
        "give_back",
        "reread",
        "reject",
        "reason",
        "put",
        "remove",
        "read",
        "look",
        "append",
        "sweep",
    }
)


def _shelve(shelves: Shelves, what: str, given: dict[str, Any]) -> Any:
    for key in ("content", "lines"):
        if key in given:
            given[key] = a2b_base64(given[key])
    return getattr(shelves, what)(**given)


def serve(root: str, settings: str, descriptor: int) -> int:
    """Answer until nobody asks any more."""
    os.umask(0o022)  # others must be able to read what is left for them
    helper = Helper(root, json.loads(settings))
    rest = b""
    try:
        while piece := os.read(descriptor, _PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                write_all(descriptor, json.dumps(helper.answer(json.loads(line))).encode() + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    return 0
