"""Being told of what comes: a real folder, real mounts, and real helpers."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import select
import signal
import subprocess
from contextlib import contextmanager

import pytest

from inbox.sharing import lay_out, mounted, with_share
from uphold.errors import HostFailure
from uphold.host import inotify
from uphold.inbox import reaching
from uphold.inbox.watching import Lookout
from uphold.testing.waiting import eventually


def is_flag(name: str) -> bool:
    return name.endswith(".flag")


@pytest.fixture
def lookout():
    made = Lookout(is_flag)
    yield made
    made.close()


def attend(lookout: Lookout, folder) -> str:
    """Attend a folder as the helper does: opened, and closed again at once."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return lookout.attend(descriptor)
    finally:
        os.close(descriptor)


def hears(lookout: Lookout) -> bool:
    """Tell whether there is news; what has happened is there at once."""
    ready, _, _ = select.select(lookout.descriptors(), (), (), 0)
    return bool(ready) and lookout.stirred()


def test_it_tells_once_until_it_is_asked_again(tmp_path, lookout):
    assert not hears(lookout)
    assert attend(lookout, tmp_path) == ""
    assert not hears(lookout)
    for number in range(1000):
        (tmp_path / f"{number}.flag").touch()
    assert hears(lookout)
    assert lookout.descriptors() == (), "whoever floods us is not even heard"
    assert attend(lookout, tmp_path) == ""
    assert not hears(lookout), "who asks looks anyway"
    (tmp_path / "x.flag").touch()
    assert hears(lookout)


@pytest.mark.parametrize("how", ["written", "renamed", "linked", "moved in"])
def test_every_way_in_which_a_flag_comes(tmp_path, lookout, how):
    folder = tmp_path / "inbox"
    folder.mkdir()
    (folder / "part.tmp").touch()
    (tmp_path / "outside").touch()
    attend(lookout, folder)
    {
        "written": lambda: (folder / "a.flag").write_text("{}"),
        "renamed": lambda: (folder / "part.tmp").rename(folder / "a.flag"),
        "linked": lambda: (folder / "a.flag").hardlink_to(tmp_path / "outside"),
        "moved in": lambda: (tmp_path / "outside").rename(folder / "a.flag"),
    }[how]()
    assert hears(lookout)


def test_a_flag_that_is_written_on_is_told_when_it_is_closed(tmp_path, lookout):
    with (tmp_path / "a.flag").open("w") as file:
        attend(lookout, tmp_path)
        file.write("{")
        file.flush()
        assert not hears(lookout)
    assert hears(lookout)


def test_what_is_no_flag_or_goes_is_no_news(tmp_path, lookout):
    (tmp_path / "a.flag").touch()
    (tmp_path / "b.flag").touch()
    attend(lookout, tmp_path)
    (tmp_path / "task_17.json").touch()
    (tmp_path / "processing").mkdir()
    (tmp_path / "a.flag").rename(tmp_path / "processing" / "a.flag")
    (tmp_path / "b.flag").unlink()
    assert not hears(lookout)
    assert lookout.descriptors(), "it still waits"


def test_a_folder_in_the_place_of_another_is_watched_in_its_turn(tmp_path, lookout):
    folder = tmp_path / "inbox"
    folder.mkdir()
    attend(lookout, folder)
    folder.rename(tmp_path / "old")
    assert hears(lookout), "that it is gone is news"
    folder.mkdir()
    attend(lookout, folder)
    (tmp_path / "old" / "a.flag").touch()
    assert not hears(lookout)
    (folder / "a.flag").touch()
    assert hears(lookout)


def test_more_than_the_kernel_keeps_is_news(tmp_path, lookout):
    with open("/proc/sys/fs/inotify/max_queued_events") as file:
        most = int(file.read())
    if most > 20_000:
        pytest.skip("the kernel keeps very many events here")
    attend(lookout, tmp_path)
    for number in range(most // 2 + 10):
        (tmp_path / f"{number % 2}.task").touch()
        (tmp_path / f"{number % 2}.task").unlink()
    heard = [lookout.stirred() for _ in range(100)]
    assert heard.count(True) == 1


def test_where_the_kernel_does_not_watch_it_says_why(tmp_path, lookout):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptor + 1, hard))
        said = lookout.attend(descriptor)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(descriptor)
    assert said == f"the kernel cannot watch it ({os.strerror(errno.EMFILE)}; see fs.inotify.*)"
    assert lookout.descriptors() == ()
    assert attend(lookout, tmp_path) == "", "as soon as it can, it does"


def test_where_others_may_write_unnoticed_nothing_is_watched(tmp_path, lookout, monkeypatch):
    monkeypatch.setattr(inotify, "_UNTOLD", ("tmpfs",))  # one that can be mounted anywhere
    assert attend(lookout, tmp_path) == ""
    root = tmp_path / "share"
    root.mkdir()
    with mounted(root) as allowed:
        if not allowed:
            pytest.skip("nothing may be mounted here")
        assert "does not tell" in attend(lookout, root)
        (root / "a.flag").touch()
        assert not hears(lookout)
    assert attend(lookout, root) == "", "the disk beneath"


@contextmanager
def tmpfs(root):
    with mounted(root) as allowed:
        if not allowed:
            pytest.skip("nothing may be mounted here")
        yield


class Bell:
    """Counts how often a look was worth while."""

    def __init__(self):
        self.rung = 0

    def __call__(self):
        self.rung += 1

    async def heard(self, times):
        await eventually(lambda: self.rung >= times, within=60.0, what=f"news number {times}")
        assert self.rung == times


