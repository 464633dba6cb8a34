"""Which news a change of the declaration is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.core import orders
from uphold.core.changes import at_next_run, differences, restarting
from uphold.core.events import Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uphold.core.declaring import Declaration
    from uphold.core.orders import Order, Refusal

_NEWS: Final[dict[type, str]] = {
    orders.PauseWorkers: "worker.paused",
    orders.ResumeWorkers: "worker.resumed",
    orders.QuarantineWorkers: "worker.quarantined",
    orders.ApproveWorkers: "worker.approved",
}


def names_of(order: Order, before: Declaration, after: Declaration) -> tuple[str, ...]:
    """Name the workers an order is about, each once; for a new file those that it changes."""
    wish = order.wish
    match wish:
        case orders.Declare():
            changed = [
                name
                for name, entry in after.workers.items()
                if (old := before.workers.get(name)) is not entry and old != entry
            ]
            removed = [name for name in before.workers if name not in after.workers]
            return (*changed, *removed)
        case orders.ScaleWorker():
            return (wish.name,)
        case orders.PauseSupervisor() | orders.ResumeSupervisor() | orders.ShutDown():
            return ()
        case _:
            return tuple(dict.fromkeys(wish.names))


def news_of(order: Order, before: Declaration, after: Declaration) -> Iterator[Note]:
    """Tell what an accepted order changed."""
    wish = order.wish
    yield order_note("order.accepted", order)
    match wish:
        case orders.Declare():
            yield from _file_news(order, before, after)
        case orders.PauseSupervisor() | orders.ResumeSupervisor():
            if before.paused != after.paused:  # else nothing has happened that could be told
                kind = "supervisor.paused" if after.paused else "supervisor.resumed"
                yield supervisor_note(kind, order.author)
        case _:
            news = _NEWS.get(type(wish))
            for name in names_of(order, before, after) if news else ():
                yield worker_note(str(news), name, {"by": order.author, "reason": order.reason})


def _file_news(order: Order, before: Declaration, after: Declaration) -> Iterator[Note]:
    assert isinstance(order.wish, orders.Declare)
    for name, entry in after.workers.items():
        old = before.workers.get(name)
        if old is entry:  # as for most: a file is edited here and there
            continue
        if old is None:
            version: dict[str, object] = {"desired_version": entry.desired_version}
            yield worker_note("worker.added", name, version)
        elif old.spec != entry.spec:
            payload: dict[str, object] = {
                "desired_version": entry.desired_version,
                "keys": list(differences(old.spec, entry.spec)),
                "restarts": bool(restarting(old.spec, entry.spec))
                and not at_next_run(old.spec, entry.spec),
            }
            yield worker_note("worker.updated", name, payload)
    for name in before.workers:
        if name not in after.workers:
            yield worker_note("worker.removed", name, {})
    yield Note(
        type="config.applied",
        entity_type="config",
        entity_id=order.wish.source or "config",
        payload={"version": after.config_version, "workers": len(order.wish.specs)},
    )


def order_note(kind: str, order: Order, **more: object) -> Note:
    """Make a note about an order."""
    failed = kind in ("order.refused", "order.failed")
    return Note(
        type=kind,
        entity_type="order",
        entity_id=order.id,
        payload={
            "verb": order.wish.VERB,
            "author": order.author,
            "origin": order.origin,
            "reason": order.reason,
            "label": order.label,
            **more,
        },
        severity="warning" if failed else "info",
    )


def refusal_note(order: Order, refusal: Refusal) -> Note:
    """Make the note that an order was not taken."""
    return order_note("order.refused", order, code=refusal.code, error=refusal.message)


def worker_note(kind: str, name: str, payload: dict[str, object]) -> Note:
    """Make a note about a worker."""
    return Note(type=kind, entity_type="worker", entity_id=name, payload=payload)


def supervisor_note(kind: str, by: str = "", **payload: object) -> Note:
    """Make a note about the supervisor itself."""
    if by:
        payload["by"] = by
    return Note(type=kind, entity_type="supervisor", entity_id="supervisor", payload=payload)
