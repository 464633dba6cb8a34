"""Owns what is observed. Each turn: take in facts, plan, record, believe, act.

Facts and the intents they lead to are written in one transaction, so a restart costs one
commit; only then do memory, bus and world follow (record before belief, intent before
effect).
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final

from uphold.core.actions import (
    Abort,
    Amend,
    Appoint,
    Forget,
    GiveUp,
    Kill,
    Pardon,
    Plan,
    Rest,
    Skip,
    Start,
    Stop,
    Wait,
)
from uphold.core.dependencies import dependents
from uphold.core.events import Adopted, Gone, Started, StartFailed, StopFailed
from uphold.core.names import is_companion, worker_of
from uphold.core.overrides import order_behind
from uphold.core.planning import plan
from uphold.core.specs import NEVER, Instant
from uphold.core.statuses import State
from uphold.engine.drafts import Draft
from uphold.ports.journals import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from uphold.core.absorbing import Observed
    from uphold.core.actions import Action
    from uphold.core.declaring import Declaration
    from uphold.core.events import Event, Moment, Recorded, SlotFact
    from uphold.engine.attempts import Attempts
    from uphold.engine.ledger import Ledger
    from uphold.engine.performer import Performer
    from uphold.ports.clocks import Clock

    Believe = Callable[[Observed, list[Recorded]], None]

_SHARE: Final = 2.0
"""After a turn, this many times its length belongs to others; in a rush turns become larger."""
_LONGEST_PAUSE: Final = 0.03
_CREDIT: Final = 0.05
"""What others did not need lately is theirs already: one long turn alone is no reason to rest."""
_MANY: Final = 8
"""From so many facts in a turn on there is a rush: the next turn waits for as many again, or
until all that was begun has come to something."""
_PLENTY: Final = 250
_CLOSE_ENOUGH: Final = 0.001
_MOST_STARTS: Final = 100
_ENDINGS: Final = (Stop, Abort, Kill)
_LOOKED_AT_AGAIN: Final = (Stop, Abort, Rest, Forget, Pardon, GiveUp, Appoint, Skip)
_CAME_TO_SOMETHING: Final = (Started, StartFailed, Adopted, Gone, StopFailed)
_MOST_ROUNDS: Final = 8
"""Plans within one turn: a change of books may allow the next at once; a bug must not loop."""


class Reconciler:
    """Compares wish and fact whenever something happened, and once in a while regardless."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        clock: Clock,
        ledger: Ledger,
        performer: Performer,
        declared: Callable[[], Declaration],
        believe: Believe,
        new_nonce: Callable[[], str],
        attempts: Attempts | None = None,
    ) -> None:
        self._clock = clock
        self._ledger = ledger
        self._performer = performer
        self._declared = declared
        self._believe = believe
        self._new_nonce = new_nonce
        self._attempts = attempts
        self._facts: list[tuple[SlotFact, Moment, int]] = []
        """Each with its time and the version of the declaration that was in force then."""
        self._names: set[str] | None = set()
        self._later: dict[str, None] = {}
        """Workers whose starts were too many for one turn, in their order."""
        self._wakes: list[tuple[float, str]] = []
        self._awaited: dict[str, float] = {}
        """The soonest wake of each worker: a day's wait is looked at often, and noted once."""
        self._alarm = asyncio.Event()
        self._rest_until = self._rush_until = Instant(0.0)
        self._begun: set[str] = set()
        """Slots of which something was begun that has not come to anything yet."""
        self._all_told = asyncio.Event()
        self._plenty = inf
        """So many facts are worth a turn although more are about to come."""
        self._turning = False
        self.turned = 0
        """Version of the declaration that the last whole turn went by."""
        self._after: tuple[int, Mapping[str, tuple[str, ...]]] = (-1, {})
        self._at_rest: tuple[Declaration, Observed] | None = None
        """What was last found to need nothing at all, now or at any time."""

    def report(self, fact: SlotFact) -> None:
        """Hear of a fact; it is taken in with the next turn."""
        # What is ordered before the next turn was ordered after this: it is not honoured by it.
        self._facts.append((fact, self._clock.now(), self._declared().version))
        self._alarm.set()
        if isinstance(fact, _CAME_TO_SOMETHING):
            self._begun.discard(fact.slot)
            if not self._begun or len(self._facts) >= self._plenty:
                self._all_told.set()

    def wake(self, names: Iterable[str] | None) -> None:
        """Look at these workers again soon (at all of them: None)."""
        if names is None:
            self._names = None
        elif self._names is not None:
            self._names.update(names)
        self._alarm.set()

    async def wait(self) -> None:
        """Sleep until something happened or is due."""
        cancel = None
        if self._wakes and not self._alarm.is_set():
            cancel = self._clock.alarm(Instant(self._wakes[0][0]), self._alarm.set)
        try:
            await self._alarm.wait()
        finally:
            if cancel is not None:
                cancel()
        await self._rest()

    async def _rest(self) -> None:
        """Leave others their time; in a rush, wait for what was begun: turns become larger."""
        if self._declared().closing is None:
            pause = self._rest_until - self._clock.now().mono
            if pause > 0:
                await self._clock.sleep(pause)
        else:  # nobody is left who needs the time: the first ends are recorded during the last
            self._plenty = _PLENTY
            if len(self._facts) >= _PLENTY:
                return
        if not self._begun or self._rush_until <= self._clock.now().mono:
            return
        self._all_told.clear()
        cancel = self._clock.alarm(self._rush_until, self._all_told.set)
        try:
            await self._all_told.wait()
        finally:
            cancel()

    @property
    def rested(self) -> bool:
        """Tell whether everything so far has been taken in, and nothing is left to be begun."""
        waiting = self._alarm.is_set() or self._facts or self._later or self._names is None
        return not (waiting or self._turning)

    async def turn(self, observed: Observed, news: Iterable[Event] = ()) -> Observed:
        """Do one turn and give what is known afterwards. If it fails, no fact is lost by that."""
        self._turning = True
        try:
            return await self._turn(observed, news)
        finally:
            self._turning = False

    async def _turn(self, observed: Observed, news: Iterable[Event]) -> Observed:
        self._alarm.clear()
        facts, self._facts = self._facts, []
        names, self._names = self._names, set()
        now = self._clock.now()
        declaration = self._declared()
        draft = Draft(observed, declaration.version)
        draft.events += news
        try:
            for fact, at, version in facts:
                draft.absorb(fact, at, seen=version)
            self._decide(draft, declaration, names, now)
            if not draft.events:
                self.turned = declaration.version
                return observed
            recorded = self._ledger.number(draft.events)
            await self._ledger.write(
                Batch(events=recorded, slots=draft.changed, forgotten=draft.forgotten)
            )
        except Exception:
            self._facts[:0] = facts
            raise
        known = draft.observed()
        self._believe(known, recorded)
        self._act(draft, known)
        self.turned = declaration.version
        self._plan_rest(draft, now, rush=max(len(facts), len(draft.launches)) >= _MANY)
        return known

    def _plan_rest(self, draft: Draft, began: Moment, *, rush: bool) -> None:
        begun = {launch.slot for launch in draft.launches}
        begun.update(each.slot for each in draft.actions if isinstance(each, _ENDINGS))
        self._begun |= begun
        ended = self._clock.now().mono
        latest = ended + _LONGEST_PAUSE
        waits = rush and not begun
        share = (1 + _SHARE) * (ended - began.mono)
        even = max(self._rest_until, began.mono - _CREDIT) + share
        self._rest_until = Instant(latest if waits else min(latest, even))
        self._rush_until = Instant(ended + (_LONGEST_PAUSE if rush else 0.0))

    def _decide(
        self, draft: Draft, declaration: Declaration, names: set[str] | None, now: Moment
    ) -> None:
        look_at = None if names is None else names | self._due(now.mono) | draft.touched
        if look_at is None:
            self._later.clear()
        elif self._later:
            look_at |= self._take_later()
        for _ in range(_MOST_ROUNDS):
            if look_at is not None:
                look_at = self._with_neighbours(look_at, declaration, draft)
                if not look_at:
                    return
            steps = self._planned(declaration, draft.observed(), look_at, now)
            for action in steps.actions:
                if isinstance(action, Start) and not self._may_start(action, declaration, draft):
                    continue
                draft.begin(action, now, self._new_nonce, _cause(action, declaration))
            for name, at in steps.wakes:
                self._wake_at(name, at)
            known = draft.observed()
            look_at = {
                worker_of(each.slot) for each in steps.actions if _may_allow_more(each, known)
            }
            if not look_at:
                return

    def _planned(
        self, declaration: Declaration, known: Observed, look_at: set[str] | None, now: Moment
    ) -> Plan:
        rest = self._at_rest
        if look_at is None and rest and rest[0] is declaration and rest[1] is known:
            return Plan(at=now.mono)  # only time differs, and the plan named none
        steps = plan(
            declaration,
            known,
            now.mono,
            wall=now.wall,
            # In order: the same facts lead to the same history, whatever a set's order is.
            names=None if look_at is None else sorted(look_at),
            after=self._leaning(declaration, known),
        )
        if look_at is None:
            nothing = not steps.actions and not steps.wakes
            self._at_rest = (declaration, known) if nothing else None
        return steps

    def _may_start(self, start: Start, declaration: Declaration, draft: Draft) -> bool:
        if len(draft.launches) >= _MOST_STARTS:
            # The first ones get going while the others are being recorded.
            self._later[worker_of(start.slot)] = None
            self._alarm.set()
            return False
        return self._attempts is None or self._attempts.allow(start, declaration)

    def _take_later(self) -> set[str]:
        taken = list(islice(self._later, _MOST_STARTS))
        for name in taken:
            del self._later[name]
        if self._later:
            self._alarm.set()
        return set(taken)

    def _due(self, now: Instant) -> set[str]:
        due: set[str] = set()
        while self._wakes and self._wakes[0][0] <= now:
            at, name = heapq.heappop(self._wakes)
            if self._awaited.get(name) == at:
                del self._awaited[name]
            due.add(name)
        return due

    def _wake_at(self, name: str, at: Instant) -> None:
        if at < self._awaited.get(name, NEVER) - _CLOSE_ENOUGH:
            self._awaited[name] = at
            heapq.heappush(self._wakes, (at, name))

    def _with_neighbours(self, names: set[str], declaration: Declaration, draft: Draft) -> set[str]:
        """Add whoever a change of these may affect: what comes after them, what they come after."""
        found = set(names)
        _, after = self._after
        for name in names:
            found.update(after.get(name, ()))
            entry = declaration.workers.get(name)
            spec = draft.terms_of(name) if entry is None else entry.spec
            if spec is not None:
                found.update(other for other, _ in spec.depends_on)
        if declaration.closing is not None:  # companions go last, whoever went before
            found.update(name for name in declaration.workers if is_companion(name))
        return found

    def _leaning(self, declaration: Declaration, known: Observed) -> Mapping[str, tuple[str, ...]]:
        if self._after[0] != declaration.version:
            self._after = (declaration.version, dependents(declaration.workers, known))
        return self._after[1]

    def _act(self, draft: Draft, known: Observed) -> None:
        if draft.launches:
            self._performer.start(draft.launches)
        for action in draft.actions:
            if isinstance(action, _ENDINGS):
                self._performer.end(action, known)
            elif isinstance(action, Amend):
                self._performer.amend(action.spec)
        for slot in draft.forgotten:
            if not known.of(worker_of(slot)):
                self._performer.forget(worker_of(slot))


def _may_allow_more(action: Action, known: Observed) -> bool:
    """Tell whether something may follow at once from what an action changed in the books.

    A start allows nothing before it has come to something; a stop or a next run has a time at
    which it is looked at again.
    """
    match action:
        case Amend():
            # Nothing, before whoever asks for its health has heard of its terms; if anybody does.
            state, spec = known.slots[action.slot].state, action.spec
            asked = spec.ready or spec.live or spec.heartbeat
            return state is State.EXITED or (state is State.RUNNING and not asked)
        case Wait():
            return action.due is not None
        case _:
            return isinstance(action, _LOOKED_AT_AGAIN)


def _cause(action: Action, declaration: Declaration) -> str | None:
    """Name the order an action follows from, if its reason says that it follows from one."""
    entry = declaration.workers.get(worker_of(action.slot))
    return None if entry is None else order_behind(entry.override, action.why)
