"""Stand-ins for modules: absent in ordinary work, whole as soon as somebody needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SPARED = (
    "array",
    "asyncio.sslproto",
    "dataclasses",
    "decimal",
    "hashlib",
    "heapq",
    "inspect",
    "linecache",
    "logging",
    "msgspec._json_schema",
    "msgspec.inspect",
    "msgspec.toml",
    "msgspec.yaml",
    "platform",
    "subprocess",
    "traceback",
    "urllib.parse",
    "uuid",
)
BEGIN = """
import sys
from uphold.daemon.sparing import Late, spare
spare()
def is_late(name):
    return isinstance(sys.modules[name], Late)
"""


def run(program: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", BEGIN + program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_supervisor_is_imported_without_them():
    program = f"import uphold.daemon.serving\nprint([n for n in {SPARED} if not is_late(n)])"
    assert run(program) == "[]"


def test_a_loop_with_signals_sockets_and_threads_needs_none_of_them(tmp_path: Path):
    program = f"""
import asyncio, os, signal
async def answer(reader, writer):
    writer.write(await reader.readline())
    writer.close()
async def main():
    loop = asyncio.get_running_loop()
    seen = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, seen.set)
    loop.add_signal_handler(signal.SIGINT, seen.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await seen.wait()
    server = await asyncio.start_unix_server(answer, "{tmp_path}/s")
    reader, writer = await asyncio.open_unix_connection("{tmp_path}/s")
    writer.write(b"x\\n")
    assert await reader.readline() == b"x\\n"
    writer.close()
    server.close()
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(os.getpid))
asyncio.run(main())
print([n for n in {SPARED} if not is_late(n)])
"""
    assert run(program) == "[]"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import inspect\ndef f(a, b=1): ...\nprint(inspect.signature(f))", "(a, b=1)"),
        ("import dataclasses\nprint(dataclasses.make_dataclass('P', ['x'])(1))", "P(x=1)"),
        ("import datetime\nprint(datetime.datetime(2000, 1, 2, tzinfo=datetime.UTC).year)", "2000"),
        ("import array\nprint(array.array('i', [1])[0])", "1"),
        ("import hashlib\nprint(hashlib.md5(b'x').hexdigest()[:8])", "9dd4e461"),
        ("import heapq\nprint(heapq.nsmallest(1, [3, 2]))", "[2]"),
        ("import uuid\nprint(uuid.uuid4().version, len(str(uuid.NAMESPACE_DNS)))", "4 36"),
        ("import msgspec\nprint(msgspec.toml.decode(b'a = 1'))", "{'a': 1}"),
        ("import decimal\nprint(decimal.getcontext().prec)", "28"),
        ("import msgspec\nprint(msgspec.inspect.type_info(None))", "NoneType()"),
        ("import msgspec\nprint(msgspec.json.schema(int))", "{'type': 'integer'}"),
        ("import subprocess\nprint(subprocess.run(['true']).returncode)", "0"),
        ("import logging\nprint(logging.getLogger('asyncio').level)", "0"),
        (
            "import traceback\ntry: 1/0\nexcept Exception: print('Zero' in traceback.format_exc())",
            "True",
        ),
        ("import platform\nprint(platform.system(), bool(platform.machine()))", "Linux True"),
        ("from pathlib import Path\nprint(Path('/a b').as_uri())", "file:///a%20b"),
        ("from urllib.parse import quote\nprint(quote('a b'))", "a%20b"),
        ("import hashlib\nprint(hashlib.sha256(b'').hexdigest()[:8])", "e3b0c442"),
        ("import linecache\nprint(linecache.getline('/nowhere', 1) == '')", "True"),
    ],
)
def test_whoever_needs_one_gets_the_real_one(program: str, said: str):
    assert run(program) == said


def test_what_asyncio_complains_of_is_still_told():
    program = """
import asyncio
async def main():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
asyncio.run(main())
"""
    ran = subprocess.run(
        [sys.executable, "-I", "-c", BEGIN + program], capture_output=True, text=True, check=True
    )
    assert "ZeroDivisionError" in ran.stderr


@pytest.mark.parametrize(
    "function", ["plain", "waiting", "Thing().waiting", "partial(waiting)", "partial(plain)"]
)
def test_coroutine_functions_are_told_apart_as_by_inspect(function: str):
    program = f"""
from functools import partial
def plain(): ...
async def waiting(): ...
class Thing:
    async def waiting(self): ...
import inspect
quick = inspect.iscoroutinefunction({function})
inspect.signature(plain)
import inspect
print(quick is inspect.iscoroutinefunction({function}), is_late("inspect"))
"""
    assert run(program) == "True False"
