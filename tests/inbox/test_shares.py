"""A share through its helper: real files in real folders."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time

import pytest

from inbox.sharing import lay_out, tools_for, with_share
from uphold.core.specs import InboxSpec, Layout
from uphold.errors import HostFailure
from uphold.inbox.receipts import heartbeat_content, heartbeat_name, pause_marker_name
from uphold.inbox.shares import Content, Odd, claim_of

NOW = 1_770_300_000.0


@pytest.fixture
def root(tmp_path):
    return lay_out(tmp_path / "share")


def drop_aged(tools, name, age, content=None):
    path = tools.drop(name, content)
    os.utime(path, (NOW - age, NOW - age))
    return path


@pytest.mark.accepts("C-037", "C-029", "C-020")
def test_only_flags_are_listed_the_oldest_first(root):
    async def work(tools):
        drop_aged(tools, "supervisor_b.flag", 10)
        drop_aged(tools, "supervisor_a.flag", 30)
        drop_aged(tools, "supervisor_c.flag", 20)
        for other in ("task_7.flag", "supervisor_a.flag.tmp", ".supervisor_a.flag", "notes.txt"):
            tools.drop(other)
        found = await tools.inbox.flags()
        assert [each.name[11] for each in found.entries] == ["a", "c", "b"]
        assert [each.modified for each in found.entries] == [NOW - 30, NOW - 20, NOW - 10]
        assert not found.more

    with_share(root, work)


def test_hidden_names_are_left_alone_whatever_the_pattern(root):
    async def work(tools):
        tools.drop(".x.flag")
        tools.drop("x.flag")
        assert [each.name for each in (await tools.inbox.flags()).entries] == ["x.flag"]

    with_share(root, work, spec=InboxSpec(share=str(root), pattern="*.flag"))


@pytest.mark.accepts("C-038")
def test_a_missing_inbox_gives_nothing_and_nothing_breaks(root):
    (root / "Worker_Inbox").rmdir()

    async def work(tools):
        found = await tools.inbox.flags()
        assert (found.entries, found.missing) == ((), True)
        assert tools.reach.standing.reachable

    with_share(root, work)
    assert not (root / "Worker_Inbox").exists()


@pytest.mark.accepts("C-020")
def test_folders_are_where_the_configuration_says(tmp_path):
    layout = Layout(state="s/tate", logs="l", inbox="deep/in", outbox="out")
    for path in ("s/tate", "l", "deep/in", "out"):
        (tmp_path / path).mkdir(parents=True)

    async def work(tools):
        (tmp_path / "deep/in/supervisor_a.flag").write_bytes(b"{}")
        claimed = await tools.inbox.claim("supervisor_a.flag")
        assert (tmp_path / "deep/in/processing" / claimed.claimed).exists()
        path = await tools.share.put("diagnostics", "r.json", b"{}")
        assert path == str(tmp_path / "l/diagnostics/r.json")
        assert await tools.share.put("state", "s.json", b"{}") == str(tmp_path / "s/tate/s.json")

    with_share(tmp_path, work, spec=InboxSpec(share=str(tmp_path), layout=layout))
    assert (tmp_path / "l/diagnostics/r.json").read_bytes() == b"{}"


@pytest.mark.accepts("S11")
def test_a_poll_gives_two_hundred_and_the_next_ones_the_rest_also_past_those_that_stay(root):
    async def work(tools):
        for number in range(450):
            drop_aged(tools, f"supervisor_{number:03}.flag", 1000 - number)
        seen = []
        for expected in (200, 200, 50):
            found = await tools.inbox.flags(1_000_000)
            assert len(found.entries) == expected
            assert found.more == (expected == 200)
            seen += [each.name for each in found.entries]
        assert seen == [f"supervisor_{number:03}.flag" for number in range(450)]
        assert len((await tools.inbox.flags()).entries) == 200, "and then from the beginning"

    with_share(root, work)


@pytest.mark.accepts("C-036", "B-59", "B-60")
def test_a_flag_is_ours_by_a_rename_and_is_read_after_it(root):
    async def work(tools):
        path = tools.drop("supervisor_a.flag", {"a": 1})
        peeked = await tools.inbox.peek("supervisor_a.flag")
        assert path.exists()
        claimed = await tools.inbox.claim("supervisor_a.flag")
        assert claimed.raw == peeked.raw == b'{"a": 1}'
        assert not path.exists()
        (waiting,) = await tools.inbox.names("processing")
        assert waiting.name == claimed.claimed
        assert claim_of(waiting.name) == ("tester", "supervisor_a.flag")
        assert await tools.inbox.reread(claimed.claimed) == claimed
        assert await tools.inbox.claim("supervisor_a.flag") is None
        assert await tools.inbox.peek("supervisor_a.flag") is None

    with_share(root, work)


@pytest.mark.accepts("C-031", "C-032")
def test_a_finished_flag_is_gone_for_good(root):
    async def work(tools):
        tools.drop("supervisor_a.flag")
        claimed = await tools.inbox.claim("supervisor_a.flag")
        assert await tools.inbox.finish(claimed.claimed)
        assert not await tools.inbox.finish(claimed.claimed)
        assert await tools.inbox.reread(claimed.claimed) is None

    with_share(root, work)
    assert list((root / "Worker_Inbox").rglob("*.flag")) == []


@pytest.mark.accepts("S08", "T15")
def test_what_is_swapped_between_looking_and_claiming_is_read_as_it_was_claimed(root):
    async def work(tools):
        for number in range(100):
            name = f"supervisor_{number}.flag"
            tools.drop(name, b"first")
            assert (await tools.inbox.peek(name)).raw == b"first"
            tools.drop(name, b"second")
            claimed = await tools.inbox.claim(name)
            (root / "Worker_Inbox/processing" / claimed.claimed).write_bytes(b"third")
            assert claimed.raw == b"second"

    with_share(root, work)


@pytest.mark.accepts("S07", "T15")
@pytest.mark.parametrize(
    "kind", ["pipe", "link", "folder", "socket", "hard link", "large", "device"]
)
def test_what_is_no_plain_file_is_never_opened_and_can_be_moved_away(root, kind, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b'{"secret": 1}')
    path = root / "Worker_Inbox/supervisor_a.flag"
    if kind == "device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    {
        "pipe": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(secret),
        "folder": path.mkdir,
        "socket": lambda: os.mknod(path, stat.S_IFSOCK | 0o600),
        "hard link": lambda: os.link(secret, path),
        "large": lambda: path.write_bytes(b" " * 65537),
        "device": lambda: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)),
    }[kind]()

    async def work(tools):
        assert isinstance(await tools.inbox.peek(path.name), Odd)
        claimed = await tools.inbox.claim(path.name)
        assert isinstance(claimed, Odd)
        place = await tools.inbox.reject(path.name, "odd.", now=NOW, claimed=claimed.claimed)
        rejected = root / "Worker_Inbox/rejected"
        assert os.path.lexists(rejected / place)
        assert (rejected / f"{place}.reason.txt").read_text() == "odd.\n"

    with_share(root, work)
    assert not os.path.lexists(path)
    assert secret.read_bytes() == b'{"secret": 1}'


@pytest.mark.accepts("C-033", "C-034", "E-30")
def test_rejected_flags_of_one_name_lie_side_by_side_with_their_reasons(root):
    async def work(tools):
        for number in range(3):
            tools.drop("supervisor_a.flag", {"number": number})
            assert await tools.inbox.reject("supervisor_a.flag", f"reason {number}.", now=NOW)
        assert await tools.inbox.reject("supervisor_a.flag", "gone.", now=NOW) is None
        names = sorted(each.name for each in await tools.inbox.names("rejected"))
        assert len(names) == 3
        assert all(name.startswith("20260205T140000000Z_") for name in names)

    with_share(root, work)
    found = {path.read_text() for path in (root / "Worker_Inbox/rejected").glob("*.txt")}
    assert found == {"reason 0.\n", "reason 1.\n", "reason 2.\n"}


def test_the_longest_and_strangest_names_can_be_claimed_and_rejected(root):
    names = [
        "supervisor_" + "x" * 239 + ".flag",
        "supervisor_\n\x1b[31m.flag",
        os.fsdecode(b"supervisor_\xff\xfe.flag"),
        "supervisor_\u202eé€𝄞.flag",
        "supervisor_" + "é" * 119 + ".flag",
        "supervisor_.....flag",
    ]

    async def work(tools):
        for name in names:
            tools.drop(name, b"{}")
        listed = [each.name for each in (await tools.inbox.flags()).entries]
        assert sorted(listed) == sorted(names)
        for name in names:
            claimed = await tools.inbox.claim(name)
            assert claimed.raw == b"{}"
            assert await tools.inbox.reject(name, "no.", now=NOW, claimed=claimed.claimed)

    with_share(root, work)
    assert len(list((root / "Worker_Inbox/rejected").iterdir())) == 2 * len(names)


def test_a_flag_that_turns_out_to_be_somebody_elses_is_put_back_unless_its_place_is_taken(root):
    async def work(tools):
        path = tools.drop("supervisor_a.flag", b"theirs")
        first = await tools.inbox.claim(path.name)
        assert await tools.inbox.give_back(first.claimed, path.name)
        assert path.read_bytes() == b"theirs"
        second = await tools.inbox.claim(path.name)
        tools.drop("supervisor_a.flag", b"new")
        assert not await tools.inbox.give_back(second.claimed, path.name)
        assert path.read_bytes() == b"new"

    with_share(root, work)


@pytest.mark.accepts("T15", "C-036", "C-003", "B-58")
def test_of_two_supervisors_on_one_inbox_each_flag_has_one(root):
    async def work(one):
        two = tools_for(root, owner="other")
        try:
            for number in range(300):
                one.drop(f"supervisor_{number}.flag", {"number": number})
            names = [f"supervisor_{number}.flag" for number in range(300)]
            both = [[side.inbox.claim(name) for name in names] for side in (one, two)]
            first, second = await asyncio.gather(*(asyncio.gather(*side) for side in both))
            assert all((a is None) != (b is None) for a, b in zip(first, second, strict=True))
            owners = {claim_of(each.name)[0] for each in await one.inbox.names("processing")}
            assert owners <= {"tester", "other"}
        finally:
            await two.reach.close()

    with_share(root, work)
    assert len(list((root / "Worker_Inbox/processing").iterdir())) == 300


@pytest.mark.accepts("C-125", "C-126", "C-127", "C-128", "C-023", "C-T32")
def test_a_heartbeat_is_whole_at_any_moment_and_no_temporary_file_stays(root):
    path = root / "00_STATE/supervisor_heartbeat_web.json"
    seen: set[int] = set()
    stop = threading.Event()

    def look():
        while not stop.is_set():
            if path.exists():
                raw = path.read_bytes()
                assert raw.endswith(b"}\n")
                seen.add(len(raw))

    async def work(tools):
        for number in range(100):
            content = heartbeat_content(
                supervisor_id="s",
                wall=NOW,
                worker_id="web",
                success=not number % 2,
                error="x" * 20_000 if number % 2 else None,
                actions=[],
            )
            durable = number < 3
            wrote = await tools.share.put("state", heartbeat_name("web"), content, durable=durable)
            assert wrote == str(path)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with_share(root, work)
    finally:
        stop.set()
        watcher.join()
    assert len(seen) <= 2
    assert [each.name for each in (root / "00_STATE").iterdir()] == [path.name]


@pytest.mark.accepts("C-021", "C-113", "C-T08", "C-T09")
def test_a_worker_is_held_exactly_while_its_marker_is_there(root):
    marker = pause_marker_name("web")

    async def work(tools):
        assert await tools.share.look(f"00_STATE/{marker}") is None
        await tools.share.put("state", marker, b"{}\n")
        assert await tools.share.look(f"00_STATE/{marker}") is not None
        assert (root / "00_STATE/supervisor_pause_web.flag").exists()
        assert await tools.share.remove("state", marker)
        assert not await tools.share.remove("state", marker)
        assert await tools.share.look(f"00_STATE/{marker}") is None

    with_share(root, work)


@pytest.mark.accepts("C-119", "C-T10", "B-76")
def test_the_age_of_a_file_comes_from_its_modification_and_is_never_negative(root):
    beat = root / "00_STATE/watcher_heartbeat_web.json"
    beat.write_text("{}")
    os.utime(beat, (NOW, NOW))

    async def work(tools):
        seen = await tools.share.look("00_STATE/watcher_heartbeat_web.json")
        assert seen.age(NOW + 90.0) == 90.0
        assert seen.age(NOW - 5.0) == 0.0

    with_share(root, work)


@pytest.mark.accepts("C-022")
def test_files_are_read_up_to_a_limit_or_by_their_end(root):
    (root / "05_LOGS/watcher.log").write_bytes(b"0123456789")
    (root / "05_LOGS/link.log").symlink_to("/etc/passwd")

    async def work(tools):
        read = tools.share.read
        assert (await read("05_LOGS/watcher.log", 10)).raw == b"0123456789"
        assert (await read("05_LOGS/watcher.log", 4, end=True)).raw == b"6789"
        assert (await read("05_LOGS/watcher.log", 99, end=True)).raw == b"0123456789"
        assert isinstance(await read("05_LOGS/watcher.log", 9), Odd)
        assert isinstance(await read("05_LOGS/link.log", 99), Odd)
        assert await read("05_LOGS/nothing.log", 9) is None
        assert await read("no/folder/x.log", 9) is None

    with_share(root, work)


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "05_LOGS/../../x", "05_LOGS//x", "", ".", "05_LOGS/", "a\0b"]
)
def test_no_path_leads_out_of_the_share(root, path):
    async def work(tools):
        with pytest.raises(HostFailure) as refused:
            await tools.share.read(path, 10)
        assert refused.value.code == "UPH_SHARE_FAILED"

    with_share(root, work)


@pytest.mark.accepts("S03", "S12")
def test_nothing_is_written_through_a_planted_link(root, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "00_STATE/x.json").symlink_to(victim)
    (root / "05_LOGS/supervisor.log").symlink_to(victim)
    (root / "05_LOGS/diagnostics").symlink_to(elsewhere)
    (root / "Worker_Outbox").rmdir()
    (root / "Worker_Outbox").symlink_to(elsewhere)
    (root / "Worker_Inbox/processing").symlink_to(elsewhere)

    async def work(tools):
        await tools.share.put("state", "x.json", b"{}")
        tools.drop("supervisor_a.flag")
        for attempt in (
            tools.share.put("outbox", "r.json", b"{}"),
            tools.share.put("diagnostics", "r.json", b"{}"),
            tools.share.append("supervisor.log", b"line\n"),
            tools.inbox.claim("supervisor_a.flag"),
        ):
            with pytest.raises(HostFailure):
                await attempt

    with_share(root, work)
    assert victim.read_text() == "mine"
    assert list(elsewhere.iterdir()) == []
    assert not (root / "00_STATE/x.json").is_symlink()


@pytest.mark.parametrize("folder", ["top", "processing", "rejected"])
def test_files_are_put_only_where_they_belong(root, folder):
    async def work(tools):
        with pytest.raises(HostFailure):
            await tools.reach.ask(
                "put", folder=folder, name="x", content="", new=False, durable=False
            )

    with_share(root, work)


def test_a_folder_of_the_share_that_is_missing_is_told_and_not_made(root):
    (root / "Worker_Outbox").rmdir()

    async def work(tools):
        with pytest.raises(HostFailure, match="No such file") as refused:
            await tools.share.put("outbox", "r.json", b"{}")
        assert refused.value.code == "UPH_SHARE_FAILED"
        assert tools.reach.standing.reachable

    with_share(root, work)
    assert not (root / "Worker_Outbox").exists()


def test_a_new_file_never_takes_the_place_of_another(root):
    async def work(tools):
        await tools.share.put("inbox", "supervisor_a.flag", b"1", new=True)
        with pytest.raises(HostFailure, match="exists"):
            await tools.share.put("inbox", "supervisor_a.flag", b"2", new=True)

    with_share(root, work)
    assert (root / "Worker_Inbox/supervisor_a.flag").read_bytes() == b"1"
    assert [path.name for path in (root / "Worker_Inbox").iterdir()] == ["supervisor_a.flag"]


def test_people_can_read_what_is_left_for_them(root):
    async def work(tools):
        await tools.share.put("outbox", "r.json", b"{}")
        await tools.share.put("diagnostics", "d.json", b"{}")

    with_share(root, work)
    assert stat.S_IMODE((root / "Worker_Outbox/r.json").stat().st_mode) == 0o644
    assert stat.S_IMODE((root / "05_LOGS/diagnostics").stat().st_mode) == 0o755


@pytest.mark.accepts("B-75")
def test_a_log_starts_anew_when_it_is_full_and_no_line_is_lost(root):
    async def work(tools):
        for number in range(40):
            await tools.share.append("supervisor.log", f"line {number:03}\n".encode(), max_size=90)

    with_share(root, work)
    chain = [root / f"05_LOGS/supervisor.log{end}" for end in (".3", ".2", ".1", "")]
    lines = b"".join(path.read_bytes() for path in chain).decode().splitlines()
    assert lines == [f"line {number:03}" for number in range(40)]
    assert all(path.stat().st_size <= 90 for path in chain)


def test_of_full_logs_only_so_many_are_kept(root):
    async def work(tools):
        for number in range(9):
            await tools.share.append("a.log", b"%d\n" % number, max_size=2, keep=2)

    with_share(root, work)
    assert sorted(path.name for path in (root / "05_LOGS").iterdir()) == [
        "a.log",
        "a.log.1",
        "a.log.2",
    ]
    assert (root / "05_LOGS/a.log.2").read_bytes() == b"6\n"


@pytest.mark.parametrize("kind", ["pipe", "hard link", "folder"])
def test_what_is_no_log_is_not_written_to_and_not_waited_for(root, kind, tmp_path):
    log, victim = root / "05_LOGS/supervisor.log", tmp_path / "victim"
    victim.write_text("mine")
    {"pipe": os.mkfifo, "folder": os.mkdir, "hard link": lambda path: os.link(victim, path)}[kind](
        log
    )

    async def work(tools):
        with pytest.raises(HostFailure):
            await tools.share.append("supervisor.log", b"x\n")

    with_share(root, work)
    assert victim.read_text() == "mine"


@pytest.mark.accepts("C-024")
def test_a_survey_tells_of_each_folder_by_itself(root):
    (root / "03_REFERENCE").rmdir()
    (root / "04_PUBLISH").rmdir()
    (root / "04_PUBLISH").write_text("no folder")
    (root / "Worker_Outbox").rmdir()

    async def work(tools):
        found = await tools.share.survey()
        assert found["paths"] == {
            "00_STATE": None,
            "01_RAW": None,
            "02_WORK": None,
            "03_REFERENCE": "No such file or directory",
            "04_PUBLISH": "Not a directory",
            "05_LOGS": None,
        }
        assert (found["inbox"], found["outbox"]) == (None, "No such file or directory")
        assert found["logs"] is None
        space = found["space"]
        assert 0 < space["free"] <= space["total"]
        assert 0 < space["used"] < space["total"]
        assert 0 <= space["percent_free"] <= 100

    with_share(root, work)
    assert list((root / "05_LOGS").iterdir()) == []


def test_unfinished_files_of_helpers_that_were_killed_go_after_an_hour(root):
    old, new = (root / f"00_STATE/.x.json.{end}.uphold.tmp" for end in ("1", "2"))
    for path in (old, new):
        path.write_text("half")
    hour_ago = time.time() - 3700
    os.utime(old, (hour_ago, hour_ago))

    async def work(tools):
        assert await tools.share.sweep() == 1

    with_share(root, work)
    assert [path.name for path in (root / "00_STATE").iterdir()] == [new.name]


def test_a_content_is_bytes_and_comes_back_as_it_was(root):
    raw = bytes(range(256)) * 100

    async def work(tools):
        await tools.share.put("state", "x", raw)
        found = await tools.share.read("00_STATE/x", 1 << 20)
        assert isinstance(found, Content)
        assert found.raw == raw

    with_share(root, work)
