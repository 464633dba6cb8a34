from __future__ import annotations

from dataclasses import fields, replace

import pytest

from uphold.core import orders
from uphold.core.changes import (
    Change,
    asked_again,
    begins_anew,
    differences,
    outgrown,
    preview,
    restarting,
)
from uphold.core.declaring import Entry
from uphold.core.overrides import Override, file_says
from uphold.core.specs import (
    Backoff,
    Heartbeat,
    Kind,
    Limits,
    Logs,
    Need,
    Probe,
    RestartPolicy,
    Schedule,
    StopRule,
    WorkerSpec,
)
from uphold.core.statuses import Exit, SlotStatus, State
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))

OTHER: dict[str, object] = {
    "name": "other",
    "command": ("serve", "--fast"),
    "kind": Kind.PYTHON,
    "python": "app:Other",
    "shell": True,
    "working_dir": "/srv",
    "user": "www",
    "group": "www",
    "umask": 0o27,
    "environment": (("LEVEL", "info"),),
    "pass_environment": ("PATH",),
    "clear_environment": True,
    "enabled": False,
    "quarantined": True,
    "autostart": False,
    "replicas": 2,
    "team": "front",
    "essential": True,
    "restart": RestartPolicy.NO,
    "backoff": Backoff(base=2.0),
    "stable_after": 5.0,
    "max_restarts": 3,
    "success_exit_codes": (0, 2),
    "stop": StopRule(grace=5.0),
    "depends_on": (("db", Need.STARTED),),
    "ready": Probe(way="tcp", target="127.0.0.1:1"),
    "live": Probe(way="exec", command=("true",)),
    "heartbeat": Heartbeat(stale_after=5.0),
    "limits": Limits(nofile=64),
    "containment": "group",
    "logs": Logs(keep=9),
    "schedule": Schedule(every=60.0),
    "labels": (("tier", "front"),),
}
"""For every field of a spec some other value."""

RESTARTING = {
    "command",
    "kind",
    "python",
    "shell",
    "working_dir",
    "user",
    "group",
    "umask",
    "environment",
    "pass_environment",
    "clear_environment",
    "limits",
    "containment",
    "heartbeat",  # as far as it is told of it in its environment
}


def changed(key: str, spec: WorkerSpec = web) -> WorkerSpec:
    return replace(spec, **{key: OTHER[key]})


def test_the_table_above_knows_every_field():
    assert list(OTHER) == [field.name for field in fields(WorkerSpec)]


def test_equal_specs_have_no_differences():
    assert differences(web, replace(web)) == ()
    assert restarting(web, replace(web)) == ()


@pytest.mark.accepts("B-27", "M-20")
@pytest.mark.parametrize("key", OTHER)
def test_any_field_counts_as_a_change(key):
    found = differences(web, changed(key))
    assert len(found) == 1
    assert found[0].partition(".")[0] == key


@pytest.mark.accepts("B-27", "M-20")
@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("backoff.first", Backoff(first=5.0)),
        ("backoff.base", Backoff(base=5.0)),
        ("backoff.max", Backoff(max=5.0)),
        ("backoff.jitter", Backoff(jitter=0.0)),
        ("stop.signal", StopRule(signal="INT")),
        ("stop.grace", StopRule(grace=5.0)),
        ("stop.command", StopRule(command=("halt",))),
        ("logs.mode", Logs(mode="file")),
        ("logs.max_size", Logs(max_size=5)),
        ("logs.keep", Logs(keep=9)),
        ("logs.compress", Logs(compress=False)),
        ("logs.split", Logs(split=True)),
        ("logs.overflow", Logs(overflow="drop")),
    ],
)
def test_tables_are_compared_key_by_key(key, table):
    assert differences(web, replace(web, **{key.partition(".")[0]: table})) == (key,)


def test_several_differences_are_named_in_the_order_of_the_spec():
    after = replace(web, labels=(("a", "b"),), command=("x",), stop=StopRule(signal="INT", grace=1))
    assert differences(web, after) == ("command", "stop.signal", "stop.grace", "labels")


@pytest.mark.accepts("E-16")
@pytest.mark.parametrize("key", [key for key in OTHER if key != "name"])
def test_only_what_a_process_is_born_with_needs_a_restart(key):
    assert restarting(web, changed(key)) == ((key,) if key in RESTARTING else ())


