"""How a plan looks: one line per worker, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.cli.rendering import columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from uphold.cli.screens import Screen

    Change = Mapping[str, Any]

_HEADER: Final = ("WORKER", "ACTION", "REASON")


def is_change(change: Change) -> bool:
    """Tell whether anything would be done."""
    return bool(change["action"] != "none")


def change_lines(
    changes: Sequence[Change], screen: Screen, *, unchanged: bool = False
) -> list[str]:
    """List what would change (and what would not, if asked), with a sum at the end."""
    wanted = [change for change in changes if unchanged or is_change(change)]
    count = sum(map(is_change, changes))
    total = "nothing to change" if not count else "1 change" if count == 1 else f"{count} changes"
    if not wanted:
        return [total]
    rows = [(change["name"], change["action"], _reason(change)) for change in wanted]
    return [*columns(rows, _HEADER, screen), total]


def _reason(change: Change) -> str:
    keys = ", ".join(change.get("keys") or ())
    reason = str(change.get("reason") or "")
    # The server's reason often names the keys already; saying them twice helps nobody.
    return reason if not keys or keys in reason else f"{reason} ({keys})"
