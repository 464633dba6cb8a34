from __future__ import annotations

from uphold.core.events import (
    Adopted,
    Amended,
    Appointed,
    Exited,
    Forgotten,
    GaveUp,
    Gone,
    KillBegun,
    Note,
    Pardoned,
    Recorded,
    Rested,
    Skipped,
    StartBegun,
    Started,
    StartFailed,
    StateChanged,
    StopBegun,
    StopFailed,
    WaitBegun,
)
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Due, Exit, Fault, Identity, State
from uphold.daemon.narrating import narrate

WHO = Identity(pid=7, start_ticks=1, boot_id="b", inode=1, nonce="secret-nonce")
SPEC = WorkerSpec(name="web", command=("x",))
FAULT = Fault(code="UPH_X", message="it broke")
DUE = Due(at=Instant(5.0), wall=9.0, rule="every 5 s", text="then")
FACTS = [
    StartBegun(slot="web.2", generation=1, nonce="n", terms=SPEC, seen=1, automatic=False, why="w"),
    Started(slot="web.2", generation=1, identity=WHO),
    StartFailed(slot="web.2", generation=1, fault=FAULT),
    Adopted(slot="web.2", generation=1, identity=WHO),
    Exited(slot="web.2", generation=1, exit=Exit(code=3, signal=None, at=0.0)),
    StopBegun(slot="web.2", generation=1, why="w"),
    KillBegun(slot="web.2", generation=1),
    Gone(slot="web.2", generation=1, proof="p"),
    StopFailed(slot="web.2", generation=1, fault=FAULT),
    WaitBegun(slot="web.2", why="w"),
    GaveUp(slot="web.2", why="w"),
    Rested(slot="web.2", why="w"),
    Forgotten(slot="web.2"),
    Pardoned(slot="web.2"),
    Amended(slot="web.2", terms=SPEC),
    Appointed(slot="web.2", due=DUE, why="w"),
    Skipped(slot="web.2", due=DUE, why="w"),
]


def told(event):
    entry = narrate(Recorded(seq=1, id="1", at=7.0, event=event))
    if entry is None:
        return []
    assert entry.at == 7.0
    context = {"worker": entry.worker, "task_id": entry.task_id, "label": entry.label}
    return [(entry.level.name, entry.event, entry.message, context)]


def test_every_fact_is_one_line_that_names_its_slot_and_worker():
    for fact in FACTS:
        ((_, event, message, context),) = told(fact)
        assert event == fact.TYPE
        assert "web.2" in message
        assert context["worker"] == "web"
        assert "secret-nonce" not in message


def test_a_forced_stop_says_so():
    ((_, _, message, _),) = told(KillBegun(slot="web", generation=1))
    assert "forced" in message


def test_a_change_of_state_is_told_by_the_fact_that_caused_it():
    changed = StateChanged(slot="w", before=State.RUNNING, after=State.BACKOFF, why="x")
    assert told(changed) == []


def test_an_order_carries_its_id_and_label():
    note = Note(
        type="order.accepted",
        entity_type="order",
        entity_id="job_1",
        payload={"verb": "stop", "label": "night", "reason": ""},
        severity="warning",
    )
    ((level, event, message, context),) = told(note)
    assert (level, event, context["task_id"], context["label"]) == (
        "WARNING",
        "order.accepted",
        "job_1",
        "night",
    )
    assert "verb=stop" in message
    assert "reason" not in message


def test_what_is_done_with_flags_is_told_once_by_whoever_does_it():
    note = Note(type="flag.rejected", entity_type="flag", entity_id="task_7", payload={})
    assert told(note) == []
