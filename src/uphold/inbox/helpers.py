"""One helper process, seen from the supervisor: started, asked, heard, given up.

Which requests there are, and what becomes of a share whose helper does not answer, is decided in
`shares`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.core.specs import Limits
from uphold.errors import HostFailure
from uphold.host.processes import Process, hold_child
from uphold.host.processes.spawning import Program, spawn
from uphold.inbox.helping import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

UNREACHABLE: Final = "UPH_SHARE_UNREACHABLE"
_PROGRAM: Final = str(Path(__file__).with_name("helping.py"))


class Helper(asyncio.Protocol):
    """A helper that runs, and the answers that are waited for."""

    def __init__(self, process: Process, stir: Callable[[bool], None] = lambda _: None) -> None:
        """`stir` hears that something has come, or (True) that nobody will tell that any more."""
        self._process = process
        self._stir = stir
        self._left = False
        """Nobody wants to hear of it any more."""
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if process.descriptor >= 0:
            asyncio.get_running_loop().add_reader(process.descriptor, self._ended)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.identity.pid

    @property
    def usable(self) -> bool:
        """Tell whether it can be asked."""
        return self._transport is not None and not self._transport.is_closing()

    def over(self) -> bool:
        """Tell whether its process has ended; looks, where nothing tells of that."""
        if not self._end.done() and not self._process.alive():
            self._ended()
        return self._end.done()

    def when_over(self, call: Callable[[], object]) -> None:
        """Have something called as soon as its process has ended."""
        self._end.add_done_callback(lambda _: call())

    def ask(self, request: Mapping[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the answer comes in its own time, or the helper ends before."""
        assert self._transport is not None
        self._count += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        number = self._count
        self._waiting[number] = answer
        answer.add_done_callback(lambda _: self._waiting.pop(number, None))
        # The standard library's: names of files may hold what is no UTF-8.
        self._transport.write(json.dumps({"id": number, **request}).encode() + b"\n")
        return answer

    def abandon(self, failure: HostFailure) -> None:
        """Wait for it no more. One that hangs in the kernel ends only when the share lets it."""
        self._left = True
        waiting = tuple(self._waiting.values())
        for answer in waiting:
            if not answer.done():
                answer.set_exception(failure)
        if self._transport is not None:
            self._transport.abort()
        if not self._end.done():
            self._process.send(signal.SIGKILL)

    async def ended(self) -> None:
        """Wait until its process has ended."""
        if not self.over():
            await asyncio.shield(self._end)

    def hang_up(self) -> None:
        """Let it end by itself, as nobody will ask any more."""
        self._left = True
        if self._transport is not None:
            self._transport.close()

    def let_go(self) -> None:
        """Hold its process no longer, whatever becomes of it."""
        self._ended()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand answers to whoever waits for them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                answer = json.loads(line)
                waiting = self._waiting.get(answer["id"])
            except (ValueError, LookupError, TypeError, RecursionError):
                text = "the helper of the share says what nobody understands."
                self.abandon(HostFailure(text, code=UNREACHABLE))
                return
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
            elif "news" in answer and not self._left:
                self._stir(False)  # it lives, and something has come

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever still waits that no answer will come."""
        why = "" if exc is None else f" ({exc})"
        unforeseen = not self._left
        self.abandon(HostFailure(f"the helper of the share has ended{why}.", code=UNREACHABLE))
        if unforeseen:
            self._stir(True)

    def _ended(self) -> None:
        if self._end.done():
            return
        if self._process.descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._process.descriptor)
        with suppress(OSError):
            self._process.reap()
        self._process.close()
        self._end.set_result(None)


async def start_helper(
    root: str, settings: Mapping[str, Any], stir: Callable[[bool], None] = lambda _: None
) -> Helper:
    """Start a helper for one share; HostFailure if no program can be started."""
    try:
        ours, process = _spawn(root, settings)
    except OSError as cause:
        raise HostFailure(
            f"no helper could be started for the share {root}: {cause.strerror}.",
            code="UPH_START_NO_RESOURCES",
        ) from cause
    helper = Helper(process, stir)
    try:
        await asyncio.get_running_loop().create_connection(lambda: helper, sock=ours)
    except BaseException:
        ours.close()
        helper.abandon(HostFailure("the helper of the share was not reached.", code=UNREACHABLE))
        raise
    return helper


def _spawn(root: str, settings: Mapping[str, Any]) -> tuple[socket.socket, Process]:
    ours, theirs = socket.socketpair()
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # The whole name of the interpreter, no site, no variables: it needs nothing of ours.
    argv = (sys.executable, "-I", "-S", "-X", "utf8", _PROGRAM, root, json.dumps(dict(settings)))
    try:
        program = Program(
            path=sys.executable,
            argv=argv,
            environment={},
            working_dir="/",
            out=nowhere,
            err=nowhere,
            lock=None,
            umask=None,
            account=None,
            limits=Limits(),
            extra=(theirs.fileno(), REQUESTS),
        )
        # Should it not be possible to hold it, it ends by itself: nobody is at the other end.
        process = hold_child(spawn(program), "")
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(nowhere)
    return ours, process
