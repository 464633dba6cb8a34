"""The heartbeat worker: reminds every agent from time to time that there may be something to do."""

from __future__ import annotations

import os

import uphold
from agent_runtime import places


class Heart(uphold.Worker):
    """Puts a request for each agent into the inbox, at an interval."""

    async def setup(self) -> None:
        """Read the interval; one that is no number fails here, by name."""
        self.every = float(os.environ.get("HEARTBEAT_EVERY", "600"))
        self.inbox = places.inbox()
        self.beats = 0

    async def run(self, stopping: uphold.Stopping) -> None:
        """Remind until asked to stop; nothing is reminded of at the start."""
        while not await stopping.wait(self.every):
            for agent in places.agents():
                # One name per agent: a reminder that still waits is not doubled.
                request = {"agent": agent, "text": "anything to do?", "channel": "heartbeat"}
                self.inbox.put(request, f"heartbeat-{agent}")
            self.beats += 1

    def health(self) -> uphold.Health:
        """Say how often it has beaten."""
        return uphold.Health("idle", f"{self.beats} rounds", self.beats)
