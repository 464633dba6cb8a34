"""Heartbeat files that workers leave on the share: read by its helper, as everything there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.core.notices import UNANSWERED, Refused
from uphold.errors import HostFailure
from uphold.host.beats import LONGEST, Written, missing, unanswered, unreadable
from uphold.inbox.helpers import UNREACHABLE
from uphold.inbox.reaching import NOT_MOUNTED
from uphold.inbox.shares import Odd

if TYPE_CHECKING:
    from uphold.inbox.shares import Share


async def read_beat_file(share: Share, path: str, below: str) -> Written | Refused:
    """Read a file by its path `below` the top; `path` is what it is called in words."""
    try:
        found = await share.read(below, LONGEST)
    except HostFailure as cause:
        if cause.code == UNREACHABLE:
            return unanswered(path)
        why = cause.message.removesuffix(".")
        if cause.code == NOT_MOUNTED:
            return Refused(UNANSWERED, f"the heartbeat file {path} cannot be read: {why}.")
        return unreadable(path, why)
    if found is None:
        return missing(path)
    if isinstance(found, Odd):
        return unreadable(path, f"it is {found.what}")
    return Written(found.raw, found.modified)