@pytest.mark.accepts("E-16")
@pytest.mark.parametrize(
    ("logs", "keys"),
    [
        (Logs(mode="file"), ("logs.mode",)),
        (Logs(split=True), ("logs.split",)),
        (Logs(max_size=1, keep=1, compress=False, overflow="drop"), ()),
    ],
)
def test_of_the_logs_only_mode_and_split_need_a_restart(logs, keys):
    assert restarting(web, replace(web, logs=logs)) == keys


@pytest.mark.accepts("E-16")
@pytest.mark.parametrize(
    ("before", "after", "needs"),
    [
        (None, Heartbeat(), True),
        (Heartbeat(stale_after=5.0), Heartbeat(stale_after=9.0), True),
        (Heartbeat(stale_after=5.0), Heartbeat(stale_after=5.0, stall_after=9.0), False),
        (Heartbeat(file="/a"), Heartbeat(file="/b"), True),
        (Heartbeat(file="/a", stale_after=5.0), Heartbeat(file="/a", stale_after=9.0), False),
        (Heartbeat(file="/a"), Heartbeat(file="/a", on_stale="restart"), False),
        (Heartbeat(file="/a"), None, True),
    ],
)
def test_of_the_heartbeat_only_what_a_worker_is_told_of_it_needs_a_restart(before, after, needs):
    found = restarting(replace(web, heartbeat=before), replace(web, heartbeat=after))
    assert found == (("heartbeat",) if needs else ())


@pytest.mark.parametrize(
    ("before", "after", "needs"),
    [
        (None, Probe(way="fd", target="4"), True),
        (Probe(way="notify"), Probe(way="fd", target="4"), True),
        (Probe(way="fd", target="4"), Probe(way="fd", target="5"), True),
        (Probe(way="fd", target="4"), Probe(way="fd", target="4", timeout=9.0), False),
        (Probe(way="fd", target="4"), Probe(way="notify"), False),
        (Probe(way="fd", target="4"), None, False),
        (Probe(way="log", target="up"), Probe(way="notify"), False),
    ],
)
def test_one_that_is_not_ready_yet_and_has_no_descriptor_to_say_so_by_needs_a_restart(
    before, after, needs
):
    starting = SlotStatus(slot="web", state=State.STARTING, terms=replace(web, ready=before))
    spec = replace(web, ready=after)
    assert outgrown(starting, spec) == (("ready",) if needs else ())
    assert outgrown(replace(starting, state=State.RUNNING), spec) == (), "it has been ready"
    (change,) = preview({"web": Entry(spec=replace(web, ready=before))}, [spec])
    assert change.action == "update"
    assert change.reason.endswith("; restarts it if it is not ready yet") is needs


def test_what_needs_a_restart_does_so_in_any_state():
    starting = SlotStatus(slot="web", state=State.STARTING, terms=web)
    for state in (State.STARTING, State.RUNNING):
        assert outgrown(replace(starting, state=state), replace(web, shell=True)) == ("shell",)


@pytest.mark.parametrize("key", [key for key in OTHER if key not in ("name", "kind")])
def test_any_difference_reconnects_an_mcp_worker(key):
    mcp = replace(web, kind=Kind.MCP)
    after = changed(key, mcp)
    assert restarting(mcp, after) == differences(mcp, after) != ()


@pytest.mark.parametrize("state", [State.BACKOFF, State.EXITED])
def test_what_has_ended_begins_anew_when_a_process_would_be_born_differently(state):
    ended = SlotStatus(slot="web", state=state, terms=web)
    assert begins_anew(ended, replace(web, command=("x",)))
    assert not begins_anew(ended, replace(web, labels=(("a", "b"),)))
    assert not begins_anew(ended, replace(web))


