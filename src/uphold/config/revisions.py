"""The configuration a supervisor lives by: the last one that was right, and its version.

`FileConfig` is the engine's configuration service. There is one way in for changes, `reload`,
whoever asks for it: the watch, the verb or a signal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from uphold.config.loading import examine
from uphold.core.specs import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.config.loading import Reading
    from uphold.ports.configs import Asker

    Listener = Callable[["Revision"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """Settings and their version, which rises with every accepted change."""

    settings: Settings
    version: int
    asker: Asker | None = None
    """Who had the file read; None where it was found edited."""


class FileConfig:
    """A configuration file: what it last said that was right, and what it says now.

    Raises ConfigInvalid when the file is wrong from the beginning.
    """

    def __init__(self, path: str | os.PathLike[str], environ: Mapping[str, str]) -> None:
        self.path = os.path.abspath(path)  # noqa: PTH100 - links stay: what they lead to may change
        self._environ = dict(environ)
        self._listeners: list[Listener] = []
        # The watch, the verb and a signal may reload at once, from threads: what was read later
        # must not be replaced by what was read earlier.
        self._one_at_a_time = Lock()
        self._marks: Mapping[str, int | None] = {}
        self._current = Revision(settings=self._look().settings_or_raise(), version=1)

    @property
    def current(self) -> Revision:
        """The last right configuration. Ask again each time: it is replaced, never changed."""
        return self._current

    @property
    def marks(self) -> Mapping[str, int | None]:
        """Every file the last look was made at, right or wrong, and a mark of what it held."""
        return self._marks

    def reload(self, asker: Asker | None = None) -> Settings:
        """Read the file again; ConfigInvalid if it is wrong, and then the old settings stay."""
        with self._one_at_a_time:
            settings = _over(self._current.settings, self._look().settings_or_raise())
            if settings != self._current.settings:
                version = self._current.version + 1
                self._current = Revision(settings=settings, version=version, asker=asker)
                for listener in tuple(self._listeners):
                    listener(self._current)
            return settings

    def subscribe(self, listener: Listener) -> None:
        """Tell this listener of every accepted change from now on, on the thread that reloads."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Tell it no more; unknown ones are fine."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _look(self) -> Reading:
        reading = examine(self.path, environ=self._environ)
        # Of wrong files too: one mistake is told once, and not again until the file changes.
        self._marks = reading.marks
        return reading


def _over(before: Settings, after: Settings) -> Settings:
    """Give the new settings with the old values where they say the same.

    Most edits are about few of many workers. Whoever compares next (and everybody does) then sees
    at a glance that the others are the same, and there is one of each in memory, not two.
    """
    known = {spec.name: spec for spec in before.workers}
    kept = (known.get(spec.name, spec) for spec in after.workers)
    pairs = zip(kept, after.workers, strict=True)
    return replace(after, workers=tuple(old if old == new else new for old, new in pairs))
