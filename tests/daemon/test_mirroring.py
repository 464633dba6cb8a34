"""What is news for runtime.json, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.core.statuses import Fault, SlotStatus, SupervisorStatus
from uphold.daemon.mirroring import alike, ended_view
from uphold.engine.snapshots import Snapshot

SHOWN = Snapshot(version=7)


def test_a_look_that_found_nothing_new_is_no_news():
    looked = replace(SHOWN, version=8, last_reconcile=12.0, reconcile_count=3, turned=2)
    assert alike(looked, SHOWN)


@pytest.mark.parametrize(
    "changed",
    [
        replace(SHOWN, observed=SHOWN.observed.with_changes((SlotStatus(slot="web"),), ())),
        replace(SHOWN, declaration=replace(SHOWN.declaration, paused=True)),
        replace(SHOWN, status=SupervisorStatus.PAUSED),
        replace(SHOWN, last_error=Fault(code="UPH_X", message="it broke")),
    ],
)
def test_whatever_runtime_json_shows_is(changed):
    assert not alike(changed, SHOWN)


def test_whoever_ends_left_overs_corrects_what_their_supervisor_wrote_last():
    last = {
        "running": True,
        "pid": 7,
        "stopped_at": None,
        "supervisor": {"id": "x", "ownership": "running", "status": "active", "stopped_at": None},
        "workers": {"web": {"state": "running"}, "gone": {"state": "running"}},
        "overrides": {"web": "held"},
    }
    ended = replace(SHOWN, observed=SHOWN.observed.with_changes((SlotStatus(slot="web"),), ()))
    shown = ended_view(last, ended, 1.0)
    assert (shown["running"], shown["pid"]) == (False, None)
    assert shown["stopped_at"] == "1970-01-01T00:00:01.000Z"
    assert shown["supervisor"] == {
        "id": "x",
        "ownership": "stopped",
        "status": "terminated",
        "stopped_at": "1970-01-01T00:00:01.000Z",
    }
    assert {slot: view["state"] for slot, view in shown["workers"].items()} == {"web": "stopped"}
    assert shown["overrides"] == {"web": "held"}, "the journal is lost"
    assert ended_view(last, ended, 1.0, {})["overrides"] == {}
    assert ended_view(last, ended, 1.0, {"api": "down"})["overrides"] == {"api": "down"}


def test_a_last_word_that_says_little_is_corrected_as_far_as_it_goes():
    shown = ended_view({}, SHOWN, 1.0)
    assert shown["supervisor"]["ownership"] == "stopped"
