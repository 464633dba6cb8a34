"""A share for a test: real folders, a real helper."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from uphold.core.specs import InboxSpec
from uphold.host.clock import MachineClock
from uphold.inbox.reaching import Reach
from uphold.inbox.shares import Inbox, Share

FOLDERS = (
    "00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS", "Worker_Inbox",
    "Worker_Outbox",
)  # fmt: skip


class Tools(NamedTuple):
    """What a test works with."""

    root: Path
    reach: Reach
    inbox: Inbox
    share: Share

    def drop(self, name: str, content: object = None) -> Path:
        """Put a file into the inbox, as a person would."""
        path = self.root / "Worker_Inbox" / name
        raw = content if isinstance(content, bytes) else json.dumps(content or {}).encode()
        path.write_bytes(raw)
        return path


def lay_out(root: Path) -> Path:
    """Make the folders of a share."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    return root


def tools_for(root: Path, **given) -> Tools:
    """Reach a share; needs a running loop."""
    spec = given.pop("spec", None) or InboxSpec(share=str(root))
    given = {"owner": "tester", "clock": MachineClock(), "patience": 60.0, **given}
    reach = Reach(spec, **given)
    return Tools(root, reach, Inbox(reach), Share(spec, reach))


def with_share(root: Path, work: Callable[[Tools], Awaitable[object]], **given) -> object:
    """Run something on a share, and let its helper go afterwards."""

    async def go() -> object:
        tools = tools_for(root, **given)
        try:
            return await work(tools)
        finally:
            await tools.reach.close()

    return asyncio.run(go())


@contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """Mount a small file system there, if that is allowed here."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)
