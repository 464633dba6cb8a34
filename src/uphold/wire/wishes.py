"""Wishes as plain content: how a plug-in's process tells the supervisor what a flag asks for.

Only wishes about named workers can be written and read. What changes the whole declaration, ends
the supervisor or lifts what a person must lift has no form here, so nobody can wish for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uphold.core import orders
from uphold.errors import Malformed
from uphold.wire.codecs import decode, encode, restore

_KINDS: Final[Mapping[str, Any]] = {
    kind.__name__: kind
    for kind in (
        orders.StartWorkers,
        orders.StopWorkers,
        orders.RestartWorkers,
        orders.RestartSlowly,
        orders.PauseWorkers,
        orders.ResumeWorkers,
        orders.EnableWorkers,
        orders.DisableWorkers,
        orders.QuarantineWorkers,
        orders.ResetWorkers,
        orders.SignalWorkers,
        orders.ScaleWorker,
        orders.UpdateCode,
        orders.RollBackCode,
        orders.Diagnose,
        orders.VerifyDatabase,
    )
}
WISHES: Final = tuple(_KINDS.values())
"""What a plug-in may wish for."""


def wish_view(wish: object) -> dict[str, Any]:
    """Write a wish down; Malformed if it is none, or none that plug-ins may have."""
    kind = type(wish)
    if _KINDS.get(kind.__name__) is not kind:
        known = ", ".join(_KINDS)
        raise Malformed(f"a {kind.__name__} is no wish of a plug-in; these are: {known}")
    return {"wish": kind.__name__, **decode(dict, encode(wish))}


def read_wish(view: Mapping[str, Any]) -> orders.Wish:
    """Read a wish; Malformed says what is wrong with it."""
    kind = _KINDS.get(str(view.get("wish")))
    if kind is None:
        raise Malformed(f"'{view.get('wish')}' is no wish of a plug-in")
    wish: orders.Wish = restore(kind, view)
    return wish


def names_in(wish: orders.Wish) -> tuple[str, ...]:
    """Name the workers a wish is about."""
    if isinstance(wish, orders.ScaleWorker):
        return (wish.name,)
    return wish.names if isinstance(wish, orders.Workers) else ()
