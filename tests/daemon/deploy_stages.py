"""The real engine with made-up processes, and updates of a real checkout."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from deploy.repositories import Repositories
from uphold.core import orders
from uphold.core.specs import DeploySpec, Gate, WorkerSpec
from uphold.daemon.deploying import Deploys
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating
from uphold.engine.jobs import Job
from uphold.ports.logs import NoLog
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
UPDATE = orders.UpdateCode(names=("web",))
BACK = orders.RollBackCode(names=("web",))


class Diary(NoLog):
    """Keeps what was logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def write(self, level: str, event: str, message: str, **more: Any) -> None:
        self.lines.append((level, message, more))

    @property
    def text(self) -> str:
        return "\n".join(message for _, message, _ in self.lines)


class DeployStage:
    """A stage whose worker runs from a checkout."""

    def __init__(
        self, folder: Path, *specs: WorkerSpec, commits: int = 4, rollback: bool = True
    ) -> None:
        self.there = Repositories(folder, commits=commits)
        self.path = folder / "deploy.json"
        self.diary = Diary()
        self.spec: DeploySpec | None = DeploySpec(
            repo=str(self.there.repo),
            workers=("web",),
            gate=Gate(healthy_for=5.0, rollback=rollback),
        )
        self.stage = Stage(*(specs or (WEB,)))
        self.settle()

    def settle(self) -> None:
        """Introduce the updates to the supervisor that is on the stage now."""
        self.deploys = Deploys(self.path, lambda: self.spec, self.stage.clock, self.diary)
        self.stage._errands = self.deploys.errands()
        self.stage.supervisor = self.stage._supervisor()
        self.deploys.attend(self.stage.supervisor)

    async def start(self) -> DeployStage:
        await self.stage.start()
        await self.stage.clock.advance(1)
        return self

    async def begin(self, wish: Any, **more: Any) -> Job:
        desk = self.stage.supervisor.desk
        job = await desk.submit(desk.order(wish, author="ann", origin="test", **more))
        assert isinstance(job, Job), job
        return job

    async def order(self, wish: Any, **more: Any) -> Job:
        """Have it done, to the end."""
        return await self.end(await self.begin(wish, **more))

    async def end(self, job: Job, step: float = 0.25) -> Job:
        """Let time pass until a job has ended; git takes real time, everything else does not."""
        await self.until(job.done.done, step)
        await self.stage.clock.settle()
        return job

    async def until(self, look: Callable[[], Any], step: float = 0.25) -> None:
        for _ in range(6_000):
            if look():
                return
            await asyncio.sleep(0.005)
            await self.stage.clock.advance(step)
        raise AssertionError("it did not become true")

    async def crash(self) -> None:
        """Kill the supervisor, and have the next one start."""
        await self.stage.crash()
        self.settle()
        await self.stage.start()

    def state(self, name: str = "web") -> str:
        return str(self.stage.status(name).state)

    @property
    def stops(self) -> int:
        return self.stage.driver.calls.count(("stop", "web"))

    @property
    def override(self) -> Any:
        return self.stage.supervisor.snapshot().declaration.workers["web"].override

    async def kinds(self) -> list[str]:
        """Name what was told so far."""
        return [each["type"] for each in await self.stage.journal.events(limit=1_000)]

    def audit(self, action: str) -> list[Any]:
        return [each for each in self.stage.journal.audit if each.action == action]

    async def close(self) -> None:
        await self.stage.supervisor.abandon()


def play(
    folder: Path, story: Callable[[DeployStage], Awaitable[None]], *specs: WorkerSpec, **more: Any
) -> None:
    """Play a story on a stage that is cleared away afterwards."""

    async def go() -> None:
        scene = await DeployStage(folder, *specs, **more).start()
        try:
            await story(scene)
        finally:
            await scene.close()

    asyncio.run(go())


def meanwhile(monkeypatch, act: Callable[[], Awaitable[None]], *, after: bool = False) -> None:
    """Have something happen while the code is being changed: before git, or after it."""
    loop = asyncio.get_running_loop()
    for kind in (Updating, RollingBack):
        monkeypatch.setattr(kind, "apply", _with(kind.apply, loop, act, after=after))


def _with(apply, loop, act, *, after):
    def changed(self, record, note):
        if not after:
            asyncio.run_coroutine_threadsafe(act(), loop).result(30)
        came = apply(self, record, note)
        if after:
            asyncio.run_coroutine_threadsafe(act(), loop).result(30)
        return came

    return changed
