"""The share: whether it answers, and whether everything that must be on it is there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uphold.cli.checkups.findings import Finding, fail, ok, warn
from uphold.errors import HostFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uphold.core.specs import InboxSpec, Settings


def share_of(settings: Settings) -> Iterator[Finding]:
    """Look at the share through a helper, so that one that hangs costs seconds and no more."""
    spec = settings.inbox
    if spec is None:
        return
    from uphold.inbox.validating import judge

    try:
        found = asyncio.run(_survey(spec))
    except HostFailure as error:
        yield fail("share", error.message, error.remedy)
    else:
        issues = judge(found, spec).issues
        for issue in issues:
            level = fail if issue.grave else warn
            yield level(f"share {issue.what}", issue.text, issue.remedy)
        if not issues:
            free = found["space"]["percent_free"]
            yield ok("share", f"{spec.share}: all folders are there, {free:g} % are free.")
    yield from _signatures(spec)


async def _survey(spec: InboxSpec) -> dict[str, Any]:
    from uphold.host.clock import MachineClock
    from uphold.inbox.reaching import Reach
    from uphold.inbox.shares import Share

    reach = Reach(spec, owner="doctor", clock=MachineClock())
    try:
        return await Share(spec, reach).survey()
    finally:
        await reach.close()


def _signatures(spec: InboxSpec) -> Iterator[Finding]:
    if spec.require_signature:
        yield ok("flags", f"only signed ones are obeyed ({len(spec.senders)} senders).")
    elif spec.owners:
        users = ", ".join(spec.owners)
        yield ok("flags", f"only those are obeyed that belong to {users}, root or this user.")
    else:
        yield warn(
            "flags",
            "unsigned ones are obeyed: whoever can write to the share can give orders.",
            "If that is too many, name senders with keys, and set inbox.require_signature = true.",
        )
