"""One turn's worth of change, made ready before any of it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from uphold.core import actions, events
from uphold.core.absorbing import Illegal, Observed, absorb
from uphold.core.events import Note, StateChanged
from uphold.core.names import worker_of
from uphold.core.statuses import SlotStatus
from uphold.engine.ledger import Caused
from uphold.ports.drivers import Launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.actions import Action
    from uphold.core.events import Event, Moment, SlotFact
    from uphold.core.specs import WorkerSpec


class Draft:
    """Facts absorbed and actions begun in one turn: journalled together, then believed."""

    def __init__(self, observed: Observed, version: int) -> None:
        self._observed = observed
        self._version = version
        self._changed: dict[str, SlotStatus] = {}
        self._forgotten: dict[str, None] = {}
        self._known: Observed | None = observed
        """What will be known, as long as nothing has changed since it was put together."""
        self.events: list[Event | Caused] = []
        self.launches: list[Launch] = []
        self.actions: list[Action] = []

    @property
    def touched(self) -> set[str]:
        """The workers whose slots changed."""
        return {worker_of(slot) for slot in (*self._changed, *self._forgotten)}

    @property
    def changed(self) -> tuple[SlotStatus, ...]:
        """The slots that changed, as they are now."""
        return tuple(self._changed.values())

    @property
    def forgotten(self) -> tuple[str, ...]:
        """The slots that are gone for good."""
        return tuple(self._forgotten)

    def terms_of(self, worker: str) -> WorkerSpec | None:
        """Give what a worker that may no longer be declared was started under."""
        for slot in self._observed.of(worker):
            return self._observed.slots[slot].terms
        return None

    def observed(self) -> Observed:
        """Give what will be known once this is recorded."""
        if self._known is None:
            self._known = self._observed.with_changes(self._changed.values(), self._forgotten)
        return self._known

    def absorb(
        self, fact: SlotFact, at: Moment, cause: str | None = None, seen: int | None = None
    ) -> None:
        """Take in one fact, with the change of state it means.

        `seen` is the version of the declaration when it happened; that of the draft unless said.
        """
        slot = fact.slot
        before = self._changed.get(slot) or self._observed.slots.get(slot)
        if before is None:
            before = SlotStatus(slot=slot, since=at.mono, since_wall=at.wall)
        after = absorb(before, fact, at, self._version if seen is None else seen)
        if isinstance(after, Illegal):
            self.events.append(_illegal(after))
            return
        if after is before and not isinstance(fact, events.Forgotten):
            return
        self.events.append(Caused(fact, cause))
        self._known = None
        if isinstance(fact, events.Forgotten):
            self._changed.pop(slot, None)
            self._forgotten[slot] = None
            return
        self._forgotten.pop(slot, None)
        self._changed[slot] = after
        if after.state is not before.state:
            changed = StateChanged(slot=slot, before=before.state, after=after.state, why=after.why)
            self.events.append(Caused(changed, cause))

    def begin(
        self,
        action: Action,
        at: Moment,
        new_nonce: Callable[[], str],
        cause: str | None = None,
    ) -> None:
        """Record that an action has begun, before it touches the world."""
        current = self._changed.get(action.slot) or self._observed.slots.get(action.slot)
        generation = 0 if current is None else current.generation
        fact = self._begun(action, generation, new_nonce)
        self.absorb(fact, at, cause)
        if isinstance(action, actions.Start):
            assert isinstance(fact, events.StartBegun)
            self.launches.append(
                Launch(
                    slot=action.slot,
                    generation=fact.generation,
                    nonce=fact.nonce,
                    spec=action.spec,
                )
            )
        elif isinstance(action, actions.Stop | actions.Abort | actions.Kill | actions.Amend):
            self.actions.append(action)

    def _begun(  # noqa: C901, PLR0912 - one arm for each action
        self, action: Action, generation: int, new_nonce: Callable[[], str]
    ) -> SlotFact:
        match action:
            case actions.Start():
                return events.StartBegun(
                    slot=action.slot,
                    generation=generation + 1,
                    nonce=new_nonce(),
                    terms=action.spec,
                    seen=self._version,
                    automatic=action.automatic,
                    why=action.why,
                    due=action.due,
                )
            case actions.Stop():
                return events.StopBegun(
                    slot=action.slot,
                    generation=generation,
                    why=action.why,
                    due=action.due,
                    forgives=action.forgives,
                )
            case actions.Abort():
                return events.AbortBegun(slot=action.slot, generation=generation, why=action.why)
            case actions.Kill():
                return events.KillBegun(slot=action.slot, generation=generation)
            case actions.Wait():
                return events.WaitBegun(
                    slot=action.slot, why=action.why, afresh=action.afresh, due=action.due
                )
            case actions.Appoint():
                return events.Appointed(slot=action.slot, due=action.due, why=action.why)
            case actions.Skip():
                return events.Skipped(slot=action.slot, due=action.due, why=action.why)
            case actions.GiveUp():
                return events.GaveUp(slot=action.slot, why=action.why)
            case actions.Rest():
                return events.Rested(slot=action.slot, why=action.why)
            case actions.Forget():
                return events.Forgotten(slot=action.slot)
            case actions.Pardon():
                return events.Pardoned(slot=action.slot)
            case actions.Amend():
                return events.Amended(slot=action.slot, terms=action.spec)
            case _:
                assert_never(action)


def _illegal(found: Illegal) -> Note:
    return Note(
        type="worker.illegal_transition",
        entity_type="worker",
        entity_id=worker_of(found.slot),
        payload={
            "slot": found.slot,
            "before": str(found.before),
            "after": str(found.after),
            "fact": found.fact,
        },
        severity="error",
    )
