"""The life of one hosted worker: set up, ready, run and beat, stop, tear down."""

from __future__ import annotations

import asyncio
import signal
import sys
import traceback
from contextlib import suppress
from inspect import isawaitable
from typing import Any

from uphold.runner.describing import describe
from uphold.runner.targets import TargetWrong, load
from uphold.sdk import asking
from uphold.sdk.awaiting import Stopping
from uphold.sdk.healths import Health
from uphold.sdk.telling import Line
from uphold.sdk.workers import Worker, is_async

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
DONE = 0
FAILED = 1
NOT_SET_UP = 78
"""The customary exit code for "cannot be configured"."""
TARGET_WRONG = "UPH_PYTHON_TARGET"
SETUP_FAILED = "UPH_PYTHON_SETUP"
RUN_FAILED = "UPH_PYTHON_RUN"
TEARDOWN_FAILED = "UPH_PYTHON_TEARDOWN"
_SOON = 1.0
"""How long to wait, in seconds, before it is said again to a supervisor that was busy."""


def make(target: str, line: Line) -> Worker | None:
    """Import and construct what is to be hosted; what goes wrong is told and printed."""
    try:
        kind = load(target)
    except TargetWrong as wrong:
        _tell(line, TARGET_WRONG, str(wrong))
        return None
    try:
        return kind()
    except Exception as cause:  # noqa: BLE001 - whatever a worker raises is its own
        traceback.print_exc()
        _tell(line, SETUP_FAILED, f"{target} cannot be constructed: {describe(cause)}.")
        return None


class Host:
    """Carries one worker through its life; what goes wrong is told and printed."""

    def __init__(self, worker: Worker, *, name: str, line: Line, every: float) -> None:
        self._worker = worker
        self._name = name
        self._line = line
        self._every = every
        self._stopping = Stopping()
        self._last_trouble = ""

    async def serve(self) -> int:
        """Live that life; the answer is the exit code."""
        self._listen(asyncio.get_running_loop())
        asking.hand_over(self._stopping.blocking)
        begun = await self._set_up()
        if begun is not None:
            return begun
        beating = asyncio.create_task(self._beat_on(), name="beating")
        ended = await self._attempt(RUN_FAILED, self._worker.run)
        tidied = await self._attempt(TEARDOWN_FAILED, self._worker.teardown)
        beating.cancel()
        return DONE if ended and tidied else FAILED

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take requests to stop, from now until the very end of the process.

        Not by the loop: it would give the signals back when it closes, and a second request
        that comes then would end the process by force.
        """

        def asked(_: int, __: object) -> None:
            with suppress(RuntimeError):  # the loop has closed: it is ending anyway
                loop.call_soon_threadsafe(self._stop)

        for number in STOP_SIGNALS:
            signal.signal(number, asked)

    def _stop(self) -> None:
        """Ask the worker to stop, once: who asks again will have to wait, or to kill."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._line.say("STOPPING=1")

    async def _set_up(self) -> int | None:
        """Set the worker up; the answer is the exit code, if it is to end already."""
        setting_up = asyncio.ensure_future(self._attempt(SETUP_FAILED, self._worker.setup))
        asked = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({setting_up, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not setting_up.done() and is_async(self._worker.setup):
            setting_up.cancel()
        try:
            done = await setting_up
        except asyncio.CancelledError:
            return DONE  # stopped before it was ready: nothing is there to be torn down
        return None if done else NOT_SET_UP

    async def _attempt(self, code: str, part: Any) -> bool:
        """Call one part of the worker; False if it failed, which is told."""
        try:
            await self._call(part, code)
        except asyncio.CancelledError:
            if code == SETUP_FAILED and self._stopping.is_set():
                raise
            self._fail(code, part, asyncio.CancelledError("it was cancelled"))
            return False
        except Exception as cause:  # noqa: BLE001 - whatever a worker raises is its own
            self._fail(code, part, cause)
            return False
        return True

    async def _call(self, part: Any, code: str) -> None:
        awaited = is_async(part)
        given: tuple[Any, ...] = ()
        if code == RUN_FAILED:
            if self._stopping.is_set():
                return  # asked to stop while it was set up: there is nothing to begin
            given = (self._stopping if awaited else self._stopping.blocking,)
        if awaited:
            await part(*given)
            return
        result = await asyncio.to_thread(part, *given)
        if isawaitable(result):
            raise TypeError(
                f"{part.__name__} gave something to await; declare it with 'async def'."
            )

    def _fail(self, code: str, part: Any, cause: BaseException) -> None:
        traceback.print_exception(cause)
        message = f"{part.__name__}() of {self._name} failed: {describe(cause)}."
        _tell(self._line, code, message)

    async def _beat_on(self) -> None:
        """Say that it is ready, and from then on how it does."""
        is_told = False
        while True:
            is_told = is_told or self._stopping.is_set() or self._line.say("READY=1")
            health = self._look()
            progress = self._line.progress if health.progress is None else health.progress
            beaten = self._line.beat(health.status, progress, health.summary, health.error)
            await asyncio.sleep(self._every if is_told and beaten else min(self._every, _SOON))

    def _look(self) -> Health:
        """Ask the worker how it does; failing to answer is an answer."""
        trouble = ""
        try:
            health: Any = self._worker.health()
            if not isinstance(health, Health):
                trouble = f"health() gave {type(health).__name__}, not an uphold.Health"
        except Exception as cause:  # noqa: BLE001 - as above
            trouble = f"health() failed: {describe(cause)}"
        if trouble and trouble != self._last_trouble:
            sys.stderr.write(f"uphold: {self._name}: {trouble}.\n")
        self._last_trouble = trouble
        return Health.failing(trouble) if trouble else health


def _tell(line: Line, code: str, message: str) -> None:
    sys.stderr.write(f"uphold: {message} [{code}]\n")
    line.fail(code, message.removesuffix("."))  # the supervisor puts it into a sentence of its own
