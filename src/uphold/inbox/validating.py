"""What a survey of a share comes to: a sentence and a remedy for everything that is not right.

Pure: what was found is handed in (`Share.survey`). The doctor shows it, a supervisor tells of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.core.specs import InboxSpec

LITTLE: Final = 10.0
VERY_LITTLE: Final = 5.0
"""Per cent of free space below which people are warned."""


class Issue(NamedTuple):
    """One thing that is not as it should be."""

    what: str
    text: str
    remedy: str
    grave: bool = True
    """Without it something does not work; otherwise it deserves a look."""


class Validity(NamedTuple):
    """Whether a share can be worked with, and everything that is wrong with it."""

    valid: bool
    issues: tuple[Issue, ...]


def judge(found: Mapping[str, Any], spec: InboxSpec) -> Validity:
    """Judge a share by what was seen; every missing thing is an issue of its own."""
    issues = [
        *_folders(found, spec),
        *_kept(found["kept_by"], spec),
        *_paths(found["paths"], spec),
        *_room(found["space"]),
    ]
    return Validity(not any(issue.grave for issue in issues), tuple(issues))


def _folders(found: Mapping[str, Any], spec: InboxSpec) -> list[Issue]:
    layout = spec.layout
    told = (
        ("inbox", layout.inbox, "no flag can be read", "read and write"),
        ("outbox", layout.outbox, "no receipt can be left", "write"),
        ("logs", layout.logs, "neither logs nor reports can be left", "write"),
    )
    return [
        Issue(
            key,
            f"the folder {name} of the share cannot be used ({found[key]}): {means}.",
            f"Make {spec.share}/{name}, and let the supervisor's user {may} there.",
        )
        for key, name, means, may in told
        if found[key] is not None
    ]


def _kept(by: str | None, spec: InboxSpec) -> list[Issue]:
    if by is None:
        return []
    name = spec.layout.inbox
    text = f"the folder {name} of the share is sticky and belongs to {by}: flags of others stay."
    remedy = f"Give {spec.share}/{name} to the supervisor's user, or take its sticky bit away."
    return [Issue("inbox", text, remedy, grave=False)]


def _paths(seen: Mapping[str, str | None], spec: InboxSpec) -> list[Issue]:
    return [
        Issue(
            f"path {path}",
            f"the folder {path} of the share cannot be entered ({seen[path]}).",
            f"Make {spec.share}/{path}, let the supervisor's user enter it, "
            "or take it out of inbox.paths.",
        )
        for path in spec.paths
        if seen.get(path) is not None
    ]


def _room(space: Mapping[str, Any] | None) -> list[Issue]:
    if space is None or space["percent_free"] is None:
        return [Issue("space", "the share does not say how much room it has.", "", grave=False)]
    free = float(space["percent_free"])
    if free >= LITTLE:
        return []
    how = "very little" if free < VERY_LITTLE else "little"
    text = f"{how} room is left on the share: {free:g} %."
    return [Issue("space", text, "Free some space there; receipts and reports need it.", False)]
