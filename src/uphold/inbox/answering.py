"""Answering requests about a share, one line of JSON each (helper's side).

Whatever goes wrong with a request is its answer; nothing that a share can do ends the helper.
Stands alone: nothing of uphold but its neighbours is imported.
"""

from __future__ import annotations

import errno
import json
import os
import select
from binascii import a2b_base64

from uphold.inbox.folders import Mark, Top, Unmounted, Wrong
from uphold.inbox.listings import LONGEST_LOOK, Scan, clock, names_in
from uphold.inbox.shelves import Shelves, write_all
from uphold.inbox.surveys import survey
from uphold.inbox.trusting import trusted_of
from uphold.inbox.watching import Lookout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEWS = b'{"id": 0, "news": true}\n'
"""What is said without being asked: something has come to the inbox that is watched."""
_PIECE = 1 << 16
_OUT_OF_REACH = frozenset(
    {
        errno.EIO,
        errno.ENODEV,
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
        self._trusted = trusted_of(settings.get("trusted") or ())
        self._scan = Scan(settings["pattern"], self._trusted)
        self.lookout = Lookout(self._scan.is_ours)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked, to one thing or to `each` of several; failures are answers too.

        Of several as many are answered as there is time for: the rest can be asked again.
        """
        number, what, each = request.pop("id"), request.pop("do"), request.pop("each", None)
        try:
            device = self._mark.device
            with Top(self._root, self._layout, self._mark) as top:
                if self._mark.device != device:
                    self._scan.close()  # what it was looking through is not the same any more
                if each is None:
                    result = self._do(top, what, request)
                else:
                    result = self._tried_each(top, what, each)
        except (Unmounted, Wrong, OSError) as cause:
            return {"id": number, **self._failure(cause)}
        return {"id": number, "ok": result, "mark": self._mark.plain()}

    def _tried_each(self, top: Top, what: str, each: list[dict[str, Any]]) -> list[dict[str, Any]]:
        until = clock() + LONGEST_LOOK
        answers: list[dict[str, Any]] = []
        for given in each:
            answers.append(self._tried(top, what, given))
            if clock() > until:
                break
        return answers

    def _tried(self, top: Top, what: str, given: dict[str, Any]) -> dict[str, Any]:
        """Do something to one of several: what is wrong with it is no matter of the others."""
        try:
            return {"ok": self._do(top, what, given)}
        except (Wrong, OSError) as cause:
            return self._failure(cause)

    def _failure(self, cause: Unmounted | Wrong | OSError) -> dict[str, Any]:
        if isinstance(cause, Wrong):
            return {"no": "wrong", "text": str(cause)}
        if isinstance(cause, Unmounted):
            self._scan.close()
            return {"no": "unmounted", "text": str(cause)}
        gone = cause.errno in _OUT_OF_REACH
        if gone:
            self._scan.close()
        where = f" ({cause.filename})" if isinstance(cause.filename, str) else ""
        return {
            "no": "unreachable" if gone else "failed",
            "text": f"{cause.strerror}{where}",
            "errno": cause.errno,
        }

    def _do(self, top: Top, what: str, given: dict[str, Any]) -> Any:
        if what == "flags":
            return self._flags(top, given)
        if what == "names":
            return self._names(top, given["folder"], given["most"])
        if what == "watch":
            return self._watch(top)
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

    def _watch(self, top: Top) -> str:
        """Tell from now on when something has come; give why that is impossible, or nothing."""
        try:
            return self.lookout.attend(top.folder("inbox"))
        except FileNotFoundError:
            self.lookout.close()
            return "there is no inbox"
        except OSError as cause:
            if cause.errno in _OUT_OF_REACH:
                raise
            # A matter of the inbox alone: whoever asks has more to do on this share.
            self.lookout.close()
            return f"it cannot be opened ({cause.strerror})"

    def _flags(self, top: Top, given: dict[str, Any]) -> dict[str, Any]:
        try:
            folder = top.folder("inbox")
        except FileNotFoundError:
            self._scan.close()
            return {"entries": [], "more": False, "missing": True}
        return self._scan.flags(folder, given["most"])


_SHELVED = frozenset(
    {
        "peek",
        "claim",
        "give_back",
        "reread",
        "reject",
        "dismiss",
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
    """Answer until nobody asks any more; in between tell of news, if somebody wishes that."""
    os.umask(0o022)  # others must be able to read what is left for them
    helper = Helper(root, json.loads(settings))
    lookout = helper.lookout
    rest = b""
    try:
        while True:
            ready, _, _ = select.select((descriptor, *lookout.descriptors()), (), ())
            if descriptor not in ready:
                if lookout.stirred():
                    write_all(descriptor, NEWS)
                continue
            if not (piece := os.read(descriptor, _PIECE)):
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                write_all(descriptor, json.dumps(helper.answer(json.loads(line))).encode() + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    return 0
