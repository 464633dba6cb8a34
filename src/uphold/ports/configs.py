"""Where wishes come from when nobody says anything: the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.specs import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who had the file read again, and why: the order that comes of it is theirs."""

    author: str
    origin: str
    reason: str = ""
    label: str | None = None


class Revision(Protocol):
    """Settings that were found right, and their version."""

    @property
    def settings(self) -> Settings:
        """What the file says."""
        ...

    @property
    def version(self) -> int:
        """Rises with every accepted change."""
        ...

    @property
    def asker(self) -> Asker | None:
        """Who asked for it; None if nobody did and the file was edited."""
        ...


class ConfigSource(Protocol):
    """Holds the configuration that was last found right, and tells of new ones."""

    @property
    def current(self) -> Revision:
        """The settings in force."""
        ...

    def subscribe(self, listener: Callable[[Revision], None]) -> None:
        """Tell this listener of every later revision; it may be called from any thread."""
        ...

    def unsubscribe(self, listener: Callable[[Revision], None]) -> None:
        """Tell it no more."""
        ...
