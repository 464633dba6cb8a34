"""The latest signs of life, shown to people at most once a second, however many there are."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from uphold.core.altering import alter
from uphold.core.specs import Instant
from uphold.core.vitals import Vital

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Show = Callable[[Mapping[str, Vital]], None]

_AFTER: Final = 1.0
_NOTHING: Final = Vital()


class Vitals:
    """Collects what slots show of themselves, and lets it out once in a while."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._known: dict[str, Vital] = {}
        self._shown_at = Instant(0.0)
        self._news = False

    def note(self, slot: str, **changes: Any) -> bool:
        """Take in a sign of life; True if it is the first since they were last shown."""
        self._known[slot] = alter(self._known.get(slot, _NOTHING), **changes)
        first, self._news = not self._news, True
        return first

    def drop(self, slot: str) -> None:
        """Forget a slot whose run is over."""
        if self._known.pop(slot, None) is not None:
            self._news = True

    @property
    def due(self) -> float | None:
        """When there is something to show."""
        return self._shown_at + _AFTER if self._news else None

    def show(self, now: Instant) -> None:
        """Let people see, if it is time."""
        if self._news and now >= self._shown_at + _AFTER:
            self._news = False
            self._shown_at = now
            self._show(MappingProxyType(dict(self._known)))
