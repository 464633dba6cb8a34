"""Where wishes come from when nobody says anything: the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.specs import Settings


class ConfigSource(Protocol):
    """Holds the configuration that was last found right, and tells of new ones."""

    @property
    def current(self) -> Settings:
        """The settings in force."""
        ...

    def subscribe(self, listener: Callable[[Settings], None]) -> None:
        """Tell this listener of every later settings that were found right."""
        ...

    def unsubscribe(self, listener: Callable[[Settings], None]) -> None:
        """Tell it no more."""
        ...
