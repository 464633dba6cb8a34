"""What people ordered for a worker on top of the file, and how long that holds."""

from __future__ import annotations

from collections.abc import Iterable
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
class Author:
    """Who gave an order, and why, for people who ask; and which order it was."""

    by: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    """Who last ordered each thing that can be ordered; None: nobody, or in older books."""

    up: Author | None = None
    enabled: Author | None = None
    quarantined: Author | None = None
    held: Author | None = None
    nudge: Author | None = None
    kick: Author | None = None
    pardon: Author | None = None


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
    """Who gave the last order about it, and why."""
    order: str = ""
    """The id of that order."""
    authors: Authors = Authors()
    """Whose each of these is: the last order need not be the one that keeps it down."""
    said: Said | None = None
    """What the file said at the last order; None in books older than this field."""


PLAIN: Final = Override()


_DEEDS: Final = {
    "up": "stopped",
    "enabled": "disabled",
    "quarantined": "quarantined",
    "held": "paused",
    "nudge": "restart ordered",
    "kick": "start ordered",
    "pardon": "reset",
}
"""What becomes of a worker by an order about each of these, in words."""
_ABOUT: Final = {deed: key for key, deed in _DEEDS.items()}
_BY: Final = " by "


def author_of(override: Override, key: str) -> Author:
    """Say whose one of the things is that were ordered; nobody's where that is not clear."""
    found: Author | None = getattr(override.authors, key)
    if found is not None:
        return found
    known = (getattr(override.authors, each) for each in _DEEDS)
    if override.order not in {each.order for each in known if each is not None}:
        # The last order was given before these were kept, and nobody knows any other.
        return Author(by=override.by, order=override.order)
    return Author()


def reason(override: Override, key: str) -> str:
    """Give the reason for what is done because of an order."""
    by = author_of(override, key).by
    return f"{_DEEDS[key]}{_BY}{by}" if by else _DEEDS[key]


def order_behind(override: Override, why: str) -> str | None:
    """Give the id of the order that a reason is about; None if it is about none."""
    deed, _, by = why.partition(_BY)
    key = _ABOUT.get(deed)
    if key is None or not by:
        return None  # as with nearly all: of a thousand starts at once this is asked each time
    author = author_of(override, key)
    return author.order or None if author.by == by else None


def signed(override: Override, keys: Iterable[str], author: Author) -> Override:
    """Note whose these are from now on."""
    return replace(override, authors=replace(override.authors, **dict.fromkeys(keys, author)))


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
