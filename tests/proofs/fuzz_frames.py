"""Lines of any content on the control socket: each gets an answer, and so does the next good one.

The real server and methods over the real engine with fakes for the world. Answers of any content
go to the client, which gives a value or an UpholdError.
"""

from __future__ import annotations

import asyncio
import json
import socket

from uphold.control.client import Connection
from uphold.control.server import LONGEST_REQUEST, ControlServer
from uphold.core.specs import WorkerSpec
from uphold.daemon.methods import Methods
from uphold.errors import UpholdError
from uphold.testing.stages import Stage
from uphold.wire.redaction import Redactor

PATIENCE = 60.0
ROUNDS = 50
"""Looks after which an order that was not answered is believed to wait for something."""
PING = b'{"id": "good", "method": "ping"}\n'


class Frames:
    """Inputs are `request` (bytes for the server) or `answer` (bytes for the client)."""

    def __init__(self, folder):
        self._folder = folder
        self._server = None
        self._stage = None
        self._orders = 0
        self._uncaught = []

    async def open(self):
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self._uncaught.append(context)
        )
        specs = [WorkerSpec(name=name, command=("x",), replicas=2) for name in ("web", "db")]
        self._stage = await Stage(*specs).start()
        methods = Methods(
            supervisor=self._stage.supervisor,
            config=_Config(self._stage.config),
            read=lambda: self._stage.config.current.settings,
            clock=self._stage.clock,
            journal=self._stage.journal,
            about=lambda: {"pid": 1, "uphold": "0", "started_at": None},
            redactor=Redactor,
        )
        self._server = ControlServer(self._folder, methods.table(), methods.streams())
        await self._server.open()

    async def close(self):
        await self._server.close()
        await self._stage.supervisor.abandon()

    async def take(self, kind, data):
        if kind == "answer":
            self._client(data)
            return
        data = data if data.endswith(b"\n") else data + b"\n"
        for line in data.splitlines(keepends=True)[:8]:
            await self._request(line if line.endswith(b"\n") else line + b"\n")
        self._orders += 1
        if self._orders % 200 == 0:
            # What was ordered happens, and nothing is kept for ever.
            await self.close()
            await self.open()

    async def _request(self, line):
        reader, writer = await self._conversation()
        try:
            writer.write(line)
            answer = await self._answer(reader, may_wait=True)
            if answer is not None:
                self._judge(answer)
            if answer is not None and len(line) <= LONGEST_REQUEST and not _is_stream(answer):
                writer.write(PING)
                assert (await self._answer(reader))["id"] == "good"
        finally:
            writer.close()
        await self._another_is_answered()
        if self._uncaught:
            raise AssertionError(f"uncaught: {self._uncaught.pop()}")

    def _judge(self, answer):
        if "error" in answer:
            assert answer["error"]["code"] != "UPH_CONTROL_BROKEN", answer["error"]["message"]
            assert answer["error"]["message"], answer
        else:
            assert isinstance(answer["result"], dict), f"neither a result nor an error: {answer}"

    async def _another_is_answered(self):
        reader, writer = await self._conversation()
        writer.write(PING)
        assert (await self._answer(reader))["result"]["pid"] == 1
        writer.close()

    async def _conversation(self):
        return await asyncio.open_unix_connection(str(self._folder / "control.sock"), limit=1 << 26)

    async def _answer(self, reader, *, may_wait=False):
        """Give the next answer; None if it is an order's and that has not come true yet."""
        line = asyncio.ensure_future(reader.readline())
        for _ in range(ROUNDS if may_wait else 200 * ROUNDS):
            await asyncio.wait([line], timeout=0.005)
            if line.done():
                assert line.result(), "the server hung up"
                return json.loads(line.result())
            await self._stage.clock.advance(5.0)
        line.cancel()
        assert may_wait, "the server does not answer"
        return None

    def _client(self, data):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            connection = Connection.__new__(Connection)
            connection._socket, connection._received, connection._requests = ours, bytearray(), 0
            error = _reported(connection)
            assert error is None or (str(error) and isinstance(error.exit_code, int))


def _is_stream(answer):
    """Tell whether events follow, and no second answer can be asked for."""
    return answer.get("result", {}).keys() == {"seq"}


def _reported(connection):
    try:
        connection.call("status", patience=PATIENCE)
    except UpholdError as error:
        return error
    return None


class _Config:
    """The stage's configuration, as `reload` wants it."""

    path = "uphold.toml"

    def __init__(self, config):
        self._config = config

    @property
    def current(self):
        return self._config.current

    def reload(self, _asker):
        return self._config.current.settings
