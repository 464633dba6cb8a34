from __future__ import annotations

import json

import pytest

from daemon.sharesides import Place
from uphold.core import orders
from uphold.errors import HostFailure
from uphold.testing.waiting import eventually

PAUSE = orders.PauseWorkers(names=("OrionMX",))
RESUME = orders.ResumeWorkers(names=("OrionMX",))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.accepts("C-021", "C-113")
def test_a_hold_by_the_command_line_is_mirrored_with_whoever_holds(place):
    async def story():
        await place.order(PAUSE)
        await place.look()
        assert json.loads(place.marker.read_text()) == {"worker_id": "OrionMX", "by": "ann"}
        await place.order(RESUME)
        await place.look()
        assert not place.marker.exists()
        assert place.state == "running"

    place.play(story)


@pytest.mark.accepts("C-039", "C-113")
def test_a_marker_that_is_made_or_removed_by_hand_is_an_order(place):
    async def story():
        await place.look()
        place.marker.write_text("")
        await place.look()
        await eventually(lambda: place.held and place.state == "stopped", within=60)
        await place.look()
        assert place.marker.read_text() == ""
        place.marker.unlink()
        await place.look()
        await eventually(lambda: not place.held and place.state == "running", within=60)
        await place.look()
        assert not place.marker.exists()

    place.play(story)
    rows = place.rows("SELECT actor, action FROM audit_log_t WHERE actor = 'share'")
    assert [row["action"] for row in rows if "." not in row["action"]] == ["pause", "resume"]


@pytest.mark.accepts("C-039", "C-113")
def test_a_marker_counts_also_where_nobody_can_open_the_inbox(place):
    async def story():
        (place.top / "Worker_Inbox").rmdir()
        (place.top / "Worker_Inbox").touch()
        place.marker.write_text("")
        life = await place.outreach._current()
        _, error = await life.look(watch=True)  # as a supervisor that stays does
        assert "Not a directory" in error
        await eventually(lambda: place.held and place.state == "stopped", within=60)

    place.play(story)


@pytest.mark.accepts("C-113", "C-149")
def test_what_a_hand_does_while_no_supervisor_is_there_is_an_order_for_the_next_one(place):
    async def hold():
        await place.order(PAUSE)
        await place.look()

    place.play(hold)
    place.marker.unlink()

    async def find_it_gone():
        await place.look()
        await eventually(lambda: not place.held and place.state == "running", within=60)
        assert not place.marker.exists()

    place.play(find_it_gone)
    place.marker.write_text("")

    async def find_it():
        await place.look()
        await eventually(lambda: place.held, within=60)

    place.play(find_it)


def test_a_hold_stands_where_nobody_knows_what_was_there_before(place):
    async def hold():
        await place.order(PAUSE)

    place.play(hold)  # the share was never looked at

    async def story():
        await place.look()
        assert place.marker.exists()
        assert place.held

    place.play(story)


def test_notes_about_markers_that_cannot_be_read_are_as_good_as_none(place):
    (place.home.path / "markers.json").write_text("{not json")

    async def story():
        await place.order(PAUSE)
        await place.look()
        assert place.marker.exists()

    place.play(story)
    kept = json.loads((place.home.path / "markers.json").read_text())
    assert kept == {"share": str(place.top), "markers": {"OrionMX": True}}


def test_while_a_marker_cannot_be_made_nothing_is_written_twice_of_it(place):
    kept = place.home.path / "markers.json"

    async def story():
        await place.look()
        await place.order(PAUSE)
        share = (await place.outreach._current()).share
        put = share.put

        async def full(folder, name, *words, **more):
            if "pause" in name:
                raise HostFailure("no space.", code="UPH_SHARE_FAILED")
            return await put(folder, name, *words, **more)

        share.put = full
        await place.look()
        assert json.loads(kept.read_text())["markers"] == {"OrionMX": None}
        written = kept.stat()
        await place.look()
        await place.look()
        found = kept.stat()
        assert (found.st_ino, found.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
        share.put = put
        await place.look()
        assert place.marker.exists()

    place.play(story)
    assert json.loads(kept.read_text())["markers"] == {"OrionMX": True}


def test_what_could_not_be_written_down_is_when_it_can(place):
    kept = place.home.path / "markers.json"

    async def story():
        kept.mkdir()
        await place.look()
        kept.rmdir()
        await place.look()

    place.play(story)
    assert json.loads(kept.read_text())["markers"] == {"OrionMX": False}


@pytest.mark.accepts("C-113")
def test_what_we_did_ourselves_without_hearing_of_it_is_nobodys_order(place):
    """The marker was removed, the answer was lost, and somebody pauses the worker once more."""

    async def story():
        await place.order(PAUSE)
        await place.look()
        await place.order(RESUME)
        share = (await place.outreach._current()).share
        really = share.remove

        async def deafly(*words):
            await really(*words)
            raise HostFailure("the answer was lost.", code="UPH_SHARE_UNREACHABLE")

        share.remove = deafly
        await place.look()
        assert not place.marker.exists()
        share.remove = really
        await place.order(PAUSE)
        await place.look()
        assert place.held
        assert place.marker.exists()

    place.play(story)
    assert place.rows("SELECT actor FROM audit_log_t WHERE actor = 'share'") == []
