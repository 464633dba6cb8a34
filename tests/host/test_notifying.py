"""The notify socket: where it lies, who may send, and that nobody can drown the loop."""

from __future__ import annotations

import array
import asyncio
import os
import socket
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from leaks import held
from uphold.errors import HostFailure
from uphold.host import notifying
from uphold.host.homes import Home
from uphold.host.notifying import AT_ONCE, LONGEST, NotifySocket
from uphold.testing.waiting import eventually


@pytest.fixture
def runtime():
    """Give a folder with a short name: what is in a test's own has a path too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="uph", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def short(tmp_path, runtime, monkeypatch):
    """Give a home whose socket lies in the short folder, whoever runs the tests."""
    home = Home(tmp_path / "home")
    home.path.mkdir()
    monkeypatch.setattr(notifying, "_folders", lambda _: iter([str(runtime / "uphold")]))
    return home


def send(path, *messages):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(path)
        for message in messages:
            sender.send(message)


def hearing(home, scene):
    async def play():
        notify = NotifySocket(home)
        heard = []
        try:
            notify.listen(lambda *told: heard.append(told))
            await scene(notify, heard)
        finally:
            notify.close()

    asyncio.run(play())


@pytest.mark.accepts("S05")
def test_a_datagram_is_told_with_the_sender_the_kernel_knows(short):
    async def scene(notify, heard):
        send(notify.path, b"READY=1")
        await eventually(lambda: heard)
        assert heard == [(b"READY=1", os.getpid(), os.geteuid())]

    hearing(short, scene)


def test_what_was_sent_before_anybody_listened_is_told_too(short):
    async def scene():
        notify = NotifySocket(short)
        heard = []
        send(notify.path, b"READY=1", b"STATUS=up")
        notify.listen(lambda data, pid, uid: heard.append(data))
        await eventually(lambda: len(heard) == 2)
        assert heard == [b"READY=1", b"STATUS=up"]
        notify.close()

    asyncio.run(scene())


def test_the_home_says_where_it_is_and_the_next_supervisor_has_it_at_the_same_place(short):
    first = NotifySocket(short)
    link = short.path / "notify.sock"
    assert os.readlink(link) == first.path
    first._socket.close()  # as a kill would: its file stays
    second = NotifySocket(short)
    assert second.path == first.path
    second.close()
    assert not Path(second.path).exists()
    third = NotifySocket(short)
    assert third.path == first.path
    third.close()


def test_it_stays_where_adopted_workers_know_it_when_the_runtime_directory_is_another(
    short, runtime, monkeypatch
):
    first = NotifySocket(short)
    first.close()
    elsewhere = str(runtime / "else")
    monkeypatch.setattr(notifying, "_folders", lambda _: iter([elsewhere]))
    second = NotifySocket(short)
    assert second.path == first.path
    second.close()


def test_it_moves_when_the_old_place_can_no_longer_be_trusted(short, runtime, monkeypatch):
    first = NotifySocket(short)
    first.close()
    os.chmod(os.path.dirname(first.path), 0o777)
    monkeypatch.setattr(notifying, "_folders", lambda _: iter([str(runtime / "else")]))
    second = NotifySocket(short)
    assert os.path.dirname(second.path) == str(runtime / "else")
    assert os.readlink(short.path / "notify.sock") == second.path
    second.close()


def test_a_copy_of_a_home_does_not_take_the_socket_of_the_original(short, tmp_path):
    first = NotifySocket(short)
    copied = Home(tmp_path / "copy")
    copied.path.mkdir()
    (copied.path / "notify.sock").symlink_to(first.path)
    second = NotifySocket(copied)
    assert second.path != first.path
    assert notifying._somebody_listens(Path(first.path))
    first.close()
    second.close()


def test_a_supervisor_that_is_just_dying_is_waited_for(short, monkeypatch):
    first = NotifySocket(short)
    monkeypatch.setattr(notifying, "sleep", lambda _: first._socket.close())
    second = NotifySocket(short)
    assert second.path == first.path
    second.close()


def test_a_living_socket_at_its_place_is_left_alone(short, monkeypatch):
    monkeypatch.setattr(notifying, "sleep", lambda _: None)
    first = NotifySocket(short)
    (short.path / "notify.sock").unlink()
    second = NotifySocket(short)
    assert second.path != first.path
    send(first.path, b"READY=1")
    first.close()
    second.close()


@pytest.mark.accepts("S05")
def test_others_may_pass_its_folder_and_not_write_there(short):
    notify = NotifySocket(short)
    folder = os.stat(os.path.dirname(notify.path))
    assert stat.S_IMODE(folder.st_mode) == 0o711
    assert stat.S_IMODE(os.stat(notify.path).st_mode) == 0o600
    notify.admit_others()
    assert stat.S_IMODE(os.stat(notify.path).st_mode) == 0o666
    notify.close()


def test_passed_descriptors_do_not_pile_up(short):
    async def scene(notify, heard):
        before = len(held())
        reading, writing = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(notify.path)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writing] * 3))
            sender.sendmsg([b"BARRIER=1"], [rights])
        os.close(writing)
        await eventually(lambda: heard)
        assert heard[0][:2] == (b"BARRIER=1", os.getpid())
        assert os.read(reading, 1) == b"", "whoever waits at a barrier may go on"
        os.close(reading)
        assert len(held()) == before

    hearing(short, scene)


def test_one_byte_more_than_allowed_is_seen_as_such(short):
    async def scene(notify, heard):
        send(notify.path, b"x" * (LONGEST + 500))
        await eventually(lambda: heard)
        assert len(heard[0][0]) == LONGEST + 1

    hearing(short, scene)


FLOOD = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(sys.argv[1])
for n in range(int(sys.argv[2])):
    s.send(b"STATUS=%d" % n)
"""


