"""The socket itself: who may speak, what a broken frame gets, what a slow reader costs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys

import pytest

from uphold.control.server import ControlServer, Underway, bind
from uphold.errors import ConfigInvalid, NoSuchWorker, Problem
from uphold.wire.frames import encode_line


async def echo(params):
    return {"got": dict(params)}


async def fail(params):
    raise NoSuchWorker("no worker is called 'x'.", remedy="Did you mean 'y'?")


async def wrong(params):
    raise ConfigInvalid([Problem("uphold.toml:3", "nonsense")])


async def bug(params):
    raise ZeroDivisionError("oops")


def counting(params):
    async def lines():
        for number in range(int(params.get("most", 3))):
            yield encode_line({"event": number})

    return {"seq": 0}, lines()


async def order(params):
    async def outcome():
        if params.get("fails"):
            raise NoSuchWorker("no worker is called 'x'.")
        return {"results": []}

    return Underway({"job_id": "job_7"}, outcome)


METHODS = {"order": order, "echo": echo, "fail": fail, "wrong": wrong, "bug": bug}


def conversation(home, *lines):
    """Send these lines to a real server and give every line it answers."""

    async def go():
        server = ControlServer(home, METHODS, {"count": counting})
        await server.open()
        reader, writer = await asyncio.open_unix_connection(str(home / "control.sock"))
        for line in lines:
            writer.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        writer.write_eof()
        answers = (await reader.read()).splitlines()
        writer.close()
        await server.close()
        return [json.loads(answer) for answer in answers]

    return asyncio.run(go())


def test_requests_are_answered_in_order_with_their_ids(tmp_path):
    answers = conversation(
        tmp_path,
        {"id": 1, "method": "echo", "params": {"a": 1}},
        {"id": "two", "method": "echo"},
    )
    assert answers == [{"id": 1, "result": {"got": {"a": 1}}}, {"id": "two", "result": {"got": {}}}]


def test_an_order_is_answered_in_two_lines_that_it_is_accepted_and_what_came_of_it(tmp_path):
    done = conversation(tmp_path, {"id": 1, "method": "order"}, {"id": 2, "method": "echo"})
    assert done[:2] == [
        {"id": 1, "accepted": {"job_id": "job_7"}},
        {"id": 1, "result": {"results": []}},
    ]
    assert done[2]["id"] == 2, "and the next one is answered after both"


def test_an_order_that_fails_after_it_was_accepted_says_both(tmp_path):
    asked = {"id": 1, "method": "order", "params": {"fails": True}}
    accepted, failed = conversation(tmp_path, asked)
    assert accepted == {"id": 1, "accepted": {"job_id": "job_7"}}
    assert failed["error"]["code"] == "UPH_WORKER_UNKNOWN"


def test_errors_carry_code_remedy_exit_code_and_problems(tmp_path):
    first, second = conversation(
        tmp_path, {"id": 1, "method": "fail"}, {"id": 2, "method": "wrong"}
    )
    assert first["error"] == {
        "code": "UPH_WORKER_UNKNOWN",
        "message": "no worker is called 'x'.",
        "remedy": "Did you mean 'y'?",
        "exit_code": 5,
    }
    assert second["error"]["problems"] == [{"at": "uphold.toml:3", "text": "nonsense"}]


def test_a_bug_answers_and_the_server_goes_on(tmp_path):
    broken, after = conversation(tmp_path, {"id": 1, "method": "bug"}, {"id": 2, "method": "echo"})
    assert broken["error"]["code"] == "UPH_CONTROL_BROKEN"
    assert after["result"] == {"got": {}}


def test_the_table_of_methods_is_closed(tmp_path):
    (answer,) = conversation(tmp_path, {"id": 1, "method": "ehco"})
    assert answer["error"]["code"] == "UPH_CONTROL_REFUSED"
    assert "'echo'" in answer["error"]["message"]


@pytest.mark.parametrize(
    "frame",
    [
        b"\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b'{"method": 5}\n',
        b'{"params": {}}\n',
        b"\xff\xfe\n",
        b'{"method": "echo", "params": []}\n',
        b"[" * 5000 + b"\n",
        b'"' + b"x" * 1000 + b'"\n',
    ],
)
@pytest.mark.accepts("S45")
def test_a_broken_frame_gets_a_sentence_and_the_conversation_goes_on(tmp_path, frame):
    refused, after = conversation(tmp_path, frame, {"id": 2, "method": "echo"})
    assert refused["error"]["code"] == "UPH_CONTROL_REFUSED"
    assert after["id"] == 2


def test_an_endless_line_is_refused(tmp_path):
    (refused,) = conversation(tmp_path, b"x" * (1 << 20) + b"yyy")
    assert "1 MiB" in refused["error"]["message"]


def test_a_stream_answers_first_and_then_flows(tmp_path):
    answers = conversation(tmp_path, {"id": 1, "method": "count", "params": {"most": 3}})
    assert answers == [{"id": 1, "result": {"seq": 0}}, *({"event": n} for n in range(3))]


def test_a_reader_that_stops_reading_is_let_go(tmp_path):
    async def go():
        server = ControlServer(tmp_path, METHODS, {"count": counting})
        await server.open()
        lazy = socket.socket(socket.AF_UNIX)
        lazy.connect(str(tmp_path / "control.sock"))
        lazy.sendall(b'{"id": 1, "method": "count", "params": {"most": 10000000}}\n')
        await asyncio.sleep(0.2)
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control.sock"))
        writer.write(b'{"id": 2, "method": "echo"}\n')
        assert json.loads(await asyncio.wait_for(reader.readline(), 5))["id"] == 2
        writer.close()
        await server.close()
        lazy.close()

    asyncio.run(go())


@pytest.mark.accepts("S01")
def test_the_socket_is_private_from_birth_and_replaces_an_old_one(tmp_path):
    for _ in range(2):
        listener = bind(tmp_path)
        assert stat.S_IMODE((tmp_path / "control.sock").stat().st_mode) == 0o600
        listener.close()


@pytest.mark.accepts("S01")
def test_another_user_is_not_answered(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    os.chmod(tmp_path, 0o755)

    async def go():
        server = ControlServer(tmp_path, METHODS, {})
        await server.open()
        os.chmod(tmp_path / "control.sock", 0o666)  # even if somebody opened it up
        for parent in [tmp_path, *tmp_path.parents][:-1]:
            os.chmod(parent, parent.stat().st_mode | 0o055)
        script = (
            "import socket,sys\n"
            "s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            's.sendall(b\'{"id":1,"method":"echo"}\\n\'); print(s.recv(100))\n'
        )
        asked = await asyncio.to_thread(
            subprocess.run,
            ["/usr/bin/env", "python3", "-c", script, str(tmp_path / "control.sock")],
            user=65534,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin"},
        )
        await server.close()
        return asked

    asked = asyncio.run(go())
    if "Permission" in asked.stderr and "control.sock" not in asked.stderr:
        pytest.fail(asked.stderr)
    assert "echo" not in asked.stdout
    assert asked.stdout.strip() in ("b''", ""), asked


@pytest.mark.accepts("S01")
def test_a_home_with_a_very_long_path_can_be_reached(tmp_path):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)

    async def go():
        server = ControlServer(deep, METHODS, {})
        await server.open()
        answer = await asyncio.to_thread(
            subprocess.run,
            [
                sys.executable,
                "-c",
                "import sys; from uphold.control.client import Connection\n"
                "print(Connection(sys.argv[1]).call('echo', {'a': 1}))",
                str(deep),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        await server.close()
        return answer

    assert "{'got': {'a': 1}}" in asyncio.run(go()).stdout
