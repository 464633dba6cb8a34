"""The declaration: what people want, and how an order changes it.

Only the intake replaces the current declaration; everybody else reads a frozen value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, assert_never

from uphold.core import orders
from uphold.core.names import (
    is_companion,
    is_worker_name,
    nearest,
    slot_index,
    slot_name,
    worker_of,
)
from uphold.core.orders import Order, Refusal
from uphold.core.overrides import (
    PLAIN,
    Author,
    Override,
    file_says,
    reason,
    signed,
    still_in_force,
)
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import Admin

MOST_REPLICAS: Final = 1000


_WITHHOLDING: Final = {
    Admin.QUARANTINED: "quarantined",
    Admin.PAUSED: "held",
    Admin.DISABLED: "enabled",
    Admin.ENABLED: "up",
}
"""Which order it is that keeps a worker down, of several that may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One declared worker: its spec and what people ordered on top."""

    spec: WorkerSpec
    override: Override = PLAIN
    desired_version: int = 0
    """Version of the configuration that brought this spec."""

    @property
    def admin(self) -> Admin:
        """What people allow it to do."""
        if _chosen(self.override.quarantined, self.spec.quarantined):
            return Admin.QUARANTINED
        if self.override.held:
            return Admin.PAUSED
        if not _chosen(self.override.enabled, self.spec.enabled):
            return Admin.DISABLED
        return Admin.ENABLED

    @property
    def ordered_down(self) -> str:
        """Which order it is that keeps it down, and whose; empty where the file alone does."""
        key = _WITHHOLDING[self.admin]
        by_order = getattr(self.override, key) is (self.admin in (Admin.QUARANTINED, Admin.PAUSED))
        return reason(self.override, key) if by_order else ""

    @property
    def up(self) -> bool:
        """Tell whether it shall run, as far as start and stop are concerned."""
        return _chosen(self.override.up, self.spec.autostart)

    @property
    def replicas(self) -> int:
        """How many slots it shall have."""
        chosen = self.override.replicas
        return self.spec.replicas if chosen is None else chosen

    @property
    def wanted(self) -> bool:
        """Tell whether its slots shall run, all things considered."""
        return self.admin is Admin.ENABLED and self.up and not self.override.withheld

    def wants(self, slot: str) -> bool:
        """Tell whether this slot shall run; it may be one that was scaled away."""
        return self.wanted and slot_index(slot) <= self.replicas

    def slots(self) -> tuple[str, ...]:
        """Name the slots it shall have."""
        if self.replicas == 1:
            return (self.spec.name,)
        return tuple(slot_name(self.spec.name, index + 1) for index in range(self.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Everything that is wanted, at one version."""

    version: int = 0
    config_version: int = 0
    workers: Mapping[str, Entry] = field(default_factory=lambda: MappingProxyType({}))
    absent: frozenset[str] = frozenset()
    """Who is kept down (`Override.withheld`) and not in the file: coming back lifts nothing."""
    paused: bool = False
    """The supervisor itself is paused: it watches and does not act."""
    closing: str | None = None
    """`stop` ends all workers, `keep` leaves them; None goes on."""
    hurried: bool = False
    """Whoever asked for the end asked again: nobody gets any grace."""

    @property
    def withheld(self) -> frozenset[str]:
        """Who is kept down while something is done to what they run from."""
        there = {name for name, entry in self.workers.items() if entry.override.withheld}
        return self.absent | there


def declare(declaration: Declaration, order: Order) -> Declaration | Refusal:
    """Apply an order; or say why not, and then nothing has changed."""
    wish = order.wish
    if declaration.closing == "stop" and isinstance(wish, orders.ShutDown) and wish.hurry:
        return replace(declaration, version=declaration.version + 1, hurried=True)
    if declaration.closing is not None:
        return Refusal(
            code="UPH_SUPERVISOR_STOPPING",
            message="the supervisor is shutting down and takes no more orders.",
            remedy="Start it again, then repeat the order.",
        )
    version = declaration.version + 1
    match wish:
        case orders.Declare():
            return _declared(declaration, wish, version)
        case orders.PauseSupervisor():
            return replace(declaration, version=version, paused=True)
        case orders.ResumeSupervisor():
            return replace(declaration, version=version, paused=False)
        case orders.ShutDown():
            return replace(
                declaration, version=version, closing="keep" if wish.keep_workers else "stop"
            )
        case orders.ScaleWorker():
            return _about_workers(declaration, order, (wish.name,), version)
        case _:
            return _about_workers(declaration, order, wish.names, version)