@pytest.mark.parametrize(
    ("wish", "cause"),
    [
        (orders.RestartWorkers(names=("web",)), "restart ordered by ann"),
        (orders.StartWorkers(names=("web",)), "start ordered by ann"),
        (orders.Declare(specs=(replace(web, shell=True, umask="077"),)), "changed: shell, umask"),
        (orders.Declare(specs=(replace(web, team="front"),)), None),
        (orders.StopWorkers(names=("web",)), None),
    ],
)
def test_what_has_ended_starts_afresh_for_a_person_or_a_changed_file(wish, cause):
    over = SlotStatus(slot="web", state=State.EXITED, terms=web, seen=1, started_seen=1)
    entry = Scenario(web).orders(wish).declaration.workers["web"]
    assert asked_again(entry, over) == cause
    hopeless = "its terms changed" if cause is None and entry.spec != web else cause
    assert asked_again(entry, replace(over, state=State.FAILED)) == hopeless


def test_what_the_file_changed_of_a_job_on_a_schedule_is_for_its_next_run():
    over = SlotStatus(slot="web", state=State.EXITED, terms=web)
    assert (
        asked_again(Entry(spec=replace(web, shell=True, schedule=Schedule(every=9.0))), over)
        is None
    )


def ended(code: int, policy: RestartPolicy, **more: object) -> SlotStatus:
    terms = replace(web, restart=policy)
    end = Exit(code=code, signal=None, at=0.0)
    return SlotStatus(slot="web", state=State.EXITED, terms=terms, exit=end, **more)


@pytest.mark.parametrize(
    ("code", "before", "after", "begins"),
    [
        (0, RestartPolicy.NO, RestartPolicy.ALWAYS, True),
        (1, RestartPolicy.NO, RestartPolicy.ON_FAILURE, True),
        (0, RestartPolicy.NO, RestartPolicy.ON_FAILURE, False),
        (0, RestartPolicy.ON_FAILURE, RestartPolicy.ALWAYS, True),
        (0, RestartPolicy.ON_FAILURE, RestartPolicy.NO, False),
    ],
)
def test_what_has_ended_begins_anew_when_the_policy_now_wants_that(code, before, after, begins):
    assert begins_anew(ended(code, before), replace(web, restart=after)) is begins


def test_an_end_of_which_the_books_say_nothing_is_no_reason_to_begin_anew():
    lost = replace(ended(1, RestartPolicy.NO), exit=None)
    assert not begins_anew(lost, replace(web, restart=RestartPolicy.ALWAYS))


@pytest.mark.accepts("P8")
def test_what_was_given_up_begins_anew_with_any_change():
    given_up = SlotStatus(slot="web", state=State.FAILED, terms=web)
    assert begins_anew(given_up, replace(web, labels=(("a", "b"),)))
    assert not begins_anew(given_up, replace(web))
    assert not begins_anew(replace(given_up, terms=None), web)


def _preview(before: Scenario | None, *after: WorkerSpec) -> list[tuple[str, str]]:
    workers = {} if before is None else before.declaration.workers
    return [(change.name, change.action) for change in preview(workers, after)]


@pytest.mark.accepts("M-15", "M-16", "M-17")
@pytest.mark.parametrize(
    ("spec", "action", "reason"),
    [
        (web, "start", "new"),
        (replace(web, enabled=False), "none", "new, disabled"),
        (replace(web, quarantined=True), "none", "new, quarantined until approved"),
        (replace(web, autostart=False), "none", "new, started only on request"),
    ],
)
def test_a_new_worker_is_started_unless_it_is_held_back(spec, action, reason):
    assert preview({}, [spec]) == (Change(name="web", action=action, reason=reason),)


@pytest.mark.accepts("M-11")
def test_an_unchanged_worker_is_left_alone():
    assert preview({"web": Entry(spec=web)}, [web]) == (
        Change(name="web", action="none", reason="unchanged"),
    )


@pytest.mark.accepts("M-20", "E-16")
def test_a_change_that_needs_a_restart_says_which_key_needs_it():
    after = replace(web, command=("x",), labels=(("a", "b"),))
    assert preview({"web": Entry(spec=web)}, [after]) == (
        Change(name="web", action="restart", reason="changed: command", keys=("command", "labels")),
    )


@pytest.mark.accepts("E-16")
def test_a_change_that_needs_none_applies_in_place():
    assert preview({"web": Entry(spec=web)}, [replace(web, max_restarts=3)]) == (
        Change(
            name="web",
            action="update",
            reason="applies in place: max_restarts",
            keys=("max_restarts",),
        ),
    )


