"""What is done now and then: memory given back, history that is too old let go of."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from uphold.errors import StoreUnavailable
from uphold.host.memory import give_back
from uphold.journal.pruning import Keep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from uphold.core.events import Note
    from uphold.core.specs import Settings
    from uphold.journal.writing import SqliteJournal
    from uphold.ports.clocks import Clock

EVERY: Final = 30.0
TURNS_TO_PRUNE: Final = 10
"""For what has grown old, and for settings that changed; too much is seen to as it is written."""


def keep_of(settings: Settings) -> Keep:
    """Say how much of the past the journal keeps under these settings."""
    spec = settings.journal
    return Keep(
        events=spec.events_at_most,
        events_age=spec.events_for,
        jobs_age=spec.jobs_for,
        audit_age=spec.audit_for,
        size=spec.max_size,
        spool=None if settings.store is None else settings.store.spool,
    )


async def keep_house(
    journal: SqliteJournal,
    restored: Callable[[], Iterator[Note]],
    tell: Callable[[Note], Awaitable[object]],
    clock: Clock,
) -> None:
    """Let go of memory and of history that is too old; put back what was removed."""
    for turn in count(1):
        await clock.sleep(EVERY)
        give_back()
        for note in restored():
            await tell(note)
        if turn % TURNS_TO_PRUNE:
            continue
        with suppress(StoreUnavailable):  # it is tried again next time
            while await journal.prune(clock.now().wall):
                pass
