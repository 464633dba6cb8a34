"""Threads for what may be slow: each does one thing, and nobody waits for it at exit."""

from __future__ import annotations

import _thread
import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """Do something slow in a thread of its own, which nobody waits for at exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer | None, cause: BaseException | None) -> None:
        if future.done():
            return
        if cause is not None:
            future.set_exception(cause)
        else:
            future.set_result(answer)  # type: ignore[arg-type] # an answer when nothing was raised

    def run() -> None:
        answer: Answer | None = None
        cause: BaseException | None = None
        try:
            answer = work()
        except BaseException as raised:  # noqa: BLE001 - handed to whoever waits
            cause = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, answer, cause)

    # Not `threading`: that waits until the thread has begun, which a busy machine lets us feel.
    _thread.start_new_thread(run, ())
    return await future


def aside(work: Callable[[], None]) -> None:
    """Have something done that may take a moment, and that nobody waits for."""
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # there may be no more threads: then it takes that moment of ours
        work()