def _declared(declaration: Declaration, wish: orders.Declare, version: int) -> Declaration:
    workers = {
        name: entry
        for name, entry in declaration.workers.items()
        if is_companion(name) and wish.companions is None
    }
    config_version = declaration.config_version + 1
    for spec in (*(wish.companions or ()), *wish.specs):
        before = declaration.workers.get(spec.name)
        if before is not None and (before.spec is spec or before.spec == spec):
            workers[spec.name] = before
            continue
        after = _fresh(declaration, spec) if before is None else follow_file(before, spec)
        workers[spec.name] = replace(after, desired_version=config_version)
    return replace(
        declaration,
        version=version,
        config_version=config_version,
        workers=MappingProxyType(workers),
        absent=declaration.withheld - workers.keys(),
    )


def _fresh(declaration: Declaration, spec: WorkerSpec) -> Entry:
    withheld = spec.name in declaration.absent
    return Entry(spec=spec, override=Override(withheld=True) if withheld else PLAIN)


def follow_file(before: Entry, spec: WorkerSpec) -> Entry:
    """Give the worker this spec; what people ordered for a key that differs no longer holds."""
    override = still_in_force(before.override, file_says(before.spec), file_says(spec))
    return replace(before, spec=spec, override=override)


def _about_workers(
    declaration: Declaration, order: Order, names: tuple[str, ...], version: int
) -> Declaration | Refusal:
    wish = order.wish
    assert not isinstance(
        wish,
        orders.Declare | orders.PauseSupervisor | orders.ResumeSupervisor | orders.ShutDown,
    )
    workers = dict(declaration.workers)
    by = f"{order.author}: {order.reason}" if order.reason else order.author
    absent = declaration.absent
    for name in names:
        entry = workers.get(name)
        if entry is None and isinstance(wish, orders.WithholdWorkers | orders.ReleaseWorkers):
            keep = isinstance(wish, orders.WithholdWorkers)
            absent = absent | {name} if keep else absent - {name}
            continue
        if entry is None:
            return unknown(name, declaration.workers)
        refusal = _refusal(entry, wish)
        if refusal is not None:
            return refusal
        override = _overridden(entry.override, wish, version)
        # Let back on its schedule, it waits for its time: only a start means "now".
        waits = entry.spec.schedule is not None and not isinstance(wish, orders.StartWorkers)
        if waits or (isinstance(wish, _ALLOWING) and entry.wanted):
            override = replace(override, kick=entry.override.kick)
        author = Author(by=by, order=order.id)
        override = signed(override, _ordered(entry.override, override, wish), author)
        if not isinstance(wish, _NOBODYS_WISH | orders.ScaleWorker):
            override = replace(override, by=by, order=order.id)
        if not isinstance(wish, _NOBODYS_WISH):
            # For all keys at once: one that the file changed is no longer overridden.
            override = replace(override, said=file_says(entry.spec))
        workers[name] = replace(entry, override=override)
    return replace(declaration, version=version, workers=MappingProxyType(workers), absent=absent)


def _overridden(  # noqa: C901, PLR0912 - one arm for each wish
    override: Override, wish: orders.AboutWorkers | orders.ScaleWorker, version: int
) -> Override:
    match wish:
        case orders.StartWorkers():
            return replace(override, up=True, kick=version)
        case orders.StopWorkers():
            return replace(override, up=False)
        case orders.RestartWorkers():
            return replace(override, up=True, nudge=version)
        case orders.PauseWorkers():
            return replace(override, held=True)
        case orders.ResumeWorkers():
            return replace(override, held=False, kick=version)
        case orders.EnableWorkers():
            return replace(override, enabled=True, kick=version)
        case orders.DisableWorkers():
            return replace(override, enabled=False)
        case orders.QuarantineWorkers():
            return replace(override, quarantined=True)
        case orders.ApproveWorkers():
            return replace(override, quarantined=False, kick=version)
        case orders.ResetWorkers():
            return replace(override, pardon=version)
        case orders.ScaleWorker():
            return replace(override, replicas=wish.replicas)
        case orders.WithholdWorkers():
            return replace(override, withheld=True)
        case orders.ReleaseWorkers():
            return replace(override, withheld=False, kick=version)
        case (
            orders.SignalWorkers()
            | orders.UpdateCode()
            | orders.RollBackCode()
            | orders.FinishDeploy()
            | orders.RestartSlowly()
            | orders.Diagnose()
            | orders.VerifyDatabase()
        ):
            return override
        case _:
            assert_never(wish)


