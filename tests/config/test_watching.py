"""Real edits, as editors, people and Kubernetes make them."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest

from leaks import held
from uphold.config import watching
from uphold.config.revisions import FileConfig
from uphold.config.watching import ConfigWatch
from uphold.errors import ConfigInvalid
from uphold.host.clock import MachineClock

ONE = "[workers.a]\ncommand = 'one'\n"
TWO = "[workers.a]\ncommand = 'two'\n"


class HastyClock(MachineClock):
    """The same waits, without the patience."""

    __slots__ = ("now_sleeping",)

    def __init__(self):
        self.now_sleeping = None

    async def sleep(self, seconds):
        self.now_sleeping = seconds
        await asyncio.sleep(seconds / 6)
        self.now_sleeping = None


class CountingWatch(ConfigWatch):
    """Counts how often it looks; after a look it tells a change or goes back to rest."""

    looks = 0

    def _listen(self):
        super()._listen()
        self.looks += 1


class Watched:
    """A watch that runs, reloads like the daemon does, and counts."""

    def __init__(self, path, *, told_by_kernel=True):
        self.config = FileConfig(path, {})
        self.clock = HastyClock()
        self.watch = CountingWatch(self.config, self.clock, told_by_kernel=told_by_kernel)
        self.changes = self.refused = 0
        self._news = asyncio.Event()

    async def __aenter__(self):
        self.task = asyncio.create_task(self._follow())
        while self.watch.looks == 0:
            await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    async def _follow(self):
        async for _ in self.watch.changes():
            self.changes += 1
            try:
                self.config.reload()
            except ConfigInvalid:
                self.refused += 1
            self._news.set()

    async def next_change(self):
        async with asyncio.timeout(20):
            await self._news.wait()
            self._news.clear()

    async def takes_no_notice_of(self, edit):
        """Edit, wait until the watch has looked, and see it go back to rest without a word."""
        looks, changes = self.watch.looks, self.changes
        edit()
        async with asyncio.timeout(20):
            while self.watch.looks == looks:
                await asyncio.sleep(0.01)
        assert self.clock.now_sleeping in (None, watching.POLL)
        assert self.changes == changes

    @property
    def command(self):
        return self.config.current.settings.workers[0].command[0]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "uphold.toml").write_text(ONE)
    return tmp_path / "uphold.toml"


def replace(path, text):
    (path.parent / "new~").write_text(text)
    os.replace(path.parent / "new~", path)


@pytest.fixture(params=[True, False], ids=["told", "polled"])
def told(request):
    return request.param


async def edits(path, told, edit):
    async with Watched(path, told_by_kernel=told) as watched:
        assert (watched.watch._news is not None) == told
        await edit(watched)


@pytest.mark.accepts("E-15", "M-12", "B-46")
def test_written_in_place_replaced_and_recreated(path, told):
    async def edit(watched):
        path.write_text(TWO)
        await watched.next_change()
        assert watched.command == "two"
        replace(path, ONE)
        await watched.next_change()
        assert watched.command == "one"
        path.unlink()
        await watched.next_change()
        assert (watched.refused, watched.command) == (1, "one")
        path.write_text(TWO)
        await watched.next_change()
        assert watched.command == "two"
        assert watched.config.current.version == 4

    asyncio.run(edits(path, told, edit))


@pytest.mark.accepts("E-15")
def test_the_same_content_again_is_no_change(path, told):
    async def edit(watched):
        await watched.takes_no_notice_of(path.touch)
        await watched.takes_no_notice_of(lambda: replace(path, ONE))
        path.write_text(TWO)
        await watched.next_change()

    asyncio.run(edits(path, told, edit))


@pytest.mark.accepts("E-15")
def test_whoever_does_not_reload_is_told_once(path):
    async def run():
        config = FileConfig(path, {})
        watch = CountingWatch(config, HastyClock())
        told = []

        async def follow():
            async for _ in watch.changes():
                told.append(path.read_text())

        task = asyncio.create_task(follow())
        async with asyncio.timeout(20):
            while watch.looks == 0:
                await asyncio.sleep(0)
            for text in (TWO, ONE + "team = 'x'\n"):
                path.write_text(text)
                looks = watch.looks
                while watch.looks < looks + 2:
                    await asyncio.sleep(0.01)
        assert told == [TWO, ONE + "team = 'x'\n"]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


@pytest.mark.accepts("E-15")
def test_own_writes_that_were_loaded_are_no_change(path, told):
    async def edit(watched):
        def write_and_load():
            path.write_text(TWO)
            watched.config.reload()

        await watched.takes_no_notice_of(write_and_load)
        assert watched.config.current.version == 2

    asyncio.run(edits(path, told, edit))


@pytest.mark.accepts("E-15", "P12")
def test_a_wrong_file_is_told_once_and_its_repair_too(path, told):
    async def edit(watched):
        path.write_text("wrong")
        await watched.next_change()
        assert (watched.refused, watched.command) == (1, "one")
        path.write_text("wrong")
        path.write_text(TWO)
        await watched.next_change()
        assert (watched.changes, watched.command) == (2, "two")

    asyncio.run(edits(path, told, edit))


@pytest.mark.accepts("E-15", "B-27")
def test_env_files_count_also_when_they_appear_later(path, told):
    (path.parent / "a.env").write_text("A=1\n")
    path.write_text(ONE + "env_file = 'a.env'\nteam = '${TEAM:none}'\n")

    async def edit(watched):
        (path.parent / "a.env").write_text("A=2\n")
        await watched.next_change()
        assert watched.config.current.settings.workers[0].environment == (("A", "2"),)
        (path.parent / ".env").write_text("TEAM=blue\n")
        await watched.next_change()
        assert watched.config.current.settings.workers[0].team == "blue"
        path.write_text(ONE + "env_file = 'b.env'\n")
        await watched.next_change()
        assert watched.refused == 1
        (path.parent / "b.env").write_text("A=3\n")
        await watched.next_change()
        assert watched.config.current.settings.workers[0].environment == (("A", "3"),)

    asyncio.run(edits(path, told, edit))


@pytest.mark.accepts("E-15")
def test_a_flipped_link_is_a_change(tmp_path, told):
    for name, text in (("v1", ONE), ("v2", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "uphold.toml").write_text(text)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "uphold.toml").symlink_to("..data/uphold.toml")

    async def edit(watched):
        (tmp_path / "..tmp").symlink_to("v2")
        os.replace(tmp_path / "..tmp", tmp_path / "..data")
        await watched.next_change()
        assert watched.command == "two"
        (tmp_path / "v2" / "uphold.toml").write_text(ONE)
        await watched.next_change()
        assert watched.command == "one"

    asyncio.run(edits(tmp_path / "uphold.toml", told, edit))


@pytest.mark.accepts("E-15")
def test_a_folder_that_goes_and_comes_back_is_followed(tmp_path, told):
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "uphold.toml").write_text(ONE)

    async def edit(watched):
        os.rename(folder, tmp_path / "old")
        await watched.next_change()
        assert watched.refused == 1
        folder.mkdir()
        (folder / "uphold.toml").write_text(TWO)
        await watched.next_change()
        assert watched.command == "two"
        (folder / "uphold.toml").write_text(ONE)
        await watched.next_change()
        assert watched.command == "one"

    asyncio.run(edits(folder / "uphold.toml", told, edit))


@pytest.mark.accepts("E-15")
def test_a_burst_of_writes_is_one_change(path):
    async def edit(watched):
        for number in range(20):
            path.write_text(f"[workers.a]\ncommand = 'n{number}'\n")
            await asyncio.sleep(0)
        await watched.next_change()
        assert (watched.changes, watched.command) == (1, "n19")

    asyncio.run(edits(path, True, edit))


def test_an_edit_between_loading_and_watching_is_found(path):
    async def run():
        watched = Watched(path)
        path.write_text(TWO)
        async with watched:
            await watched.next_change()
            assert watched.command == "two"

    asyncio.run(run())


def test_nothing_stays_open_when_the_watch_ends(path):
    async def run():
        before = held()
        async with Watched(path):
            pass
        async with asyncio.timeout(10):  # the kernel takes a moment to let go of a watch
            while len(held()) > len(before):
                await asyncio.sleep(0.005)
        assert len(held()) == len(before)

    asyncio.run(run())