@pytest.mark.accepts("M-18", "M-19")
@pytest.mark.parametrize("key", ["enabled", "quarantined", "autostart"])
def test_a_file_that_holds_a_worker_back_stops_it_and_starts_it_when_it_lets_go(key):
    held = changed(key)
    assert _preview(Scenario(web), held) == [("web", "stop")]
    assert _preview(Scenario(held), web) == [("web", "start")]


@pytest.mark.accepts("M-21")
def test_a_worker_that_is_gone_from_the_file_is_removed_and_comes_last():
    db = WorkerSpec(name="db")
    assert _preview(Scenario(db, web), web) == [("web", "none"), ("db", "remove")]


def test_companions_are_never_removed_by_a_file():
    pump = WorkerSpec(name="@pump")
    assert _preview(Scenario(pump), web) == [("web", "start")]


def test_a_worker_that_does_not_run_is_only_updated():
    off = replace(web, enabled=False)
    assert _preview(Scenario(off), replace(off, command=("x",))) == [("web", "update")]


@pytest.mark.parametrize(
    "wish", [orders.StopWorkers(names=("web",)), orders.PauseWorkers(names=("web",))]
)
def test_what_an_operator_keeps_down_a_change_of_the_file_only_updates(wish):
    stopped = Scenario(web).orders(wish)
    assert _preview(stopped, replace(web, command=("x",))) == [("web", "update")]


def test_what_an_operator_started_goes_on_although_the_file_says_on_request_only():
    lazy = replace(web, autostart=False)
    started = Scenario(lazy).orders(orders.StartWorkers(names=("web",)))
    assert _preview(started, replace(lazy, labels=(("a", "b"),))) == [("web", "update")]
    assert _preview(started, replace(lazy, command=("x",))) == [("web", "restart")]


def test_letting_go_of_one_hold_starts_nothing_while_there_is_another():
    off = replace(web, enabled=False)
    assert _preview(Scenario(off), replace(off, enabled=True, quarantined=True)) == [
        ("web", "update")
    ]
    paused = Scenario(off).orders(orders.PauseWorkers(names=("web",)))
    assert _preview(paused, web) == [("web", "update")]


@pytest.mark.accepts("P12")
@pytest.mark.parametrize("key", [key for key in OTHER if key != "name"])
def test_what_is_foretold_is_what_happens(key):
    """The preview of a running worker agrees with what the planner then does."""
    scenario = Scenario(web)
    scenario.acts()
    scenario.rises("web")
    ((_, foretold),) = _preview(scenario, changed(key))
    scenario.declares(changed(key))
    done = {type(action).__name__ for action in scenario.decides().actions}
    if foretold in ("restart", "stop"):
        assert done == {"Stop"}
    else:
        assert foretold == "update"
        assert done <= {"Amend", "Start"}
        assert ("Start" in done) is (key == "replicas")


def test_without_a_supervisor_orders_in_force_are_part_of_the_plan():
    specs = [WorkerSpec(name=name, command=("x",)) for name in ("a", "b", "c", "d")]
    said = file_says(specs[0])
    ordered = {
        "a": Override(up=False, by="ann: repair", said=said),
        "b": Override(held=True, by="bob", said=said),
        "c": Override(enabled=False, said=said),
        "d": Override(up=False, by="ann", said=replace(said, autostart=False)),
    }
    found = preview({}, specs, ordered)
    assert [(each.name, each.action, each.reason) for each in found] == [
        ("a", "none", "stopped by ann: repair"),
        ("b", "none", "paused by bob"),
        ("c", "none", "disabled"),
        ("d", "start", "new"),
    ]


def test_a_hold_by_nobody_we_know_is_still_a_hold():
    spec = WorkerSpec(name="a", command=("x",))
    (change,) = preview({}, [spec], {"a": Override(held=True)})
    assert (change.action, change.reason) == ("none", "paused")


def test_how_a_remote_worker_beats_is_changed_in_place():
    before = WorkerSpec(name="web", kind=Kind.REMOTE, heartbeat=Heartbeat())
    after = WorkerSpec(name="web", kind=Kind.REMOTE, heartbeat=Heartbeat(stale_after=5.0))
    assert restarting(before, after) == ()
