"""What a start would do, by the planner's own word; a journey compares it with a real start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.cli.foretelling import Sight, foretell
from uphold.core.events import Moment
from uphold.core.overrides import Override
from uphold.core.specs import Instant, Kind, Need, RestartPolicy, Schedule, WorkerSpec
from uphold.core.statuses import Exit, Identity, SlotStatus, State
from uphold.journal.recalling import NOTHING
from uphold.ports.drivers import Trace
from uphold.wire.overrides import encode_override

NOW = Moment(mono=Instant(1000.0), wall=1_767_225_600.0)
RAN = Identity(pid=7, start_ticks=1, boot_id="boot", inode=0, nonce="n")

web = WorkerSpec(name="web", command=("serve",))
db = WorkerSpec(name="db", command=("db",))
after_db = replace(web, depends_on=(("db", Need.STARTED),))


def slot(spec: WorkerSpec, state: State, **more: object) -> SlotStatus:
    known = {"since": Instant(990.0), "generation": 3, "terms": spec, "seen": 1, "started_seen": 1}
    return SlotStatus(slot=spec.name, state=state, **(known | more))


def told(*specs: WorkerSpec, slots=(), orders=None, alive=False, strays=(), **meta: str):
    memory = replace(
        NOTHING,
        slots={each.slot: each for each in slots},
        overrides={name: encode_override(order) for name, order in (orders or {}).items()},
        meta={"boot_id": "boot", "declaration_version": "1", **meta},
    )
    sight = Sight(boot_id="boot", now=NOW, lives=lambda _: alive, strays=strays)
    changes = foretell(specs, memory, sight)
    return [(each.name, each.action, each.reason) for each in changes]


def test_what_never_ran_is_started():
    assert told(web) == [("web", "start", "new")]


def test_who_waits_for_others_that_come_up_is_started_after_them():
    assert told(db, after_db) == [
        ("db", "start", "new"),
        ("web", "start", "new, waits for 'db' to be started (it is stopped)"),
    ]


def test_who_waits_for_others_that_stay_down_is_not_started():
    assert told(replace(db, enabled=False), after_db) == [
        ("db", "none", "new, disabled"),
        ("web", "none", "waits for 'db' to be started (it is disabled)"),
    ]


def test_who_is_in_backoff_starts_when_that_is_over():
    spec = replace(web, backoff=replace(web.backoff, first=60.0, jitter=0.0))
    failed = slot(spec, State.BACKOFF, failures=1, exit=Exit(code=1, signal=None, at=0.0))
    ((_, action, why),) = told(spec, slots=[failed])
    assert action == "none"
    assert "starts again in 50 s" in why
    late = replace(failed, since=Instant(900.0))
    assert told(spec, slots=[late])[0][1] == "start"


def test_who_has_done_its_work_does_not_do_it_again():
    spec = replace(web, restart=RestartPolicy.NO)
    done = slot(spec, State.EXITED, exit=Exit(code=0, signal=None, at=0.0))
    assert told(spec, slots=[done])[0][1] == "none"


def test_a_run_that_ended_unseen_is_begun_again_unless_it_is_never_to_be():
    running = slot(web, State.RUNNING, identity=RAN)
    assert told(web, slots=[running], alive=True) == [("web", "none", "alive, will be adopted")]
    assert told(web, slots=[running])[0][1] == "start"
    once = replace(web, restart=RestartPolicy.NO)
    assert told(once, slots=[replace(running, terms=once)])[0][1] == "none"


def test_a_job_on_a_schedule_waits_for_its_run():
    ((_, action, why),) = told(replace(web, schedule=Schedule(every=600.0)))
    assert action == "none"
    assert why.startswith("next run at ")


def test_a_failed_one_that_was_reset_is_tried_again():
    failed = slot(web, State.FAILED, failures=10)
    assert told(web, slots=[failed]) == [("web", "none", "failed, stays down")]
    assert told(web, slots=[failed], orders={"web": Override(pardon=2, by="ada")})[0][1] == "start"


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (Override(held=True, by="ada"), "paused by ada"),
        (Override(up=False, by="ada"), "stopped by ada"),
        (Override(quarantined=True, by="ada"), "quarantined by ada"),
        (Override(replicas=0, by="ada"), "scaled to 0"),
    ],
)
def test_what_people_ordered_stays_in_force(order, reason):
    assert told(web, orders={"web": order}) == [("web", "none", reason)]
    running = slot(web, State.RUNNING, identity=RAN)
    assert told(web, slots=[running], orders={"web": order}, alive=True) == [
        ("web", "stop", f"alive, but {reason}")
    ]


def test_a_paused_supervisor_starts_nobody():
    reason = "the supervisor is paused: `uphold resume` lets it act"
    assert told(web, paused="1") == [("web", "none", reason)]
    running = slot(db, State.RUNNING, identity=RAN)
    assert told(web, slots=[running], alive=True, paused="1") == [("web", "none", reason)]


def test_chains_and_layers_of_any_size_are_foretold():
    """Each is looked at once: a file is refused for a circle, never for its length."""
    chain = [
        replace(web, name=f"w{n}", depends_on=((f"w{n - 1}", Need.STARTED),) if n else ())
        for n in range(1_000)
    ]
    assert {action for _, action, _ in told(*chain)} == {"start"}
    below = [()] + [((f"a{n}", Need.STARTED), (f"b{n}", Need.STARTED)) for n in range(40)]
    layers = [
        replace(web, name=f"{side}{n}", depends_on=after)
        for n, after in enumerate(below)
        for side in "ab"
    ]
    assert {action for _, action, _ in told(*layers)} == {"start"}
    down = [replace(each, enabled=each.name != "b3") for each in layers]
    waiting = {name for name, action, _ in told(*down) if action == "none"}
    assert waiting == {"b3", *(f"{side}{n}" for n in range(4, 41) for side in "ab")}


def test_a_worker_elsewhere_is_listened_to_again_and_not_started():
    far = WorkerSpec(name="far", kind=Kind.REMOTE)
    heard = slot(far, State.RUNNING, identity=replace(RAN, pid=0))
    assert [action for _, action, _ in told(far, slots=(heard,))] == ["none"]


def test_a_stop_by_somebody_whom_nobody_knows_is_still_a_stop():
    ordered = {"web": Override(up=False)}
    assert told(web, orders=ordered) == [("web", "none", "stopped")]


ONCE = replace(db, restart=RestartPolicy.NO)


def ended(code: int) -> SlotStatus:
    return slot(ONCE, State.EXITED, exit=Exit(code=code, signal=None, at=0.0))


@pytest.mark.parametrize(
    ("code", "need"), [(1, Need.COMPLETED), (1, Need.STARTED), (0, Need.HEALTHY), (1, Need.HEALTHY)]
)
def test_who_needs_what_one_that_has_ended_is_not_waits_in_vain(code, need):
    waiting = replace(web, depends_on=(("db", need),))
    assert [action for _, action, _ in told(ONCE, waiting, slots=[ended(code)])] == ["none"] * 2


@pytest.mark.parametrize("need", [Need.COMPLETED, Need.STARTED])
def test_who_needs_one_that_has_ended_well_waits_for_others_only(need):
    cache = WorkerSpec(name="cache", command=("cache",))
    waiting = replace(web, depends_on=(("cache", Need.STARTED), ("db", need)))
    found = told(cache, ONCE, waiting, slots=[ended(0)])
    assert [action for _, action, _ in found] == ["start", "none", "start"]


def test_who_needs_a_job_that_has_run_well_waits_for_others_only():
    cache = WorkerSpec(name="cache", command=("cache",))
    job = replace(db, schedule=Schedule(every=600.0))
    ran = slot(job, State.WAITING, exit=Exit(code=0, signal=None, at=0.0))
    waiting = replace(web, depends_on=(("cache", Need.STARTED), ("db", Need.COMPLETED)))
    found = told(cache, job, waiting, slots=[ran])
    assert [action for _, action, _ in found] == ["start", "none", "start"]


def test_who_needs_all_slots_of_one_that_failed_in_part_waits_in_vain():
    two = replace(db, replicas=2)
    failed = replace(slot(two, State.FAILED, failures=10), slot="db.2")
    assert [action for _, action, _ in told(two, after_db, slots=[failed])] == ["start", "none"]


def test_a_job_whose_run_goes_on_is_changed_with_its_next_run():
    job = replace(web, schedule=Schedule(every=600.0))
    running = slot(job, State.RUNNING, identity=RAN)
    changed = replace(job, command=("other",), stop=replace(job.stop, grace=5.0))
    assert told(changed, slots=[running], alive=True) == [
        ("web", "update", "with its next run: command, stop.grace")
    ]
    patient = replace(job, stop=replace(job.stop, grace=5.0))
    assert told(patient, slots=[running], alive=True) == [
        ("web", "update", "applies in place: stop.grace")
    ]


def test_one_that_has_run_and_is_not_wanted_is_not_called_new():
    off = replace(web, enabled=False)
    assert told(off) == [("web", "none", "new, disabled")]
    assert told(off, slots=[slot(off, State.STOPPED)]) == [("web", "none", "disabled")]


def test_a_slot_that_stays_down_is_told_beside_those_that_live():
    two = replace(web, replicas=2)
    failed = replace(slot(two, State.FAILED, failures=10), slot="web.2")
    running = slot(two, State.RUNNING, identity=RAN)
    assert told(two, slots=[running, failed], alive=True) == [
        ("web", "none", "1 of 2 alive, will be adopted; web.2: failed, stays down")
    ]


def test_what_lives_although_the_books_know_nothing_of_it_is_adopted():
    found = [
        Trace(slot=name, generation=3, nonce="n", identity=RAN, spec=WorkerSpec(name=name))
        for name in ("web", "lost")
    ]
    adopted = ("web", "none", "alive, will be adopted")
    assert told(web, strays=found, alive=True) == [
        adopted,
        ("lost", "remove", "no longer in the file: alive, will be stopped"),
    ]
    behind = slot(web, State.STOPPED, generation=2)
    assert told(web, slots=[behind], strays=found[:1], alive=True) == [adopted]
