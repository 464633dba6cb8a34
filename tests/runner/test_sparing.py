"""What a Python worker carries, and that nothing is missing when it is needed."""

from __future__ import annotations

import json

import pytest

from runner.nurseries import Nursery

WORKER = """
import json, sys
import uphold
class Job(uphold.Worker):
    async def setup(self): pass
    async def run(self, stopping):
        with open("/proc/self/status") as file:
            size = [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
        print(json.dumps({"modules": sorted(sys.modules), "size": size}))
    def health(self): return uphold.Health()
"""
BARE = """
with open("/proc/self/status") as file:
    print([int(line.split()[1]) for line in file if line.startswith("VmRSS")][0])
"""


@pytest.mark.parametrize(
    "name",
    ["ssl", "msgspec", "yaml", "sqlite3", "http.client"]
    + [f"uphold.{part}" for part in ("core", "config", "errors", "host", "wire", "cli")],
)
def test_the_runner_does_not_load(nursery: Nursery, name: str):
    nursery.write(WORKER)
    _, out, _ = nursery.end(nursery.host())
    modules = json.loads(out)["modules"]
    assert "uphold.runner.hosting" in modules
    assert name not in modules


def test_the_runner_weighs_less_than_12_megabytes_more_than_python(nursery: Nursery):
    nursery.write(WORKER)
    hosted = json.loads(nursery.end(nursery.host())[1])["size"][0]
    bare = int(nursery.end(nursery.start("-c", BARE))[1])
    assert hosted - bare < 12_000


TLS = """
import asyncio, sys
import uphold
class Job(uphold.Worker):
    async def setup(self):
        print("ssl" in sys.modules)
        async def answer(reader, writer):
            writer.write(b"this is no TLS\\n" * 100)
            await writer.drain()
            writer.close()
        self.server = await asyncio.start_server(answer, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        print(len(await reader.read()))
        writer.close()
    async def run(self, stopping):
        try:
            await asyncio.open_connection("127.0.0.1", self.port, ssl=True)
        except OSError as cause:
            print(type(cause).__name__)
        import ssl
        from asyncio import sslproto
        print(ssl.SSLError.__module__, sslproto.SSLProtocol.__name__, ssl.__file__ != "")
    def health(self): return uphold.Health()
"""


def test_tls_comes_when_a_worker_speaks_it(nursery: Nursery):
    nursery.write(TLS)
    code, out, err = nursery.end(nursery.host())
    assert (code, err) == (0, "")
    assert out.splitlines() == ["False", "1500", "SSLError", "ssl SSLProtocol True"]
