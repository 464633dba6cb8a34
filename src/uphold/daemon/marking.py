"""Pause markers on the share: in step with holds, and orders where a hand makes or removes one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from uphold.core import orders
from uphold.core.orders import Refusal
from uphold.core.overrides import author_of
from uphold.host.files import write_atomically
from uphold.inbox.receipts import pause_marker_name
from uphold.wire.codecs import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from uphold.core.orders import Wish
    from uphold.core.overrides import Override
    from uphold.core.specs import InboxSpec
    from uphold.engine.supervisor import Supervisor
    from uphold.inbox.shares import Share


class Markers:
    """The pause markers of the workers that are steered by one share."""

    def __init__(
        self,
        spec: InboxSpec,
        share: Share,
        supervisor: Supervisor,
        kept: Path,
        watched: Callable[[], Sequence[str]],
    ) -> None:
        """`kept` is where the next supervisor reads what stood last; `watched` names workers."""
        self._spec = spec
        self._share = share
        self._supervisor = supervisor
        self._kept = kept
        self._watched = watched
        self._mirrored: dict[str, bool | None] | None = None
        """Which markers stood when holds and markers were last in step, None for one that we were
        about to change; None as a whole: not read yet."""
        self._written = b""
        """What the file says of them; written again only if there is something else to say."""

    async def mirror(self) -> None:
        """Bring holds and pause markers in step: a marker made or removed by hand is an order."""
        if self._mirrored is None:
            self._mirrored = await asyncio.to_thread(_read, self._kept, self._spec.share)
            self._written = self._shown(self._mirrored)
        try:
            for name in self._watched():
                await self._bring_in_step(name, self._mirrored)
        finally:
            await self._write_down(self._mirrored)

    async def _write_down(self, mirrored: dict[str, bool | None]) -> None:
        """Let the next supervisor, or the next pass, know what a hand has changed since."""
        content = self._shown(mirrored)
        if content != self._written and await asyncio.to_thread(_keep, self._kept, content):
            self._written = content

    def _shown(self, mirrored: dict[str, bool | None]) -> bytes:
        return encode({"share": self._spec.share, "markers": mirrored})

    async def _bring_in_step(self, name: str, mirrored: dict[str, bool | None]) -> None:
        """Bring one marker in step with its hold, and note whether it stands then."""
        override = self._override(name)
        held = override is not None and override.held
        marker = pause_marker_name(name)
        there = await self._share.look(f"{self._spec.layout.state}/{marker}") is not None
        unheard = name not in mirrored
        # Of a change of ours nobody may have heard what came of it: whatever stands there is ours.
        last = there if not unheard and mirrored[name] is None else mirrored.get(name)
        if there == held:
            mirrored[name] = held
        elif last == held or (unheard and there):
            # Nothing changed here, so somebody was there.
            wish = orders.PauseWorkers if there else orders.ResumeWorkers
            done = await self._order(wish(names=(name,)), f"{marker} by hand")
            mirrored[name] = there if done else held
        else:
            mirrored[name] = None
            await self._write_down(mirrored)
            await self._mark(name, held=held)
            mirrored[name] = held

    async def _mark(self, name: str, *, held: bool) -> None:
        if held:
            override = self._override(name)
            by = "" if override is None else author_of(override, "held").by
            content = encode({"worker_id": name, "by": by})
            await self._share.put("state", pause_marker_name(name), content)
        else:
            await self._share.remove("state", pause_marker_name(name))

    async def _order(self, wish: Wish, reason: str) -> bool:
        desk = self._supervisor.desk
        job = await desk.submit(desk.order(wish, author="share", origin="share", reason=reason))
        return not isinstance(job, Refusal)

    def _override(self, name: str) -> Override | None:
        entry = self._supervisor.snapshot().declaration.workers.get(name)
        return None if entry is None else entry.override


def _read(path: Path, share: str) -> dict[str, bool | None]:
    """Read which markers stood last on this share; nothing that can be read: none is known."""
    try:
        found = json.loads(path.read_bytes())
        return dict(found["markers"]) if found["share"] == share else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _keep(path: Path, content: bytes) -> bool:
    try:
        write_atomically(path, content)
    except OSError:  # a full disk: until there is room, no hand is seen after the next start
        return False
    return True
