"""Scenarios: the pure core as a script of what happens when, and what is decided then."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from typing import Self

from uphold.core import events, orders
from uphold.core.absorbing import Observed
from uphold.core.actions import Action, Plan
from uphold.core.declaring import Declaration, declare
from uphold.core.events import Moment, SlotFact
from uphold.core.orders import Order, Refusal, Wish
from uphold.core.planning import plan
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Exit, Fault, Identity, SlotStatus
from uphold.engine.drafts import Draft
from uphold.engine.ledger import Caused

EPOCH = 1_767_225_600.0


class Scenario:
    """Given specs, in time order: `at`, `orders`, `declares`, `expects`, and what happens."""

    def __init__(self, *specs: WorkerSpec) -> None:
        self.declaration = Declaration()
        self.observed = Observed()
        self.refusal: Refusal | None = None
        self.history: list[tuple[SlotFact, Moment, int]] = []
        """Every fact so far, when it became known, and at which version of the declaration."""
        self._now = 0.0
        self._wall = EPOCH
        self._nonces = 0
        self.declares(*specs)

    @property
    def now(self) -> Moment:
        """The moment the script has got to."""
        return Moment(mono=Instant(self._now), wall=self._wall + self._now)

    def at(self, seconds: float) -> Self:
        """Go on to this time."""
        assert seconds >= self._now, "a scenario goes forward in time"
        self._now = seconds
        return self

    def sets_clock(self, by: float) -> Self:
        """Let somebody set the clock on the wall, forward or back."""
        self._wall += by
        return self

    def declares(self, *specs: WorkerSpec) -> Self:
        """Let the file say this from now on."""
        return self.orders(orders.Declare(specs=specs))

    def orders(self, wish: Wish, author: str = "ann", reason: str = "") -> Self:
        """Let somebody want something; a refusal is kept in `refusal`."""
        order = Order(
            id="o", wish=wish, author=author, origin="test", at=self.now.wall, reason=reason
        )
        answer = declare(self.declaration, order)
        self.refusal = answer if isinstance(answer, Refusal) else None
        if not isinstance(answer, Refusal):
            self.declaration = answer
        return self

    def happens(self, *facts: SlotFact) -> Self:
        """Let these facts become known."""
        draft = Draft(self.observed, self.declaration.version)
        for fact in facts:
            draft.absorb(fact, self.now)
        return self._believes(draft)

    def rises(self, *slots: str) -> Self:
        """Let the programs of these slots run."""
        return self.happens(*(self.started(slot) for slot in slots))

    def cannot_start(
        self, slot: str, message: str = "no memory", *, hopeless: bool = False
    ) -> Self:
        """Let the program of this slot not come to life."""
        fault = Fault(code="UPH_SPAWN_FAILED", message=message)
        return self.happens(
            events.StartFailed(
                slot=slot,
                generation=self.status(slot).generation,
                fault=fault,
                hopeless=hopeless,
            )
        )

    def exits(
        self,
        slot: str,
        code: int | None = 0,
        *,
        signal: int | None = None,
        left_overs: bool = False,
    ) -> Self:
        """Let the main process of this slot end."""
        end = Exit(code=None if signal is not None else code, signal=signal, at=self.now.wall)
        return self.happens(
            events.Exited(
                slot=slot,
                generation=self.status(slot).generation,
                exit=end,
                left_overs=left_overs,
            )
        )

    def vanishes(self, *slots: str) -> Self:
        """Let it be proved that nothing of these slots exists any more."""
        return self.happens(
            *(
                events.Gone(slot=slot, generation=self.status(slot).generation, proof="test")
                for slot in slots
            )
        )

    def decides(self) -> Plan:
        """Give what would be done now, without doing it."""
        return plan(self.declaration, self.observed, self.now.mono, wall=self.now.wall)

    def acts(self) -> Plan:
        """Begin whatever is decided now, and give it."""
        decided = self.decides()
        draft = Draft(self.observed, self.declaration.version)
        for action in decided.actions:
            draft.begin(action, self.now, self._nonce)
        self._believes(draft)
        return decided

    def expects(self, *actions: Action, wake_at: float | None = None) -> Self:
        """Check that exactly these are decided now, and begin them.

        A reason given with an expected action must stand in the real one.
        """
        decided = self.acts()
        bare = [_bare(action) for action in decided.actions]
        assert bare == [_bare(action) for action in actions], f"decided: {decided.actions}"
        for real, wanted in zip(decided.actions, actions, strict=True):
            assert wanted.why in real.why, f"{wanted.why!r} is not in {real.why!r}"
        if wake_at is not None:
            assert isclose(decided.wake_at, wake_at, abs_tol=1e-6), decided.wake_at
        return self

    def status(self, slot: str) -> SlotStatus:
        """Look at what is known of a slot."""
        return self.observed.slots[slot]

    def started(self, slot: str) -> events.Started:
        """Make the fact that the program of this slot runs, without letting it be known."""
        status = self.status(slot)
        identity = Identity(
            pid=1000 + status.generation,
            start_ticks=int(self._now * 100),
            boot_id="boot-1",
            inode=0,
            nonce=status.nonce,
        )
        return events.Started(slot=slot, generation=status.generation, identity=identity)

    def _believes(self, draft: Draft) -> Self:
        for each in draft.events:
            event = each.event if isinstance(each, Caused) else each
            assert not isinstance(event, events.Note), event  # a change the table forbids
            if not isinstance(event, events.StateChanged):
                self.history.append((event, self.now, self.declaration.version))
        self.observed = draft.observed()
        return self

    def _nonce(self) -> str:
        self._nonces += 1
        return f"nonce{self._nonces}"


def _bare(action: Action) -> Action:
    return replace(action, why="")
