"""The agent runtime, started as its README says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from examples.chats import TOKEN, ChatServer
from journeys.site import Site, eventually, is_gone

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent-runtime"

pytestmark = pytest.mark.slow


class Runtime(Site):
    """A copy of the example in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        away = shutil.ignore_patterns("state", ".uphold", "__pycache__", ".env")
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=away)

    def setting(self, **variables: str) -> None:
        with (self.folder / ".env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in variables.items())

    def send(self, agent: str, text: str) -> None:
        place = self.folder / "state" / "inbox" / "new"
        place.mkdir(parents=True, exist_ok=True)
        request = {"agent": agent, "text": text, "channel": "cli"}
        (place / ".request").write_text(json.dumps(request))
        (place / ".request").rename(place / f"{text.replace(' ', '-')}.json")

    def file(self, path: str) -> dict | None:
        """Read a file of the state; None if it is not there."""
        try:
            return json.loads((self.folder / "state" / path).read_text())
        except FileNotFoundError:
            return None

    def health(self) -> str:
        return self.status()["supervisor"]["health"]


@pytest.fixture
def runtime(tmp_path):
    made = Runtime(tmp_path)
    yield made
    made.close()


@pytest.fixture
def chat():
    made = ChatServer()
    yield made
    made.close()


@pytest.mark.accepts("D-15", "D-16", "B-90")
def test_requests_are_answered_given_up_or_refused_and_who_is_left_out_is_nowhere(runtime):
    runtime.setting(HEARTBEAT="off")
    runtime.ok("start")
    runtime.until("queue", state="running", health="healthy", kind="python")
    runtime.until("dispatcher", state="running", health="healthy")
    runtime.send("writer", "hello")
    runtime.send("reader", "fail")
    runtime.send("nobody", "lost")
    answer = eventually(lambda: runtime.file("outbox/cli/new/hello.json"))
    assert answer["text"] == "writer says: hello"
    dead = eventually(lambda: runtime.file("agents/reader/dead/fail.json"))
    assert (dead["attempts"], dead["error"]) == (3, "RuntimeError: reader cannot do that")
    refused = eventually(lambda: runtime.file("inbox/dead/lost.json"))
    assert refused["error"] == "there is no agent 'nobody'"

    names = {row["name"] for row in runtime.status()["workers"]}
    assert names == {"queue", "dispatcher"}
    mirrored = json.loads((runtime.home / "runtime.json").read_text())["workers"]
    assert set(mirrored) - {"@pump"} == {"queue", "dispatcher"}
    assert runtime.run("show", "chat").code == 5

    first = eventually(lambda: runtime.worker("queue")["last_heartbeat_at"])
    eventually(lambda: runtime.worker("queue")["last_heartbeat_at"] > first)


@pytest.mark.accepts("B-24", "D-15", "D-17", "D-20", "D-22")
def test_a_channel_that_breaks_makes_the_whole_degraded_and_mending_it_makes_it_well(runtime, chat):
    runtime.setting(CHAT_TOKEN=TOKEN, CHAT_URL=chat.url, CHAT_EVERY="0.1")
    runtime.ok("start")
    rows = [runtime.until(name, health="healthy") for name in ("queue", "dispatcher", "heart")]
    runtime.until("chat", state="running", health="healthy")
    eventually(lambda: runtime.health() == "healthy")
    chat.write("reader: what is new?")
    eventually(lambda: chat.answers)
    assert chat.answers == [{"chat": "ann", "text": "reader says: what is new?"}]

    chat.broken = True
    eventually(lambda: "does not answer well" in runtime.worker("chat")["why"])
    eventually(lambda: runtime.health() == "degraded")
    assert runtime.run("status").code == 150
    chat.write("writer: still there?")
    chat.broken = False
    runtime.until("chat", state="running", health="healthy")
    eventually(lambda: runtime.health() == "healthy")
    eventually(lambda: len(chat.answers) == 2)
    for row in rows:
        assert runtime.worker(row["name"])["pid"] == row["pid"], "nobody else was touched"
    shown = runtime.log("chat") + "".join(runtime.outputs)
    assert TOKEN not in shown


@pytest.mark.accepts("D-17", "D-27", "D-28", "B-83")
def test_work_in_hand_is_put_back_by_a_stop_and_taken_back_after_a_kill(runtime):
    runtime.setting(HEARTBEAT="off", AGENTS="writer")
    runtime.ok("start")
    runtime.until("dispatcher", health="healthy")
    other = runtime.worker("dispatcher")["pid"]
    runtime.send("writer", "slow 3600")
    held = "agents/writer/held/queue/slow-3600.json"
    eventually(lambda: (runtime.file(held) or {}).get("attempts") == 1)
    pid = runtime.worker("queue")["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_gone(pid))
    eventually(lambda: (runtime.file(held) or {}).get("attempts") == 2, what="taken back")
    assert runtime.worker("dispatcher")["pid"] == other

    runtime.ok("stop")
    back = runtime.file("agents/writer/new/slow-3600.json")
    assert back is not None
    assert back["attempts"] == 1
    assert runtime.file(held) is None
    assert "put back" in runtime.log("queue")
    assert runtime.processes() == []


@pytest.mark.accepts("D-15")
def test_the_heart_reminds_every_agent_and_a_token_in_the_file_brings_the_channel(runtime, chat):
    runtime.setting(HEARTBEAT_EVERY="0.2")
    runtime.ok("start")
    runtime.until("heart", health="healthy")
    answer = eventually(lambda: runtime.file("outbox/heartbeat/new/heartbeat-reader.json"))
    assert answer["text"] == "reader says: anything to do?"
    runtime.setting(CHAT_TOKEN=TOKEN, CHAT_URL=chat.url)
    eventually(lambda: "chat" in {row["name"] for row in runtime.status()["workers"]})
    runtime.until("chat", health="healthy")


@pytest.fixture
def queues(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from agent_runtime import queues

    yield queues
    for name in [name for name in sys.modules if name.startswith("agent_runtime")]:
        del sys.modules[name]


def test_of_two_workers_one_gets_a_job(queues, tmp_path):
    one, two = queues.FileQueue(tmp_path, "one"), queues.FileQueue(tmp_path, "two")
    one.put({"text": "a"}, "a")
    one.put({"text": "b"}, "b")
    first, second = one.claim(), two.claim()
    assert (first.id, second.id, one.claim(), one.count()) == ("a", "b", None, 0)
    one.finish(first)
    two.put_back(second)
    again = one.claim()
    assert (again.id, again.content) == ("b", {"text": "b", "attempts": 1})


@pytest.mark.accepts("B-90")
def test_attempts_are_counted_before_the_work_so_that_deaths_count_too(queues, tmp_path):
    queue = queues.FileQueue(tmp_path, "me")
    queue.put({}, "deadly")
    for _ in range(3):
        assert queue.claim() is not None
        assert queues.FileQueue(tmp_path, "other").recover() == 0, "what others hold is theirs"
        assert queues.FileQueue(tmp_path, "me").recover() == 1
    assert queue.claim() is None
    content = json.loads((tmp_path / "dead" / "deadly.json").read_text())
    assert (content["attempts"], "killed" in content["error"]) == (3, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"attempts": "many"}', "\ufeff"])
def test_what_is_no_job_is_given_up_at_once(queues, tmp_path, text):
    queue = queues.FileQueue(tmp_path, "me")
    (tmp_path / "new" / "x.json").write_text(text)
    (tmp_path / "new" / ".half.json").write_text("{}")
    assert queue.claim() is None
    assert os.listdir(tmp_path / "dead") == ["x.json"]