@pytest.mark.accepts("S05")
def test_a_flood_is_read_in_batches_between_which_others_have_their_turn(short):
    """Nothing is lost and nothing comes out of order; the sender waits, not the loop."""
    many = 20 * AT_ONCE

    async def scene(notify, heard):
        batches = []
        drain = notify.drain

        def counting():
            before = len(heard)
            done = drain()
            batches.append(len(heard) - before)
            return done

        notify.drain = counting
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-ISc", FLOOD, notify.path, str(many)
        )
        await eventually(lambda: len(heard) == many, 60.0)
        await process.wait()
        assert [data for data, _, _ in heard] == [b"STATUS=%d" % n for n in range(many)]
        assert max(batches) <= AT_ONCE

    hearing(short, scene)


def test_a_removed_socket_is_made_anew_and_heard_again(short):
    async def scene(notify, heard):
        assert notify.restore() is False
        os.unlink(notify.path)
        notify.admit_others()
        assert notify.restore() is True
        assert stat.S_IMODE(os.stat(notify.path).st_mode) == 0o666
        send(notify.path, b"READY=1")
        await eventually(lambda: heard)

    hearing(short, scene)


def test_sockets_of_the_dead_are_swept_and_those_of_the_living_and_the_young_are_not(
    short, runtime
):
    folder = runtime / "uphold"
    folder.mkdir(mode=0o711)

    def leave(name, *, age, living=False):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.bind(str(folder / name))
        if not living:
            made.close()
        then = os.stat(folder).st_mtime - age
        os.utime(folder / name, (then, then))
        return made

    leave("dead.sock", age=3600)
    leave("young.sock", age=0)
    living = leave("alive.sock", age=3600, living=True)
    (folder / "note.txt").write_text("not a socket")
    notify = NotifySocket(short)
    own = os.path.basename(notify.path)
    assert sorted(os.listdir(folder)) == sorted(["alive.sock", "note.txt", own, "young.sock"])
    notify.close()
    living.close()


def test_a_folder_that_somebody_else_made_is_not_used(tmp_path, monkeypatch):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    theirs.mkdir()
    os.chmod(theirs, 0o777)
    assert not notifying._usable_folder(theirs)
    link = tmp_path / "link"
    link.symlink_to(mine)
    mine.mkdir()
    assert not notifying._usable_folder(link)
    assert notifying._usable_folder(mine)
    if os.geteuid() == 0:
        os.chown(mine, 1, 1)
        assert not notifying._usable_folder(mine)


def test_where_it_lies_depends_on_the_user_and_the_runtime_directory(tmp_path):
    found = list(notifying._folders({"XDG_RUNTIME_DIR": str(tmp_path)}))
    user = os.geteuid()
    assert f"{tmp_path}/uphold-notify" in found
    assert f"/tmp/uphold-{user}" in found
    assert (found[0] == "/run/uphold-notify") is (user == 0)
    assert not [
        each for each in notifying._folders({"XDG_RUNTIME_DIR": "relative"}) if "rel" in each
    ]


def test_a_path_too_long_for_a_socket_is_passed_over(short, runtime, monkeypatch):
    long = runtime / ("x" * 90)
    long.mkdir()
    folders = [f"{long}/uphold", f"{runtime}/short"]
    monkeypatch.setattr(notifying, "_folders", lambda _: iter(folders))
    notify = NotifySocket(short)
    assert os.path.dirname(notify.path) == folders[1]
    notify.close()


def test_without_any_place_that_is_said(short, monkeypatch):
    monkeypatch.setattr(notifying, "_folders", lambda _: iter(()))
    with pytest.raises(HostFailure, match="no folder"):
        NotifySocket(short)