@pytest.mark.accepts("P17", "T12")
def test_a_watch_keeps_no_share_from_being_unmounted_and_begins_anew_when_it_is_back(tmp_path):
    root = tmp_path / "share"
    root.mkdir()
    bell = Bell()

    async def work(tools):
        with tmpfs(root):
            lay_out(root)
            assert await tools.inbox.watch() == ""
            tools.drop("supervisor_a.flag")
            await bell.heard(1)
            assert await tools.inbox.watch() == ""
            subprocess.run(["umount", str(root)], check=True)  # busy, if anything were held open
            await bell.heard(2)
            with pytest.raises(HostFailure) as failed:
                await tools.inbox.watch()
            assert failed.value.code == "UPH_SHARE_NOT_MOUNTED"
        with tmpfs(root):
            lay_out(root)
            assert await tools.inbox.watch() == ""
            tools.drop("supervisor_b.flag")
            await bell.heard(3)
        assert list(root.iterdir()) == []

    with_share(root, work, stir=bell)


@pytest.mark.accepts("P17", "T12")
def test_another_share_over_the_first_is_the_one_that_is_watched(tmp_path):
    root = tmp_path / "share"
    root.mkdir()
    bell = Bell()

    async def work(tools):
        with tmpfs(root):
            lay_out(root)
            await tools.inbox.watch()
            with tmpfs(root):
                lay_out(root)
                assert await tools.inbox.watch() == ""
                tools.drop("supervisor_a.flag")
                await bell.heard(1)

    with_share(root, work, stir=bell)


@pytest.mark.accepts("T12")
def test_what_is_written_beneath_a_share_is_found_by_looking_only(tmp_path):
    """As another host would: the kernel shows it, and does not tell."""
    root, lower = tmp_path / "share", lay_out(tmp_path / "lower")
    for name in ("share", "upper", "work"):
        (tmp_path / name).mkdir()
    bell = Bell()
    options = f"lowerdir={lower},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    command = ["mount", "-t", "overlay", "-o", options, "overlay", str(root)]
    with tmpfs(tmp_path / "upper"):
        pass  # only to skip where nothing may be mounted
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no overlay may be mounted here")

    async def work(tools):
        assert await tools.inbox.watch() == ""
        (lower / "Worker_Inbox" / "supervisor_a.flag").write_text("{}")
        listing = await tools.inbox.flags()
        assert [entry.name for entry in listing.entries] == ["supervisor_a.flag"]
        assert bell.rung == 0
        tools.drop("supervisor_b.flag")
        await bell.heard(1)

    try:
        with_share(root, work, stir=bell)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)


def test_other_requests_between_watch_and_news_swallow_nothing(tmp_path):
    root = lay_out(tmp_path / "share")
    bell = Bell()

    async def work(tools):
        await tools.inbox.watch()
        tools.drop("supervisor_a.flag")
        await asyncio.gather(*(tools.inbox.flags() for _ in range(20)))
        await bell.heard(1)
        tools.drop("supervisor_b.flag")
        await tools.inbox.flags()
        assert bell.rung == 1, "nobody has asked again"

    with_share(root, work, stir=bell)


def test_without_an_inbox_there_is_nothing_to_watch_until_there_is_one(tmp_path):
    root = lay_out(tmp_path / "share")
    (root / "Worker_Inbox").rmdir()
    bell = Bell()

    async def work(tools):
        assert await tools.inbox.watch() == "there is no inbox"
        (root / "Worker_Inbox").mkdir()
        assert await tools.inbox.watch() == ""
        tools.drop("supervisor_a.flag")
        await bell.heard(1)

    with_share(root, work, stir=bell)


@pytest.mark.accepts("P17")
def test_the_end_of_an_idle_helper_is_reason_to_look_and_the_next_one_watches(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(reaching, "_YOUNG", 0.0)
    root = lay_out(tmp_path / "share")
    bell = Bell()

    async def work(tools):
        await tools.inbox.watch()
        os.kill(tools.reach._helper.pid, signal.SIGKILL)
        await bell.heard(1)
        assert await tools.inbox.watch() == ""
        tools.drop("supervisor_a.flag")
        await bell.heard(2)

    with_share(root, work, stir=bell)
    assert bell.rung == 2, "that we let go of one is no news"


def test_helpers_that_end_as_soon_as_they_begin_are_left_to_the_next_poll(tmp_path, monkeypatch):
    monkeypatch.setattr(reaching, "_YOUNG", 1000.0)
    root = lay_out(tmp_path / "share")
    bell = Bell()

    async def work(tools):
        await tools.inbox.watch()
        os.kill(tools.reach._helper.pid, signal.SIGKILL)
        await eventually(lambda: not tools.reach._helper.usable, within=60.0)
        await asyncio.sleep(0)
        assert bell.rung == 0
        assert await tools.inbox.watch() == ""
        tools.drop("supervisor_a.flag")
        await bell.heard(1)

    with_share(root, work, stir=bell)


@pytest.mark.accepts("P17", "T12")
def test_one_that_is_given_up_is_no_reason_to_look_at_a_share_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(reaching, "_YOUNG", 0.0)
    root = lay_out(tmp_path / "share")
    bell = Bell()

    async def work(tools):
        await tools.inbox.watch()
        helper = tools.reach._helper
        os.kill(helper.pid, signal.SIGSTOP)
        tools.reach._give_up(helper)
        await eventually(helper.over, within=60.0)
        await asyncio.sleep(0)
        assert bell.rung == 0

    with_share(root, work, stir=bell)
