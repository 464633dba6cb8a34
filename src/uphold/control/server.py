"""The server of the local socket: newline-delimited JSON, a closed table of methods.

It knows the protocol and nothing about supervising; what a method does is handed in. Only
the owner of the home and root may speak (S01).
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.core.names import nearest
from uphold.errors import ConfigInvalid, UpholdError
from uphold.wire.frames import Request, decode_request, encode_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    Method = Callable[[Mapping[str, Any]], Awaitable[object]]
    Stream = Callable[[Mapping[str, Any]], tuple[object, AsyncIterator[bytes]]]

SOCKET_NAME: Final = "control.sock"
LONGEST_REQUEST: Final = 1 << 20
_MOST_UNSENT: Final = 4 << 20


class Underway(NamedTuple):
    """An answer in two lines: that an order was accepted, and when it is known what came of it."""

    accepted: Mapping[str, object]
    outcome: Callable[[], Awaitable[object]]


class ControlServer:
    """Answers requests on HOME/control.sock until closed."""

    def __init__(
        self, home: Path, methods: Mapping[str, Method], streams: Mapping[str, Stream]
    ) -> None:
        self._home = home
        self._methods = methods
        self._streams = streams
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begin to answer."""
        listener = bind(self._home)
        self._server = await asyncio.start_unix_server(
            self._converse, sock=listener, limit=LONGEST_REQUEST
        )

    async def close(self) -> None:
        """Stop answering; conversations end, the socket file goes."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._conversations):
            task.cancel()
        if self._conversations:
            await asyncio.wait(self._conversations, timeout=1.0)
        with suppress(FileNotFoundError):
            (self._home / SOCKET_NAME).unlink()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        try:
            if _may_speak(writer):
                await self._answer_all(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # they hung up, or we are closing
        finally:
            self._conversations.discard(task)
            writer.close()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                await _send(writer, _refused(None, "the request is longer than 1 MiB."))
                return
            if not line:
                return
            request = decode_request(line)
            if isinstance(request, str):
                await _send(writer, _refused(None, request))
                continue
            if request.method in self._streams:
                if await self._stream(request, writer):
                    return
                continue
            answer = await self._answer(request)
            if isinstance(answer, Underway):
                await _send(writer, encode_line({"id": request.id, "accepted": answer.accepted}))
                answer = await _attempt(request, answer.outcome())
            assert isinstance(answer, bytes)
            await _send(writer, answer)

    async def _answer(self, request: Request) -> bytes | Underway:
        method = self._methods.get(request.method)
        if method is None:
            meant = nearest(request.method, {*self._methods, *self._streams})
            hint = f" Did you mean '{meant}'?" if meant else ""
            return _refused(request.id, f"there is no method '{request.method[:64]}'.{hint}")
        return await _attempt(request, method(request.params))

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer with a stream until its end; False if it was refused and others may be asked."""
        try:
            first, lines = self._streams[request.method](request.params)
        except UpholdError as error:
            await _send(writer, encode_line({"id": request.id, "error": error_view(error)}))
            return False
        except Exception as error:  # noqa: BLE001 - the boundary, as above
            await _send(writer, _broken(request, error))
            return False
        await _send(writer, encode_line({"id": request.id, "result": first}))
        async for line in lines:
            if writer.transport.get_write_buffer_size() > _MOST_UNSENT:
                return True  # a reader that stopped reading is let go; it may ask again
            await _send(writer, line)
        return True


async def _attempt(request: Request, work: Awaitable[object]) -> bytes | Underway:
    """Give the answer that comes of some work, whatever goes wrong in it."""
    try:
        result = await work
        if isinstance(result, Underway):
            return result
        return encode_line({"id": request.id, "result": result})
    except UpholdError as error:
        return encode_line({"id": request.id, "error": error_view(error)})
    except Exception as error:  # noqa: BLE001 - the boundary: a bug answers, it does not hang up
        return _broken(request, error)


def bind(home: Path) -> socket.socket:
    """Make the socket: 0600 from birth, through the folder, since its path may be too long."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchmod(listener.fileno(), 0o600)
        with suppress(FileNotFoundError):
            os.unlink(SOCKET_NAME, dir_fd=folder)
        listener.bind(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
        listener.listen(128)
    finally:
        os.close(folder)
    listener.setblocking(False)
    return listener


def error_view(error: UpholdError) -> dict[str, object]:
    """Show an error on the wire."""
    view: dict[str, object] = {
        "code": error.code,
        "message": error.message,
        "remedy": error.remedy,
        "exit_code": error.exit_code,
    }
    if isinstance(error, ConfigInvalid):
        view["problems"] = [{"at": each.at, "text": each.text} for each in error.problems]
    return view


def _refused(request_id: object, why: str) -> bytes:
    error = UpholdError(why, code="UPH_CONTROL_REFUSED", exit_code=2)
    return encode_line({"id": request_id, "error": error_view(error)})


def _broken(request: Request, error: Exception) -> bytes:
    broken = UpholdError(
        f"the supervisor could not answer '{request.method}': {error!r}",
        code="UPH_CONTROL_BROKEN",
        remedy="This is a mistake in uphold; the supervisor goes on.",
    )
    return encode_line({"id": request.id, "error": error_view(broken)})


def _may_speak(writer: asyncio.StreamWriter) -> bool:
    peer = writer.get_extra_info("socket")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return uid in (0, os.geteuid())


async def _send(writer: asyncio.StreamWriter, line: bytes) -> None:
    writer.write(line)
    await writer.drain()
