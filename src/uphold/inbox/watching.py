"""Being told that something has come to an inbox, where the kernel tells that (helper's side).

Asked to watch, it tells once, and is silent until it is asked again: so a flood costs whoever
looks one look at a time. Nothing on the share is held open by it. Stands alone, but for the one
binding of inotify there is.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.host.inotify import Watches

_READINGS = 32
"""Enough for all that the kernel keeps; whoever floods us does not keep us reading for ever."""


class Lookout:
    """Watches one folder, whichever it is at the moment."""

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        """`is_ours` tells by its name whether an entry is worth a look."""
        self._is_ours = is_ours
        self._watches: Watches | None = None
        self._watch = -1
        self._owes = False
        """Somebody waits to be told."""

    def descriptors(self) -> tuple[int, ...]:
        """Give what becomes readable when `stirred` may have something to tell."""
        return (self._watches.descriptor,) if self._owes and self._watches is not None else ()

    def attend(self, folder: int) -> str:
        """Watch this folder from now on; give why that cannot be done, or nothing.

        What happens to it after this is told, also if it happens before anybody waits for it.
        """
        try:
            self._begin(folder)
        except (ImportError, OSError) as cause:
            self.close()
            number = getattr(cause, "errno", None)
            # What the kernel refuses has a number; the rest is said in words.
            text = f"the kernel cannot watch it ({os.strerror(number or 0)}; see fs.inotify.*)"
            return text if number else str(cause)
        return ""

    def stirred(self) -> bool:
        """Take in what has come; True, and only once, if somebody should look."""
        from uphold.host.inotify import FOLDER_ITSELF  # noqa: PLC0415 - it is there, if this is called

        for watch, mask, name in () if self._watches is None else self._watches.read():
            # An older watch may still be heard of: that it is gone is no news.
            if watch in (self._watch, -1) and (mask & FOLDER_ITSELF or self._is_ours(name)):
                self._owes = False
                return True
        return False

    def close(self) -> None:
        """Watch no more."""
        watches, self._watches = self._watches, None
        self._watch, self._owes = -1, False
        if watches is not None:
            watches.close()

    def _begin(self, folder: int) -> None:
        from uphold.host import inotify  # noqa: PLC0415 - only for those who wish to be told

        if self._watches is None:
            self._watches = inotify.Watches()
        for _ in range(_READINGS):  # who asks is about to look anyway
            if not self._watches.read():
                break
        # Entries that come, by whatever means; whether the share is still there is news, too.
        interest = inotify.CREATE | inotify.CLOSE_WRITE | inotify.MOVED_TO
        interest |= inotify.DELETE_SELF | inotify.MOVE_SELF
        # By its descriptor: this one was proved to lie on the share.
        watch = self._watches.add(f"/proc/self/fd/{folder}", interest)
        if watch != self._watch:  # another folder, or the same that was away in between
            if inotify.is_untold(folder):
                self._watches.remove(watch)
                raise OSError("its file system does not tell what others write there")
            if self._watch >= 0:
                self._watches.remove(self._watch)
            self._watch = watch
        self._owes = True
