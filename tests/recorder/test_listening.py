"""The conversation with the supervisor, over a real socket."""

from __future__ import annotations

import asyncio
import threading

import pytest

from uphold.control.server import ControlServer
from uphold.host.timing import PlainClock
from uphold.recorder.listening import NOTHING, Ear, News, news_of
from uphold.testing.waiting import until


@pytest.mark.parametrize(
    ("event", "news"),
    [
        ({"type": "supervisor.heartbeat", "entity_type": "supervisor"}, News(1, frozenset(), True)),
        (
            {"type": "worker.ready", "entity_type": "worker", "entity_id": "web",
             "payload": {"slot": "web.2"}},
            News(1, frozenset({"web.2"})),
        ),
        (
            {"type": "worker.paused", "entity_type": "worker", "entity_id": "web", "payload": {}},
            News(1, frozenset({"web"})),
        ),
        ({"type": "order.done", "entity_type": "order"}, News(1)),
    ],
)  # fmt: skip
def test_an_event_says_that_something_happened_and_to_whom(event, news):
    assert news_of({"event": event}) == news


def test_news_add_up():
    both = News(1, frozenset("a"), False) + News(2, frozenset("b"), True)
    assert both == News(3, frozenset("ab"), True)
    assert both + NOTHING == both


class Other:
    """A supervisor's socket that streams what it is given; in a thread with a loop."""

    def __init__(self, home):
        self._home = home
        self._loop = asyncio.new_event_loop()
        self._lines = asyncio.Queue()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.listeners = 0

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def open(self):
        async def sync(_params):
            return {"durable_seq": 7}

        async def lines():
            while True:
                yield await self._lines.get()

        def subscribe(_params):
            self.listeners += 1
            return {"seq": 1}, lines()

        self.server = ControlServer(self._home, {"sync": sync}, {"subscribe": subscribe})
        self._do(self.server.open())

    def say(self, line):
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    def close(self):
        self._do(self.server.close())

    def end(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def other(tmp_path):
    made = Other(tmp_path)
    yield made
    made.end()


def test_it_listens_asks_and_finds_the_next_supervisor(tmp_path, other):
    ear = Ear(str(tmp_path), PlainClock())
    assert ear.wait(0.0) is NOTHING
    assert ear.ask("sync") is None
    assert ear.alone_for >= 0.0
    other.open()
    other.say(b'{"event": {"type": "x", "entity_type": "worker", "entity_id": "web"}}\n')
    assert until(lambda: ear.wait(0.2), within=60).touched == {"web"}
    assert (ear.connected, ear.met, ear.alone_for) == (True, 1, 0.0)
    assert ear.ask("sync") == {"durable_seq": 7}
    assert ear.ask("no such thing") is None
    assert ear.ask("sync") == {"durable_seq": 7}
    other.close()
    assert until(lambda: ear.wait(0.2), within=60).events == 1  # the end itself is news
    assert not ear.connected
    other.open()
    other.say(b'{"event": {"type": "supervisor.heartbeat"}}\n')
    assert until(lambda: ear.wait(0.2), within=60).beat
    assert ear.met == 2
    ear.close()
    other.close()
