"""What people ordered for a worker on top of the file, and how long that holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uphold.core.specs import WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the file said about the keys that orders can override."""

    autostart: bool
    enabled: bool
    quarantined: bool
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What people ordered for one worker on top of the file; None follows the file.

    `nudge`, `kick` and `pardon` are versions of the declaration: a slot whose last change
    is older than the number has not yet honoured it. So a restart is a declaration too, and
    a stop that lands in between simply wins.
    """

    up: bool | None = None
    enabled: bool | None = None
    quarantined: bool | None = None
    replicas: int | None = None
    held: bool = False
    withheld: bool = False
    """Kept down while something is done to what it runs from; nobody's wish for good."""
    nudge: int = 0
    """The last restart order."""
    kick: int = 0
    """The last start order."""
    pardon: int = 0
    """The last reset order."""
    by: str = ""
    """Who last ordered it up, down or reset, and why: for people who ask."""
    order: str = ""
    """The id of that order."""
    said: Said | None = None
    """What the file said at the last order; None in books older than this field."""


PLAIN: Final = Override()


def file_says(spec: WorkerSpec) -> Said:
    """Read off what the file says about the keys that orders can override."""
    return Said(
        autostart=spec.autostart,
        enabled=spec.enabled,
        quarantined=spec.quarantined,
        replicas=spec.replicas,
    )


def still_in_force(override: Override, before: Said, now: Said) -> Override:
    """Keep what was ordered for keys about which the file says the same as before.

    A hold is no key of the file, so no file lifts it.
    """
    return replace(
        override,
        up=override.up if before.autostart == now.autostart else None,
        enabled=override.enabled if before.enabled == now.enabled else None,
        quarantined=override.quarantined if before.quarantined == now.quarantined else None,
        replicas=override.replicas if before.replicas == now.replicas else None,
    )


def after_absence(override: Override, spec: WorkerSpec) -> Override:
    """Keep what holds under a file that may have been edited while no supervisor ran.

    Books that do not know what the file said hold everything, and are compared from now on.
    """
    now = file_says(spec)
    if override.said is None:
        return override if override == PLAIN else replace(override, said=now)
    return replace(still_in_force(override, override.said, now), said=now)
