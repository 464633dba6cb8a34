"""Scenarios: the pure core as a script of what happens when, and what is decided then."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from uphold.core import orders
from uphold.core.absorbing import Illegal, Observed, absorb
from uphold.core.actions import Action
from uphold.core.declaring import Declaration, declare
from uphold.core.events import Moment, SlotFact
from uphold.core.orders import Order, Refusal, Wish
from uphold.core.planning import plan
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import SlotStatus
from uphold.engine.drafts import Draft

EPOCH = 1_767_225_600.0


class Scenario:
    """Given specs, in time order: `at`, `happens`, `orders`, `declares`, `expects`."""

    def __init__(self, *specs: WorkerSpec) -> None:
        self.declaration = Declaration()
        self.observed = Observed()
        self.refusal: Refusal | None = None
        self._now = 0.0
        self._nonces = 0
        self.declares(*specs)

    @property
    def now(self) -> Moment:
        """The moment the script has got to."""
        return Moment(mono=Instant(self._now), wall=EPOCH + self._now)

    def at(self, seconds: float) -> Self:
        """Go on to this time."""
        assert seconds >= self._now, "a scenario goes forward in time"
        self._now = seconds
        return self

    def declares(self, *specs: WorkerSpec) -> Self:
        """Let the file say this from now on."""
        return self.orders(orders.Declare(specs=specs))

    def orders(self, wish: Wish, author: str = "ann") -> Self:
        """Let somebody want something; a refusal is kept in `refusal`."""
        order = Order(id="o", wish=wish, author=author, origin="test", at=self.now.wall)
        answer = declare(self.declaration, order)
        self.refusal = answer if isinstance(answer, Refusal) else None
        if not isinstance(answer, Refusal):
            self.declaration = answer
        return self

    def happens(self, *facts: SlotFact) -> Self:
        """Let these facts become known."""
        for fact in facts:
            before = self.observed.slots.get(fact.slot) or SlotStatus(slot=fact.slot)
            after = absorb(before, fact, self.now, self.declaration.version)
            assert not isinstance(after, Illegal), after
            self.observed = self.observed.with_changes([after], ())
        return self

    def decides(self) -> tuple[Action, ...]:
        """Give what would be done now, without doing it."""
        return plan(self.declaration, self.observed, self.now.mono).actions

    def expects(self, *actions: Action, wake_at: float | None = None) -> Self:
        """Check that exactly these are decided now, and begin them.

        A reason given with an expected action must stand in the real one.
        """
        decided = plan(self.declaration, self.observed, self.now.mono)
        assert [_bare(action) for action in decided.actions] == [_bare(a) for a in actions]
        for real, wanted in zip(decided.actions, actions, strict=True):
            assert wanted.why in real.why, f"{wanted.why!r} is not in {real.why!r}"
        if wake_at is not None:
            assert abs(decided.wake_at - wake_at) < 1e-6, decided.wake_at
        draft = Draft(self.observed, self.declaration.version)
        for action in decided.actions:
            draft.begin(action, self.now, self._nonce)
        self.observed = draft.observed()
        return self

    def status(self, slot: str) -> SlotStatus:
        """Look at what is known of a slot."""
        return self.observed.slots[slot]

    def _nonce(self) -> str:
        self._nonces += 1
        return f"nonce{self._nonces}"


def _bare(action: Action) -> Action:
    return replace(action, why="")
