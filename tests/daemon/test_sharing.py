from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from functools import partial
from threading import Event

import pytest

from daemon.sharesides import INBOX, SECRET, WORKER, Place
from uphold.core import orders
from uphold.errors import HostFailure, UpholdError
from uphold.inbox.consulting import Consultants
from uphold.testing.waiting import eventually

PAUSE = orders.PauseWorkers(names=("OrionMX",))
RESUME = orders.ResumeWorkers(names=("OrionMX",))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def away(place):
    """Take the share away, as an unmounted one is: its folder is there, and empty."""
    place.top.rename(place.folder / "elsewhere")
    place.top.mkdir()


def back(place):
    place.top.rmdir()
    (place.folder / "elsewhere").rename(place.top)


@pytest.mark.accepts("C-021", "C-048", "C-049", "C-054", "C-055", "C-T14", "C-T16")
def test_flags_make_and_remove_the_marker(place):
    async def story():
        for number in (1, 2):  # the second finds it there
            place.drop("pause_watcher", f"task_{number}")
            await place.look()
            assert place.marker.exists()
            assert place.state == "stopped"
        for number in (3, 4):
            place.drop("resume_watcher", f"task_{number}")
            await place.look()
            assert not place.marker.exists()
            assert place.state == "running"
        assert place.driver.calls.count(("start", "OrionMX")) == 2

    place.play(story)
    assert [receipt["success"] for receipt in place.receipts()] == [True] * 4


def test_a_pass_finds_its_flag_behind_hundreds_that_are_for_others(place):
    async def story():
        for number in range(450):
            place.drop("pause_watcher", f"task_{number}", worker_id="somebody_else")
        place.drop("pause_watcher", "task_ours")
        await place.look()
        assert place.state == "stopped"

    place.play(story)
    assert [receipt["task_id"] for receipt in place.receipts()] == ["task_ours"]


@pytest.mark.accepts("P17")
def test_a_share_that_is_away_changes_nothing_and_is_told_of_once(place):
    async def story():
        await place.order(PAUSE)
        await place.look()
        away(place)
        for _ in range(2):
            deeds, error = await place.look()
            assert deeds == []
            assert str(place.top) in error
        assert place.held
        assert list(place.top.iterdir()) == [], "nothing is written where a share should be"
        await place.order(RESUME)
        await place.look()
        assert place.state == "running"
        back(place)
        _, error = await place.look()
        assert error is None
        assert not place.held, "the marker that was left there is old news"
        assert not place.marker.exists()

    place.play(story)
    told = [kind for kind in place.events("share.") if kind != "share.incomplete"]  # a full disk
    assert told == ["share.reachable", "share.unreachable", "share.reachable"]


@pytest.mark.accepts("P17")
def test_a_share_that_is_back_has_a_heartbeat_at_once(place):
    async def story():
        await place.look()
        place.beat.unlink()
        away(place)
        await place.look()
        back(place)
        await place.look()
        assert json.loads(place.beat.read_text())["success"] is True

    place.play(story)


@pytest.mark.accepts("C-136", "C-137")
def test_what_a_share_lacks_is_told_once_and_the_rest_is_used(place):
    (place.top / "02_WORK").rmdir()
    (place.top / "04_PUBLISH").rmdir()

    async def story():
        place.drop("pause_watcher", "task_1")
        for _ in range(2):
            _, error = await place.look()
            assert error is None
        assert place.held

    place.play(story)
    (row,) = place.rows("SELECT * FROM events_t WHERE type = 'share.incomplete'")
    assert "02_WORK" in str(row)
    assert "04_PUBLISH" in str(row)
    assert "03_REFERENCE" not in str(row)


@pytest.mark.accepts("C-067", "C-070", "C-T26")
def test_a_restart_ends_the_worker_and_starts_it_again(place):
    async def story():
        place.drop("restart_watcher", "task_1", label="night shift")
        await place.look()
        assert place.state == "running"
        assert place.driver.calls.count(("start", "OrionMX")) == 2

    place.play(story)
    (receipt,) = place.receipts()
    assert (receipt["success"], receipt["label"]) == (True, "night shift")
    assert receipt["details"]["held"] is False
    rows = place.rows("SELECT action, label FROM audit_log_t WHERE action LIKE 'restart%'")
    assert [row["label"] for row in rows] == ["night shift", "night shift"]


@pytest.mark.accepts("C-068", "C-T25")
def test_a_restart_of_what_is_held_succeeds_and_starts_nothing(place):
    async def story():
        place.drop("pause_watcher", "task_1")
        await place.look()
        place.drop("restart_watcher", "task_2")
        await place.look()
        assert place.state == "stopped"
        assert place.marker.exists()

    place.play(story)
    receipt = place.receipts()[-1]
    assert (receipt["success"], receipt["details"]["held"]) == (True, True)


