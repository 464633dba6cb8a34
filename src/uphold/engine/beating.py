"""The supervisor's own heartbeat: at once and then regularly, whatever becomes of single ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uphold.core.supervisors import metrics_of
from uphold.engine.telling import supervisor_note

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from uphold.core.events import Event
    from uphold.engine.lives import Life
    from uphold.engine.snapshots import Snapshot
    from uphold.ports.clocks import Clock

_AFTER_A_FAILURE: Final = 5.0


class Heart:
    """Puts the supervisor's life on record, paused or not (O-16, O-26)."""

    def __init__(  # noqa: PLR0913 - what it needs of the supervisor, by name
        self,
        *,
        clock: Clock,
        life: Life,
        every: Callable[[], float],
        snapshot: Callable[[], Snapshot],
        lag: Callable[[], float],
        tell: Callable[[Event], Awaitable[None]],
        unwritable: Callable[[], str | None],
    ) -> None:
        """Beat through `tell`; `unwritable` says why the journal does not take it, if so."""
        self._clock = clock
        self._life = life
        self._every = every
        self._snapshot = snapshot
        self._lag = lag
        self._tell = tell
        self._unwritable = unwritable

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            every = self._every()
            error = await self._beat(every)
            if error is not None:
                message = f"could not write its heartbeat: {error}"
                self._life.say("WARNING", "supervisor.heartbeat_failed", message)
            await self._clock.sleep(every if error is None else min(every, _AFTER_A_FAILURE))

    async def beat(self) -> None:
        """Beat once more, out of turn."""
        await self._beat(self._every())

    async def _beat(self, every: float) -> str | None:
        metrics = metrics_of(self._snapshot().observed, every, self._lag())
        try:
            await self._tell(replace(supervisor_note("supervisor.heartbeat"), payload=metrics))
        except Exception as error:  # noqa: BLE001 - who merely says that we live must not end us
            return repr(error)
        return self._unwritable()