def _ordered(before: Override, after: Override, wish: orders.Wish) -> Iterator[str]:
    """Name what an order is about; again if it was so before, as it is kept so by both."""
    for kind, key in _ABOUT:
        if isinstance(wish, kind):
            yield key
    if after.kick != before.kick:
        yield "kick"


_ABOUT: Final = (
    (orders.StartWorkers | orders.StopWorkers | orders.RestartWorkers, "up"),
    (orders.EnableWorkers | orders.DisableWorkers, "enabled"),
    (orders.QuarantineWorkers | orders.ApproveWorkers, "quarantined"),
    (orders.PauseWorkers | orders.ResumeWorkers, "held"),
    (orders.RestartWorkers, "nudge"),
    (orders.ResetWorkers, "pardon"),
)


_NOBODYS_WISH: Final = (
    orders.SignalWorkers | orders.WithholdWorkers | orders.ReleaseWorkers | orders.Errand
)
"""What says nothing about whether a worker shall run, once it is over."""


_ALLOWING: Final = orders.EnableWorkers | orders.ApproveWorkers
"""What allows a worker to run, and asks nothing of one that was allowed to before."""


_LIFTED_BY: Final = {
    Admin.PAUSED: "resume",
    Admin.DISABLED: "enable",
    Admin.QUARANTINED: "approve",
}


_TOUCHING: Final = (
    orders.StartWorkers
    | orders.StopWorkers
    | orders.RestartWorkers
    | orders.RestartSlowly
    | orders.ScaleWorker
    | orders.SignalWorkers
)
"""What needs a process here."""


def _refusal(entry: Entry, wish: orders.AboutWorkers | orders.ScaleWorker) -> Refusal | None:
    name = entry.spec.name
    if is_companion(name) and not isinstance(wish, orders.RestartWorkers | orders.SignalWorkers):
        return Refusal(
            code="UPH_ORDER_REFUSED",
            message=f"'{name}' belongs to uphold: it can be restarted or signalled, no more.",
        )
    if entry.spec.remote and isinstance(wish, _TOUCHING):
        return Refusal(
            code="UPH_ORDER_REFUSED",
            message=f"'{name}' runs elsewhere: it is listened to, and cannot be told to "
            f"{wish.VERB}.",
            remedy=f"To leave it out of account: uphold pause {name} (or disable {name}).",
        )
    if isinstance(wish, orders.StartWorkers | orders.RestartWorkers):
        if entry.override.withheld:
            return Refusal(
                code="UPH_ORDER_REFUSED",
                message=f"what worker '{name}' runs from is being changed, so it cannot be told to"
                f" {wish.VERB}.",
                remedy="It comes back after that; see: uphold jobs",
            )
        verb = _LIFTED_BY.get(entry.admin)
        if verb is not None:
            return Refusal(
                code="UPH_ORDER_REFUSED",
                message=f"worker '{name}' is {entry.admin}, so it cannot be told to {wish.VERB}.",
                remedy=f"Lift that first: uphold {verb} {name}",
            )
    if isinstance(wish, orders.ScaleWorker) and not 0 <= wish.replicas <= MOST_REPLICAS:
        return Refusal(
            code="UPH_ORDER_INVALID",
            message=f"'{name}' can have 0 to {MOST_REPLICAS} slots, not {wish.replicas}.",
            exit_code=2,
        )
    return None


def unknown(name: str, known: Mapping[str, Entry]) -> Refusal:
    """Say that no worker is called so, and which one was probably meant."""
    owner = worker_of(name)
    if owner != name and owner in known:
        remedy = f"'{name}' is one slot of '{owner}'; orders take the worker: '{owner}'."
    elif not is_worker_name(name):
        remedy = "See the names with: uphold status"
    else:
        meant = nearest(name, known)
        remedy = f"Did you mean '{meant}'?" if meant else "See the names with: uphold status"
    return Refusal(
        code="UPH_WORKER_UNKNOWN",
        message=f"no worker is called '{name}'.",
        remedy=remedy,
        exit_code=5,
    )


def _chosen(override: bool | None, declared: bool) -> bool:  # noqa: FBT001 - two truths, one wins
    return declared if override is None else override
