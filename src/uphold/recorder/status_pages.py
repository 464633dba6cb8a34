"""Keeping the rows of one supervisor, from its introduction to its last words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from uphold.journal.reading import JournalReader
from uphold.recorder.connecting import Store
from uphold.recorder.heartbeats import Clash, introduce, write_rows
from uphold.recorder.last_words import last_words


class StatusPage:
    """Writes rows; a supervisor is introduced before its first, and a clash is told once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._introduced: set[str] = set()
        self._told: frozenset[Clash] = frozenset()

    def write(
        self, store: Store, document: Mapping[str, Any], touched: set[str] | None, wall: float
    ) -> None:
        """Bring the rows of these workers up to date (None: of all), and the supervisor's own."""
        supervisor_id = str(document["supervisor"]["id"])
        if supervisor_id not in self._introduced:
            introduce(store, document, wall)
            self._introduced.add(supervisor_id)
        written = write_rows(store, document, touched, wall)
        if touched is None:
            self._tell(written.clashes)

    def write_last_words(self, store: Store, journal: Path, wall: float) -> None:
        """Have the rows say how the supervisor ended, if its journal tells."""
        with JournalReader(journal) as reader:
            document = last_words(reader)
        if document is not None:
            self.write(store, document, None, wall)

    def _tell(self, clashes: tuple[Clash, ...]) -> None:
        for clash in clashes:
            if clash not in self._told:
                self._say(f"UPH_STORE_NAME_TAKEN: {clash.message} {clash.remedy}")
        self._told = frozenset(clashes)
