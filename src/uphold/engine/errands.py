"""Orders that are carried out step by step beside the plan: updates, reports.

One after the other, in the order they came: two updates of one checkout must never meet. What
an errand raises ends that errand and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from uphold.errors import UpholdError

if TYPE_CHECKING:
    from uphold.core.orders import Order
    from uphold.engine.jobs import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an errand came to."""

    error: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)


Run = Callable[["Order"], Awaitable[Outcome]]
Ended = Callable[["Job", Outcome], Awaitable[None]]


class Errands:
    """Carries errands out, one at a time."""

    def __init__(self, runs: Mapping[type, Run], ended: Ended) -> None:
        self._runs = runs
        self._ended = ended
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()

    def begin(self, job: Job) -> None:
        """Take one more; it is carried out after those that came before it."""
        self._waiting.put_nowait(job)

    async def run(self) -> None:
        """Carry errands out for ever."""
        while True:
            job = await self._waiting.get()
            await self._ended(job, await self._outcome(job.order))

    async def _outcome(self, order: Order) -> Outcome:
        run = self._runs.get(type(order.wish))
        if run is None:
            return Outcome(error=f"nothing here can {order.wish.VERB}: it is not configured")
        try:
            return await run(order)
        except UpholdError as problem:
            return Outcome(error=problem.message, details={"remedy": problem.remedy or None})
        except Exception as problem:  # noqa: BLE001 - the boundary of an errand: told, then on
            return Outcome(error=f"{order.wish.VERB} failed by a mistake of uphold: {problem!r}")