@pytest.mark.accepts("C-069")
def test_a_restart_that_fails_is_told_of(place):
    async def story():
        place.driver.fail_start("OrionMX", "its disk is gone", hopeless=True)
        place.drop("restart_watcher", "task_1")
        deeds, _ = await place.look()
        assert [deed.success for deed in deeds] == [False]

    place.play(story)
    (receipt,) = place.receipts()
    assert "its disk is gone" in receipt["error"]


@pytest.mark.accepts("T24")
def test_no_receipt_and_no_heartbeat_on_the_share_tells_a_secret(place):
    async def story():
        place.driver.fail_start("OrionMX", f"denied for {SECRET}", hopeless=True)
        place.drop("restart_watcher", "task_1")
        await place.look()
        place.drop("restart_watcher", "task_1", name="supervisor_again.flag")
        await place.look()

    place.play(story)
    assert all("denied for" in receipt["error"] for receipt in place.receipts())
    assert "denied for" in place.beat.read_text()
    told = [path for path in place.top.rglob("*") if path.is_file()]
    assert not [path for path in told if SECRET in path.read_text()]


@pytest.mark.accepts("C-023", "C-047", "C-125", "C-127", "C-T32")
def test_the_heartbeat_tells_what_was_done_and_is_never_half_there(place):
    async def story():
        await place.look()
        first = json.loads(place.beat.read_text())
        assert first["actions"] == []
        place.drop("pause_watcher", "task_1", label="disk swap")
        place.drop("verify_db", "task_2")
        await place.look()

    place.play(story)
    beat = json.loads(place.beat.read_text())
    assert list(beat) == [
        *("supervisor_id", "timestamp", "worker_id", "success", "error", "actions")
    ]
    assert (beat["worker_id"], beat["success"]) == ("OrionMX", False)
    paused, verified = beat["actions"]
    assert (paused["handler"], paused["label"], paused["task_id"], paused["error"]) == (
        *("pause_watcher", "disk swap", "task_1"),
        None,
    )
    assert verified["error"] in beat["error"]
    assert not [path.name for path in (place.top / "00_STATE").iterdir() if "tmp" in path.name]


@pytest.mark.accepts("C-128")
def test_a_look_that_failed_leaves_a_heartbeat_with_its_error(place):
    async def story():
        (place.top / "Worker_Outbox").rmdir()
        place.drop("pause_watcher", "task_1")
        _, error = await place.look()
        beat = json.loads(place.beat.read_text())
        assert (beat["success"], beat["error"]) == (False, error)
        (place.top / "Worker_Outbox").mkdir()
        deeds, error = await place.look()
        assert error is None
        assert [deed.task_id for deed in deeds] == ["task_1"]

    place.play(story)
    (receipt,) = place.receipts()
    assert receipt["success"] is True
    assert json.loads(place.beat.read_text())["success"] is True


@pytest.mark.accepts("C-138")
def test_lines_of_the_log_wait_for_a_share_that_is_away(place):
    log = place.top / "05_LOGS" / "supervisor.log"

    async def story():
        await place.look()
        place.outreach.heed(b"one\n")
        await place.look()
        assert log.read_bytes() == b"one\n"
        away(place)
        place.outreach.heed(b"two\n")
        await place.look()
        place.outreach.heed(b"three\n")
        back(place)
        await place.look()
        assert log.read_bytes() == b"one\ntwo\nthree\n"
        place.outreach.heed(b"four\n")

    place.play(story)
    assert log.read_bytes() == b"one\ntwo\nthree\nfour\n", "the last lines are left at the end"


@pytest.mark.accepts("C-035", "B-58")
def test_only_who_is_supervised_here_is_steered_here(tmp_path):
    text = WORKER + '[workers.Copier]\ncommand = ["copy"]\n[deploy]\nrepo = "."\n'
    place = Place(tmp_path, text + 'workers = ["OrionMX"]\n' + INBOX)

    async def story():
        other = place.drop("pause_watcher", worker_id="Vega")
        await place.look()
        assert other.exists()
        assert place.beat.exists()
        assert not (place.top / "00_STATE" / "supervisor_heartbeat_Copier.json").exists()

    place.play(story)
    assert place.receipts() == []


@pytest.mark.accepts("C-107", "C-121", "C-122")
@pytest.mark.parametrize("label", ["x" * 101, "two\nlines", "semi;colon"])
def test_a_label_that_is_none_is_refused_before_anything_happens(place, label):
    async def story():
        place.drop("pause_watcher", "task_1", label=label)
        deeds, _ = await place.look()
        assert [deed.success for deed in deeds] == [False]
        assert place.state == "running"

    place.play(story)
    (receipt,) = place.receipts()
    assert receipt["success"] is False
    assert "label" in receipt["error"]
    assert not place.marker.exists()
    assert place.rows("SELECT * FROM jobs_t WHERE task_id = 'task_1'") == []
    assert len(list((place.inbox / "rejected").iterdir())) == 2


