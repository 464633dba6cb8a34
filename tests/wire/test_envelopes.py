from __future__ import annotations

import typing

import pytest

from uphold.core import events as facts
from uphold.core.events import Note, Recorded, SlotFact, StateChanged
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Due, Exit, Fault, Health, Identity, State
from uphold.wire.codecs import encode
from uphold.wire.envelopes import envelope, severity

NONCE = "nonce-canary-0123456789"
SPEC = WorkerSpec(name="api", command=("x",), environment=(("KEY", "environment-canary"),))
IDENTITY = Identity(pid=42, start_ticks=1, boot_id="b", inode=2, nonce=NONCE)
DIED = Exit(code=None, signal=9, at=1770301815.234)
FAULT = Fault(code="UPH_X", message="it broke")
SLOT = {"slot": "api.2", "generation": 3}

DUE = Due(at=Instant(5.0), wall=9.0, rule="every 5 s", text="then", owed=True, skipped=2)
NEXT_RUN = {"slot": "api.2", "why": "w", "next_run": "then", "queued": True, "skipped": 2}
CASES = [
    (
        facts.StartBegun(**SLOT, nonce=NONCE, terms=SPEC, seen=4, automatic=True, why="w"),
        "worker.starting",
        {**SLOT, "automatic": True, "desired_version": 4, "why": "w"},
    ),
    (facts.Started(**SLOT, identity=IDENTITY), "worker.connected", {**SLOT, "pid": 42}),
    (
        facts.StartFailed(**SLOT, fault=FAULT, hopeless=True),
        "worker.start_failed",
        {**SLOT, "error": {"code": "UPH_X", "message": "it broke"}, "hopeless": True},
    ),
    (facts.Adopted(**SLOT, identity=IDENTITY), "worker.adopted", {**SLOT, "pid": 42}),
    (
        facts.Exited(**SLOT, exit=DIED, left_overs=True),
        "worker.exited",
        {
            **SLOT,
            "exit": {"code": None, "signal": 9, "at": "2026-02-05T14:30:15.234Z"},
            "left_overs": True,
        },
    ),
    (facts.StopBegun(**SLOT, why="w"), "worker.stopping", {**SLOT, "why": "w"}),
    (facts.KillBegun(**SLOT), "worker.killing", SLOT),
    (
        facts.Gone(**SLOT, proof="lock"),
        "worker.disconnected",
        {**SLOT, "proof": "lock", "exit": None},
    ),
    (
        facts.StopFailed(**SLOT, fault=FAULT),
        "worker.stop_failed",
        {**SLOT, "error": {"code": "UPH_X", "message": "it broke"}},
    ),
    (facts.WaitBegun(slot="api.2", why="w"), "worker.waiting", {"slot": "api.2", "why": "w"}),
    (facts.GaveUp(slot="api.2", why="w"), "worker.failed", {"slot": "api.2", "why": "w"}),
    (facts.Rested(slot="api.2", why="w"), "worker.rested", {"slot": "api.2", "why": "w"}),
    (facts.Forgotten(slot="api.2"), "worker.forgotten", {"slot": "api.2"}),
    (facts.Pardoned(slot="api.2"), "worker.reset", {"slot": "api.2"}),
    (facts.Amended(slot="api.2", terms=SPEC), "worker.amended", {"slot": "api.2"}),
    (facts.Ready(**SLOT, why="w"), "worker.ready", {**SLOT, "why": "w"}),
    (facts.Recovered(**SLOT, why="w"), "worker.recovered", {**SLOT, "why": "w"}),
    (facts.Extended(**SLOT, seconds=5.0), "worker.extended", {**SLOT, "seconds": 5.0}),
    (facts.AbortBegun(**SLOT, why="w"), "worker.aborting", {**SLOT, "why": "w"}),
    (
        facts.Sickened(**SLOT, health=Health.DEGRADED, why="w"),
        "worker.degraded",
        {**SLOT, "health": "degraded", "why": "w"},
    ),
    (
        facts.Condemned(**SLOT, code="UPH_X", why="w"),
        "worker.unhealthy",
        {**SLOT, "error": {"code": "UPH_X", "message": "w"}, "why": "w"},
    ),
    (facts.Appointed(slot="api.2", due=DUE, why="w"), "worker.scheduled", NEXT_RUN),
    (facts.Skipped(slot="api.2", due=DUE, why="w"), "worker.skipped", NEXT_RUN),
    (
        StateChanged(slot="api.2", before=State.RUNNING, after=State.BACKOFF, why="w"),
        "worker.state_changed",
        {"slot": "api.2", "before": "running", "after": "backoff", "why": "w"},
    ),
]


def test_every_kind_of_fact_has_a_case_here():
    assert {type(case[0]) for case in CASES} == {*typing.get_args(SlotFact), StateChanged}


@pytest.mark.accepts("M-38")
@pytest.mark.parametrize(("event", "kind", "payload"), CASES)
def test_a_fact_about_a_slot_is_about_its_worker(event, kind, payload):
    shown = envelope(Recorded(seq=7, id="e7", at=1770301815.0, event=event, cause="order-1"))
    assert list(shown) == [
        "seq",
        "id",
        "type",
        "entity_type",
        "entity_id",
        "timestamp",
        "severity",
        "payload",
        "cause",
    ]
    assert shown["type"] == kind
    assert (shown["entity_type"], shown["entity_id"]) == ("worker", "api")
    assert shown["timestamp"] == "2026-02-05T14:30:15.000Z"
    assert shown["payload"] == payload
    assert (shown["seq"], shown["id"], shown["cause"]) == (7, "e7", "order-1")


@pytest.mark.accepts("S43")
@pytest.mark.parametrize("event", [case[0] for case in CASES])
def test_neither_nonce_nor_environment_leaves_in_an_envelope(event):
    raw = encode(envelope(Recorded(seq=1, id="x", at=0.0, event=event)))
    assert b"canary" not in raw


@pytest.mark.accepts("O-34")
def test_a_note_says_for_itself_what_it_is_about():
    payload = {"version": 3}
    note = Note(
        type="config.applied",
        entity_type="supervisor",
        entity_id="s-1",
        payload=payload,
        severity="warning",
    )
    shown = envelope(Recorded(seq=1, id="x", at=0.0, event=note))
    assert shown["type"] == "config.applied"
    assert (shown["entity_type"], shown["entity_id"]) == ("supervisor", "s-1")
    assert (shown["severity"], shown["payload"]) == ("warning", payload)
    assert shown["payload"] is not payload


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (facts.GaveUp(slot="a", why=""), "error"),
        (facts.StopFailed(slot="a", generation=1, fault=FAULT), "error"),
        (facts.StartFailed(slot="a", generation=1, fault=FAULT), "error"),
        (facts.KillBegun(slot="a", generation=1), "warning"),
        (facts.Started(slot="a", generation=1, identity=IDENTITY), "info"),
        (StateChanged(slot="a", before=State.RUNNING, after=State.FAILED, why=""), "error"),
        (StateChanged(slot="a", before=State.RUNNING, after=State.BACKOFF, why=""), "warning"),
        (StateChanged(slot="a", before=State.STARTING, after=State.RUNNING, why=""), "info"),
        *(
            (facts.Exited(slot="a", generation=1, exit=Exit(code=code, signal=sig, at=0.0)), level)
            for code, sig, level in [
                (0, None, "info"),
                (1, None, "warning"),
                (None, 15, "info"),
                (None, 9, "warning"),
                (None, None, "warning"),
            ]
        ),
    ],
)
def test_severity_says_how_much_a_person_should_care(event, level):
    assert severity(event) == level
