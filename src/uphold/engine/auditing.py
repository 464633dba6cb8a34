"""Lines of the audit: an order, its refusal, its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.ports.journals import AuditEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.core.orders import Order


def audit_entry(  # noqa: PLR0913 - what a line is made of, by name
    order: Order,
    names: tuple[str, ...],
    *,
    refused: str | None = None,
    outcome: str | None = None,
    at: float | None = None,
    more: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Make the line of the audit for an order, its refusal, or (later) its outcome."""
    ending = "refused" if refused is not None else outcome
    details: dict[str, object] = {"origin": order.origin, "reason": order.reason}
    if refused is not None:
        details["error"] = refused
    if order.task_id is not None:
        details["task_id"] = order.task_id
    if len(names) > 1:
        details["names"] = list(names)
    details |= more or {}
    return AuditEntry(
        id=order.id if ending is None else f"{order.id}.{ending}",
        actor=order.author,
        action=order.wish.VERB if ending is None else f"{order.wish.VERB}.{ending}",
        target_type="worker" if names else "supervisor",
        target_id=names[0] if len(names) == 1 else ("*" if names else "supervisor"),
        label=order.label,
        at=order.at if at is None else at,
        details=details,
    )
