"""The queue processor: works off the queues of all agents, one job at a time.

Asked to stop, it lets the job in hand finish if that is soon, and otherwise puts it back.
"""

from __future__ import annotations

import asyncio

import uphold
from agent_runtime import agents, places
from agent_runtime.queues import FileQueue, Job

FINISH_WITHIN = 2.0
"""How long, in seconds, a stop waits for the job in hand; well within uphold's stop.grace."""
LOOK_EVERY = 0.2


class QueueProcessor(uphold.Worker):
    """Turns jobs into answers."""

    async def setup(self) -> None:
        """Open the queues, and take back what a killed life of ours held."""
        self.done = self.dead = 0
        self.doing = ""
        self.queues = {name: places.agent_queue(name) for name in places.agents()}
        found = sum(queue.recover() for queue in self.queues.values())
        if found:
            print(f"took back {found} jobs that were in hand when the last life ended")

    async def run(self, stopping: uphold.Stopping) -> None:
        """Work until asked to stop."""
        while not stopping.is_set():
            worked = False
            for agent, queue in self.queues.items():
                job = None if stopping.is_set() else queue.claim()
                if job is not None:
                    worked = True
                    await self._work(agent, queue, job, stopping)
            if not worked:
                await stopping.wait(LOOK_EVERY)

    def health(self) -> uphold.Health:
        """Idle is well, too; what was given up is said."""
        summary = f"{self.done} done, {self.dead} given up" + (f"; {self.doing}" * bool(self.doing))
        return uphold.Health("busy" if self.doing else "idle", summary, self.done + self.dead)

    async def _work(
        self, agent: str, queue: FileQueue, job: Job, stopping: uphold.Stopping
    ) -> None:
        self.doing = f"{agent} works on {job.id}"
        work = asyncio.create_task(agents.answer(agent, str(job.content.get("text", ""))))
        try:
            text = await _finished(work, stopping)
        except Exception as cause:  # noqa: BLE001 - whatever an agent raises is about this job
            if queue.fail(job, f"{type(cause).__name__}: {cause}"):
                self.dead += 1
                print(f"given up: {job.id}: {cause}")
        else:
            if text is None:
                queue.put_back(job)
                print(f"put back, as it is time to stop: {job.id}")
            else:
                self._send(agent, job, text)
                queue.finish(job)
                self.done += 1
        self.doing = ""

    def _send(self, agent: str, job: Job, text: str) -> None:
        channel = str(job.content.get("channel", "none"))
        answer = {"agent": agent, "text": text, "chat": job.content.get("chat")}
        places.outbox(channel).put(answer, job.id)


async def _finished(work: asyncio.Task[str], stopping: uphold.Stopping) -> str | None:
    """Give the answer; None if it is time to stop and the answer takes too long."""
    asked = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not work.done():
        await asyncio.wait({work}, timeout=FINISH_WITHIN)
    if work.done():
        return work.result()
    work.cancel()
    return None
