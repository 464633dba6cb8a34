"""A share that hangs, vanishes, lies or comes back: nobody waits, nothing is written beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from inbox.sharing import lay_out, mounted, tools_for, with_share
from proofs.stuck import FrozenMount
from uphold.errors import HostFailure
from uphold.inbox.reaching import MOST_STUCK, MOST_WAITING
from uphold.testing.waiting import eventually

_ERRORS = """
import ctypes, os, struct, sys
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"proof", sys.argv[1].encode(), b"fuse", 0, options):
    sys.exit("cannot mount")
unique = struct.unpack_from("<IIQ", os.read(fuse, 1 << 20))[2]
answer = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0)
os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
print("mounted", flush=True)
while request := os.read(fuse, 1 << 20):
    length, opcode, unique = struct.unpack_from("<IIQ", request)
    if opcode not in (2, 42):  # those two want no answer
        os.write(fuse, struct.pack("<IiQ", 16, -int(sys.argv[2]), unique))
"""
"""A file system that answers every request with one error."""


@contextmanager
def failing_mount(folder: Path, number: int):
    folder.mkdir()
    command = [sys.executable, "-ISc", _ERRORS, str(folder), str(number)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        if server.stdout.readline() != b"mounted\n":
            pytest.skip("nothing may be mounted here")
        yield
    finally:
        server.kill()
        server.communicate()
        subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


async def failure_of(attempt) -> str:
    with pytest.raises(HostFailure) as failed:
        await attempt
    assert str(failed.value).endswith(".")
    return failed.value.code


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.accepts("P17", "T12", "S12")
def test_nothing_is_written_where_the_share_was_and_it_comes_back_by_itself(tmp_path):
    root = tmp_path / "share"
    root.mkdir()
    heard = []

    async def work(tools):
        await tools.share.put("state", "before.json", b"{}")
        assert subprocess.run(["umount", "-l", str(root)], check=False).returncode == 0
        for attempt in (
            tools.share.put("state", "x.json", b"{}"),
            tools.share.append("supervisor.log", b"x\n"),
            tools.inbox.flags(),
            tools.inbox.claim("supervisor_a.flag"),
            tools.inbox.reject("supervisor_a.flag", "no.", now=0.0),
            tools.share.remove("state", "before.json"),
            tools.share.survey(),
        ):
            assert await failure_of(attempt) == "UPH_SHARE_NOT_MOUNTED"
        assert list(root.iterdir()) == []
        lay_out(root)  # somebody has made the same folders on the disk beneath
        assert (
            await failure_of(tools.share.put("state", "x.json", b"{}")) == "UPH_SHARE_NOT_MOUNTED"
        )
        assert files_below(root) == []
        with mounted(root):
            lay_out(root)
            await tools.share.put("state", "after.json", b"{}")
            assert (root / "00_STATE/after.json").exists()
        assert (
            await failure_of(tools.share.put("state", "x.json", b"{}")) == "UPH_SHARE_NOT_MOUNTED"
        )
        assert files_below(root) == []

    with mounted(root) as allowed:
        if not allowed:
            pytest.skip("nothing may be mounted here")
        lay_out(root)
        with_share(root, work, tell=heard.append)
    assert [each.reachable for each in heard] == [True, False, True, False]
    assert heard[1].code == "UPH_SHARE_NOT_MOUNTED"


@pytest.mark.accepts("P17", "T12")
def test_the_next_helper_knows_what_the_share_looked_like(tmp_path):
    """The helper ends together with the share, and only plain folders are left in its place."""
    root = tmp_path / "share"
    root.mkdir()

    async def work(tools):
        await tools.share.put("state", "x.json", b"{}")
        subprocess.run(["umount", "-l", str(root)], check=True)
        lay_out(root)
        os.kill(tools.reach._helper.pid, signal.SIGKILL)
        await eventually(lambda: not tools.reach._helper.usable, within=60.0)
        assert (
            await failure_of(tools.share.put("state", "x.json", b"{}")) == "UPH_SHARE_NOT_MOUNTED"
        )

    with mounted(root) as allowed:
        if not allowed:
            pytest.skip("nothing may be mounted here")
        lay_out(root)
        with_share(root, work)
    assert files_below(root) == []


@pytest.mark.accepts("T12")
def test_a_share_that_is_not_there_at_first_is_used_once_it_is(tmp_path):
    root = tmp_path / "share"

    async def work(tools):
        assert await failure_of(tools.inbox.flags()) == "UPH_SHARE_NOT_MOUNTED"
        root.mkdir()
        assert await failure_of(tools.inbox.flags()) == "UPH_SHARE_NOT_MOUNTED"
        assert list(root.iterdir()) == []
        lay_out(root)
        assert (await tools.inbox.flags()).entries == ()
        assert tools.reach.standing.reachable

    with_share(root, work)


def test_a_mount_that_comes_over_a_plain_folder_is_the_share_from_then_on(tmp_path):
    root = lay_out(tmp_path / "share")

    async def work(tools):
        await tools.share.put("state", "beneath.json", b"{}")
        with mounted(root) as allowed:
            if not allowed:
                pytest.skip("nothing may be mounted here")
            lay_out(root)
            await tools.share.put("state", "above.json", b"{}")
        assert (
            await failure_of(tools.share.put("state", "x.json", b"{}")) == "UPH_SHARE_NOT_MOUNTED"
        )

    with_share(root, work)
    assert [path.name for path in (root / "00_STATE").iterdir()] == ["beneath.json"]


@pytest.mark.accepts("P17", "T12", "S12")
def test_a_share_that_hangs_is_given_up_by_three_helpers_at_most_and_used_again_later(tmp_path):
    root = tmp_path / "share"
    heard, children = [], set()

    async def work(tools):
        frozen = FrozenMount(root)
        try:
            frozen.__enter__()
        except PermissionError:
            pytest.skip("nothing may be mounted here")
        try:
            for _ in range(60):  # one that is given up before it touched the share just ends
                assert await failure_of(tools.inbox.flags()) == "UPH_SHARE_UNREACHABLE"
                if tools.reach.stuck == MOST_STUCK:
                    break
            assert frozen.asked()
            await asyncio.sleep(0.5)
            pids = set(children)
            for _ in range(20):
                assert await failure_of(tools.inbox.flags()) == "UPH_SHARE_UNREACHABLE"
            assert children == pids
            assert len(pids) == tools.reach.stuck == MOST_STUCK, "none is started any more"
            assert not tools.reach.standing.reachable
        finally:
            frozen.__exit__()
        lay_out(root)
        await eventually(lambda: tools.reach.stuck == 0, within=60.0)
        assert await eventually_flags(tools) == ()
        assert tools.reach.standing.reachable

    with_share(root, work, tell=heard.append, children=children, patience=1.0)
    assert [each.reachable for each in heard] == [False, True]
    assert children == set()


async def eventually_flags(tools):
    """List flags; on a busy machine a helper may take longer to begin than it has here."""
    for _ in range(30):
        try:
            return (await tools.inbox.flags()).entries
        except HostFailure:
            await asyncio.sleep(0.1)
    raise AssertionError("the share did not come back")


@pytest.mark.accepts("P17", "T12")
def test_everything_that_was_asked_of_a_frozen_helper_fails_together_and_the_next_one_answers(
    tmp_path,
):
    root = lay_out(tmp_path / "share")

    async def work(tools):
        await eventually_flags(tools)
        frozen = tools.reach._helper
        os.kill(frozen.pid, signal.SIGSTOP)
        asked = [tools.inbox.flags() for _ in range(5)]
        failed = await asyncio.gather(*asked, return_exceptions=True)
        assert {each.code for each in failed} == {"UPH_SHARE_UNREACHABLE"}
        await eventually(frozen.over, within=60.0)
        assert await eventually_flags(tools) == ()
        assert tools.reach._helper is not frozen

    with_share(root, work, patience=2.0)


@pytest.mark.accepts("T12")
@pytest.mark.parametrize("name", ["EIO", "ESTALE", "ENOTCONN", "EHOSTDOWN"])
def test_what_a_file_system_without_its_server_says_means_unreachable(tmp_path, name):
    import errno

    root = tmp_path / "share"

    async def work(tools):
        assert await failure_of(tools.inbox.flags()) == "UPH_SHARE_UNREACHABLE"
        assert await failure_of(tools.share.put("state", "x", b"")) == "UPH_SHARE_UNREACHABLE"
        assert not tools.reach.standing.reachable

    with failing_mount(root, getattr(errno, name)):
        with_share(root, work)


def test_a_helper_that_is_killed_is_replaced_and_leaves_nothing_behind(tmp_path):
    root = lay_out(tmp_path / "share")
    children: set[int] = set()

    async def work(tools):
        for _ in range(5):
            await tools.inbox.flags()
            pid = tools.reach._helper.pid
            await eventually(lambda pid=pid: children == {pid}, within=60.0)
            os.kill(pid, signal.SIGKILL)
            await eventually(lambda: not tools.reach._helper.usable, within=60.0)
        await tools.inbox.flags()
        await eventually(lambda: len(children) == 1, within=60.0)
        assert tools.reach.stuck == 0

    with_share(root, work, children=children)
    assert children == set()


def test_an_idle_helper_ends_with_the_supervisor(tmp_path):
    root = lay_out(tmp_path / "share")

    async def work():
        tools = tools_for(root)
        await tools.inbox.flags()
        pid = tools.reach._helper.pid
        tools.reach._helper._transport.abort()
        await eventually(lambda: not Path(f"/proc/{pid}").exists(), within=60.0)
        await tools.reach.close()

    asyncio.run(work())


def test_requests_wait_in_a_number_that_is_limited(tmp_path):
    root = lay_out(tmp_path / "share")

    async def work(tools):
        asked = [tools.share.look("00_STATE/x") for _ in range(MOST_WAITING + 5)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in found if isinstance(each, HostFailure)]
        assert len(refused) == 5
        assert "wait" in refused[0].message

    with_share(root, work)


@pytest.mark.accepts("T12")
def test_a_slow_share_is_asked_again_for_what_it_had_no_time_for(tmp_path):
    """Should it go away meanwhile, nobody forgets what it had done."""
    asked = []

    async def slow(what, *, each):
        asked.append(list(each))
        if len(asked) == 4:
            raise HostFailure("it is away.", code="UPH_SHARE_UNREACHABLE")
        return [{"ok": number} for number in each[:2]]

    async def work(tools):
        tools.reach.ask = slow
        assert await tools.reach.ask_each("claim", [1, 2, 3]) == [1, 2, 3]
        assert asked == [[1, 2, 3], [3]]
        *done, lost, also = await tools.reach.ask_each("claim", [1, 2, 3, 4])
        assert done == [1, 2]
        assert lost is also
        assert lost.code == "UPH_SHARE_UNREACHABLE"

    with_share(lay_out(tmp_path / "share"), work)


def test_nothing_is_asked_after_the_end(tmp_path):
    root = lay_out(tmp_path / "share")

    async def work(tools):
        await tools.inbox.flags()
        await tools.reach.close()
        assert await failure_of(tools.inbox.flags()) == "UPH_SHARE_UNREACHABLE"

    with_share(root, work)


@pytest.mark.accepts("S25", "S46", "S02")
def test_a_helper_has_no_variables_of_ours_and_only_its_own_descriptors(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY_TOKEN", "do-not-leak")
    root = lay_out(tmp_path / "share")

    async def work(tools):
        await tools.inbox.flags()
        proc = Path(f"/proc/{tools.reach._helper.pid}")
        assert b"do-not-leak" not in (proc / "environ").read_bytes()
        assert {"0", "1", "2", "3"} <= {path.name for path in (proc / "fd").iterdir()}
        assert os.readlink(proc / "fd/1") == os.devnull

    with_share(root, work)