@pytest.mark.accepts("P17")
def test_a_share_that_hangs_delays_no_order(place):
    async def story():
        await place.look()
        (helper,) = place.children
        os.kill(helper, signal.SIGSTOP)  # as one that waits for a server that does not answer
        try:
            look = asyncio.create_task(place.look())
            await place.order(PAUSE)
            assert place.state == "stopped"
            assert not look.done()
        finally:
            os.kill(helper, signal.SIGCONT)
        await look
        await place.look()
        assert place.marker.exists()

    place.play(story)


@pytest.mark.accepts("P17", "E-43")
def test_a_share_that_goes_away_while_a_flag_is_carried_out_is_told_of_before_that_ends(place):
    async def story():
        await place.look()
        place.driver.ignore_stop("OrionMX")
        place.drop("pause_watcher", "task_1")
        look = asyncio.create_task(place.look())
        await eventually(lambda: place.state == "stopping", within=30)
        away(place)
        await eventually(lambda: place.outreach.shown()["state"] == "unreachable", within=30)
        await eventually(lambda: place.events("share.")[-1:] == ["share.unreachable"], within=30)
        assert list(place.top.iterdir()) == [], "nothing is written where a share should be"
        back(place)
        await eventually(lambda: place.outreach.shown()["state"] == "reachable", within=30)
        assert not look.done()
        place.driver.let_die("OrionMX")
        deeds, error = await look
        assert error is None
        assert [deed.success for deed in deeds] == [True]

    place.play(story)
    assert [receipt["success"] for receipt in place.receipts()] == [True]
    assert place.marker.exists()


@pytest.mark.accepts("P17")
def test_whoever_watches_the_heartbeat_sees_us_live_while_a_flag_takes_long(tmp_path):
    often = WORKER.replace('"orion"', '"orion"\nheartbeat_every = "100ms"')
    place = Place(tmp_path, often + INBOX)

    async def story():
        place.driver.ignore_stop("OrionMX")
        place.drop("pause_watcher", "task_1")
        look = asyncio.create_task(place.look())
        await eventually(lambda: place.state == "stopping", within=30)
        for _ in range(2):
            place.beat.unlink(missing_ok=True)
            await eventually(place.beat.exists, within=30)
        assert not look.done()
        look.cancel()
        with pytest.raises(asyncio.CancelledError):
            await look
        place.driver.let_die("OrionMX")

    place.play(story)
    assert place.receipts() == [], "whoever is cancelled leaves it to the next look"
    assert [path.name for path in (place.inbox / "processing").iterdir()]


def test_what_fails_because_the_look_is_cancelled_is_nobodys_unclaimed_failure(place):
    unclaimed = []

    async def story():
        await place.look()
        life = place.outreach._life
        begun = asyncio.Event()

        async def obey(*, watch):
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise HostFailure("given up.", code="UPH_SHARE_UNREACHABLE") from None

        life._obey = obey
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unclaimed.append(told))
        look = asyncio.create_task(life.look())
        await begun.wait()
        look.cancel()
        await asyncio.wait({look})
        del look
        gc.collect()

    place.play(story)
    assert unclaimed == []


PLUGGED = WORKER + INBOX + 'handlers = ["drain", "spill", "gone"]\n'
ROWS = {
    "drain": {"name": "drain", "urgency": 0, "number": 5, "aliases": [], "params": ["how"]},
    "spill": {"name": "spill", "urgency": 2, "number": 50, "aliases": [], "params": []},
}


def advice(question):
    """Stand for the processes of three plug-ins: a good one, a bad one, and one that is missing."""
    name, flag = question["handler"], question.get("flag")
    if name not in ROWS:
        return {"unusable": "it is not there."}
    if flag is None:
        return ROWS[name]
    if name == "spill":
        return {"failed": f"it raised ValueError: {SECRET}."}
    return {"wish": {"wish": "StopWorkers", "names": [flag["worker_id"]]}}


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    monkeypatch.setattr("uphold.daemon.sharing.Consultants", partial(Consultants, ask=advice))
    return Place(tmp_path, PLUGGED)


