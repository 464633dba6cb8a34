"""The orchestrator's dispatcher: hands each request to the agent it is for."""

from __future__ import annotations

import uphold
from agent_runtime import places
from agent_runtime.queues import MOST_ATTEMPTS, Job

LOOK_EVERY = 0.2


class Dispatcher(uphold.Worker):
    """Moves requests from the inbox to the agents' queues."""

    async def setup(self) -> None:
        """Open the inbox and the agents' queues."""
        self.sent = 0
        self.refused = 0
        self.inbox = places.inbox()
        self.inbox.recover()
        self.agents = {name: places.agent_queue(name) for name in places.agents()}

    async def run(self, stopping: uphold.Stopping) -> None:
        """Dispatch until asked to stop; a request takes no time, so nothing is left in hand."""
        while not stopping.is_set():
            job = self.inbox.claim()
            if job is None:
                await stopping.wait(LOOK_EVERY)
            else:
                self._dispatch(job)

    def health(self) -> uphold.Health:
        """Say how much went through."""
        summary = f"{self.sent} dispatched, {self.refused} refused"
        waiting = self.inbox.count()
        return uphold.Health("busy" if waiting else "idle", summary, self.sent + self.refused)

    def _dispatch(self, job: Job) -> None:
        name = str(job.content.get("agent") or next(iter(self.agents)))
        queue = self.agents.get(name)
        if queue is None:
            # Trying again would not help.
            job.content["attempts"] = MOST_ATTEMPTS
            self.inbox.fail(job, f"there is no agent '{name}'")
            self.refused += 1
            print(f"refused: {job.id}: there is no agent '{name}'")
            return
        # The same id, so that a kill between the two lines makes no second job.
        queue.put({**job.content, "attempts": 0}, job.id)
        self.inbox.finish(job)
        self.sent += 1
