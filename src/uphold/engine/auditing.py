"""Lines of the audit: an order, its refusal, its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.ports.journals import AuditEntry

if TYPE_CHECKING:
    from uphold.core.orders import Order


def audit_entry(
    order: Order,
    names: tuple[str, ...],
    *,
    refused: str | None = None,
    outcome: str | None = None,
    at: float | None = None,
) -> AuditEntry:
    """Make the line of the audit for an order, its refusal, or (later) its outcome."""
    ending = "refused" if refused is not None else outcome
    details: dict[str, object] = {"origin": order.origin, "reason": order.reason}
    if refused is not None:
        details["error"] = refused
    if len(names) > 1:
        details["names"] = list(names)
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