@pytest.mark.accepts("C-040", "C-104", "C-105", "S43")
def test_plug_ins_are_asked_in_their_turn_and_one_that_fails_is_told_without_secrets(plugged):
    async def story():
        plugged.drop("spill", "task_1")
        plugged.drop("gone", "task_2")
        plugged.drop("diagnostics", "task_3")
        plugged.drop("drain", "task_4", params={"how": "slowly"})
        plugged.drop("drain", "task_5", params={"why": "?"})
        deeds, error = await plugged.look()
        assert error is None
        assert [(deed.task_id, deed.success) for deed in deeds[:3]] == [
            ("task_4", True),
            ("task_1", False),
            ("task_3", True),
        ]
        assert plugged.state == "stopped"

    plugged.play(story)
    codes = {each["task_id"]: each["details"].get("code") for each in plugged.receipts()}
    assert codes["task_1"] == "UPH_PLUGIN_FAILED"
    assert codes["task_2"] == "UPH_PLUGIN_UNUSABLE"
    assert codes["task_5"] == "UPH_FLAG_PARAMS"
    told = plugged.rows("SELECT * FROM events_t WHERE type LIKE 'plugin.%' ORDER BY seq")
    about = [(each["type"], each["entity_type"], each["entity_id"]) for each in told]
    assert about == [("plugin.unusable", "plugin", "gone"), ("plugin.failed", "worker", "OrionMX")]
    assert SECRET not in str(told) + str(plugged.receipts())


@pytest.mark.accepts("E-26", "E-28", "E-30")
def test_a_flag_of_a_plug_in_is_announced_and_closed_as_what_it_stands_for(plugged):
    async def story():
        told = {"task_id": "task_1", "handler": "drain", "worker_id": "OrionMX"}
        await plugged.outreach.announce(told)
        plugged.drop("drain", "task_1", expires_at="2020-01-01T00:00:00Z")
        await plugged.look()
        with pytest.raises(UpholdError, match="the plug-in of spill failed"):
            await plugged.outreach.announce({**told, "task_id": "task_2", "handler": "spill"})

        assert len(plugged.events("plugin.failed")) == 1

    plugged.play(story)
    (job,) = plugged.rows("SELECT * FROM jobs_t WHERE task_id IS NOT NULL")
    assert (job["job_type"], job["state"]) == ("stop", "failed")
    actions = [row["action"] for row in plugged.rows("SELECT action FROM audit_log_t")]
    assert {"stop.announced", "stop.rejected"} <= set(actions)


@pytest.mark.accepts("E-28", "E-31")
def test_a_plug_in_that_fails_closes_the_job_that_was_announced(plugged):
    async def story():
        told = {"task_id": "task_1", "handler": "drain", "worker_id": "OrionMX"}
        await plugged.outreach.announce(told)
        plugged.drop("spill", "task_1")
        await plugged.look()
        assert plugged.state == "running"

    plugged.play(story)
    (job,) = plugged.rows("SELECT * FROM jobs_t WHERE task_id IS NOT NULL")
    assert (job["job_type"], job["state"]) == ("stop", "failed")
    assert "the plug-in of spill failed" in job["last_error"]
    assert SECRET not in str(job)


@pytest.mark.accepts("E-26")
def test_a_flag_that_is_announced_during_the_first_look_costs_no_other_its_plug_in(
    tmp_path, monkeypatch
):
    let = Event()

    def slow(question):
        assert let.wait(60)
        return advice(question)

    monkeypatch.setattr("uphold.daemon.sharing.Consultants", partial(Consultants, ask=slow))
    place = Place(tmp_path, PLUGGED)

    async def story():
        place.drop("drain", "task_1")
        told = {"task_id": "task_2", "handler": "drain", "worker_id": "OrionMX"}
        announced = asyncio.create_task(place.outreach.announce(told))
        look = asyncio.create_task(place.look())
        await asyncio.wait((announced, look), timeout=0.5)
        let.set()
        await announced
        deeds, error = await look
        assert error is None
        assert [(deed.task_id, deed.success) for deed in deeds] == [("task_1", True)]

    place.play(story)


@pytest.mark.accepts("P17")
def test_a_plug_in_that_hangs_when_it_is_looked_for_again_delays_no_flag(tmp_path, monkeypatch):
    let, asked = Event(), []

    def hanging(question):
        asked.append(question["handler"])
        if asked.count("gone") > 1:
            assert let.wait(60)
        return advice(question)

    monkeypatch.setattr("uphold.inbox.consulting.AGAIN", 0.0)
    monkeypatch.setattr("uphold.daemon.sharing.Consultants", partial(Consultants, ask=hanging))
    place = Place(tmp_path, PLUGGED)

    async def story():
        await place.look()
        place.drop("pause_watcher", "task_1")
        place.drop("gone", "task_2")
        deeds, error = await place.look()
        assert error is None
        assert [(deed.task_id, deed.success) for deed in deeds] == [
            ("task_1", True),
            ("task_2", False),
        ]
        assert asked.count("gone") == 2
        assert not let.is_set()

    try:
        place.play(story)
    finally:
        let.set()
    assert place.events("plugin.") == ["plugin.unusable"]
