from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from core.steps import stop
from uphold.core import events, orders
from uphold.core.absorbing import Observed
from uphold.core.declaring import Declaration, Entry
from uphold.core.explaining import explain, why
from uphold.core.specs import Backoff, Heartbeat, Instant, Kind, Need, RestartPolicy, WorkerSpec
from uphold.core.statuses import Fault, Finding, Health, Identity, SlotStatus, State
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",), backoff=Backoff(jitter=0.0))
WEB = ("web",)
STOP, START = orders.StopWorkers(names=WEB), orders.StartWorkers(names=WEB)
PAUSE, RESUME = orders.PauseWorkers(names=WEB), orders.ResumeWorkers(names=WEB)
DISABLE, ENABLE = orders.DisableWorkers(names=WEB), orders.EnableWorkers(names=WEB)
QUARANTINE = orders.QuarantineWorkers(names=WEB)
RESET = orders.ResetWorkers(names=WEB)
WITHHOLD = orders.WithholdWorkers(names=WEB)


def up(*specs: WorkerSpec) -> Scenario:
    scenario = Scenario(*specs)
    scenario.acts()
    return scenario.rises(*scenario.observed.slots)


def told(scenario: Scenario, name: str = "web") -> str:
    return explain(name, scenario.declaration, scenario.observed, scenario.now.mono)


def short(scenario: Scenario, slot: str = "web") -> str:
    entry = scenario.declaration.workers.get("web")
    status = scenario.observed.slots.get(slot) or SlotStatus(slot=slot)
    return why(entry, status, scenario.now.mono)


def in_backoff(spec: WorkerSpec = web) -> Scenario:
    """Failed twice, so that the next start is a second away."""
    scenario = up(spec).at(100).exits("web", 0).at(100)
    scenario.acts()
    scenario.rises("web").at(110).exits("web", 3)
    return scenario


def test_running():
    scenario = up(web).at(300)
    assert short(scenario) == "up since 5 min"
    assert told(scenario) == (
        "'web' shall run. It is running (pid 1001): up since 5 min. "
        "Generation 1, never restarted by itself."
    )


def test_running_again():
    scenario = in_backoff().at(111)
    scenario.acts()
    scenario.rises("web").at(141)
    assert told(scenario).endswith("up since 30 s. Generation 3, restarted 2 x by itself.")


def test_being_started():
    scenario = Scenario(web)
    assert short(scenario) == "not started yet"
    scenario.acts()
    assert told(scenario) == "'web' shall run. It is starting: being started: declared."


@pytest.mark.accepts("B-14b")
def test_back_off():
    scenario = in_backoff().at(110.5)
    assert short(scenario) == ("exited with code 3 after 10 s; starts again in 0.5 s, try 2 of 10")
    assert told(scenario) == (
        "'web' shall run. It is in back-off: exited with code 3 after 10 s; starts again in "
        "0.5 s, try 2 of 10. The rule is restart = always with back-off: 2 failed runs in a row, "
        "so the next start is in 0.5 s; sooner with: uphold start web."
    )


def test_one_failed_run_is_one_run():
    scenario = up(replace(web, backoff=Backoff(first=5.0, jitter=0.0))).at(1).exits("web", 1)
    assert "with back-off: 1 failed run in a row, so" in told(scenario)


@pytest.mark.accepts("E-41")
def test_a_start_that_is_overdue_is_due_now_and_not_in_the_past():
    assert "starts again in 0.0 s" in short(in_backoff().at(500))


def test_back_off_without_an_end_of_trying():
    assert short(in_backoff(replace(web, max_restarts=None))).endswith("starts again in 1.0 s")


def test_back_off_about_to_be_given_up_promises_no_start():
    scenario = up(replace(web, max_restarts=0)).at(1).exits("web", 1)
    assert "the next start" not in told(scenario)
    assert short(scenario) == "exited with code 1 after 1.0 s; it is not tried again"


@pytest.mark.parametrize("wish", [STOP, PAUSE, orders.ScaleWorker(name="web", replicas=0)])
def test_back_off_of_a_worker_that_is_no_longer_wanted_promises_no_start(wish):
    """As it stays while the supervisor is paused."""
    scenario = in_backoff().orders(orders.PauseSupervisor()).orders(wish)
    scenario.acts()
    assert scenario.status("web").state is State.BACKOFF
    assert short(scenario) == "exited with code 3 after 10 s"
    assert "starts again" not in told(scenario)
    assert "next start" not in told(scenario)


def test_back_off_of_a_worker_no_longer_declared():
    assert short(in_backoff().declares()) == "exited with code 3 after 10 s"
    forgotten = SlotStatus(slot="web", state=State.BACKOFF, why="exited with code 3")
    assert why(None, forgotten, Instant(0.0)) == "exited with code 3"


def test_being_aborted_says_when_sigkill_really_comes():
    scenario = up(web).at(5)
    condemned = events.Condemned(slot="web", generation=1, code="UPH_X", why="no answer")
    scenario.happens(condemned).acts()
    assert short(scenario) == "no answer; SIGKILL in 10 s"


def test_given_up():
    scenario = Scenario(web)
    scenario.acts()
    scenario.cannot_start("web", "no such command: serve", hopeless=True).acts()
    assert short(scenario) == "no such command: serve"
    assert told(scenario) == (
        "'web' shall run. It is given up: no such command: serve. It is not started again by "
        "itself. Once the cause is mended: uphold start web (or reset web); its output: "
        "uphold logs web."
    )


def test_waiting_on_a_dependency():
    db = WorkerSpec(name="db")
    scenario = Scenario(db, replace(web, depends_on=(("db", Need.HEALTHY),)))
    scenario.acts()
    assert short(scenario) == "waits for 'db' to be healthy (it is stopped)"
    assert told(scenario) == (
        "'web' shall run. It is waiting: waits for 'db' to be healthy (it is stopped). "
        "It starts as soon as that is so."
    )


@pytest.mark.parametrize(
    ("hold", "words", "reason"),
    [
        (
            orders.PauseWorkers(names=WEB),
            "'web' is held: paused by ann: too loud. It shall not run until: uphold resume web.",
            "paused by ann: too loud",
        ),
        (
            orders.DisableWorkers(names=WEB),
            "'web' is disabled by ann: too loud. It shall not run until: uphold enable web.",
            "disabled by ann: too loud",
        ),
        (
            orders.QuarantineWorkers(names=WEB),
            "'web' is quarantined by ann: too loud. It shall not run until: uphold approve web.",
            "quarantined by ann: too loud",
        ),
        (
            orders.StopWorkers(names=WEB),
            "'web' shall not run (stopped by ann: too loud). Start it with: uphold start web.",
            "stopped by ann: too loud",
        ),
    ],
)
def test_held_by_an_operator(hold, words, reason):
    scenario = up(web).orders(hold, reason="too loud")
    scenario.acts()
    scenario.vanishes("web")
    assert short(scenario) == reason
    assert told(scenario) == f"{words} It is stopped: {reason}."


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([STOP, RESET], "stopped by ann"),
        ([PAUSE, STOP], "paused by ann"),
        ([PAUSE, STOP, RESUME], "stopped by bob"),
        ([STOP, DISABLE], "disabled by bob"),
        ([STOP, DISABLE, ENABLE], "stopped by ann"),
        ([DISABLE, PAUSE], "paused by bob"),
        ([DISABLE, PAUSE, RESUME], "disabled by ann"),
        ([QUARANTINE, PAUSE], "quarantined by ann"),
        ([STOP, STOP], "stopped by bob"),
        ([STOP, WITHHOLD], "stopped by ann"),
        ([WITHHOLD, STOP], "stopped by bob"),
        ([STOP, START, PAUSE], "paused by cal"),
    ],
)
def test_of_several_orders_the_one_is_named_that_keeps_it_down(given, reason):
    scenario = up(web)
    for wish, author in zip(given, ("ann", "bob", "cal"), strict=False):
        scenario.orders(wish, author=author)
    scenario.expects(stop("web", reason)).vanishes("web")
    assert short(scenario) == reason
    assert reason in told(scenario).partition("It is")[0]
    assert "comes back" not in told(scenario)


@pytest.mark.parametrize(
    ("given", "told_first", "reason"),
    [
        ({"enabled": False}, "'web' is disabled.", "disabled"),
        ({"held": True}, "'web' is held: paused.", "paused"),
        ({"up": False}, "'web' shall not run (stopped).", "stopped"),
    ],
)
def test_where_older_books_do_not_tell_whose_an_order_is_nobody_is_named(given, told_first, reason):
    scenario = up(web).orders(RESET, author="bob")
    entry = scenario.declaration.workers["web"]
    older = replace(entry, override=replace(entry.override, **given))
    scenario.declaration = replace(scenario.declaration, workers={"web": older})
    scenario.acts()
    scenario.vanishes("web")
    assert short(scenario) == reason
    assert told(scenario).startswith(told_first)


@pytest.mark.parametrize(
    ("spec", "words", "reason"),
    [
        (
            replace(web, enabled=False),
            "'web' is disabled in the file. It shall not run until: uphold enable web.",
            "disabled in the file",
        ),
        (
            replace(web, quarantined=True),
            "'web' is quarantined. It shall not run until: uphold approve web.",
            "quarantined until approved",
        ),
        (
            replace(web, autostart=False),
            "'web' shall not run (autostart is off). Start it with: uphold start web.",
            "started only on request (autostart is off)",
        ),
    ],
)
def test_held_back_by_the_file_is_blamed_on_nobody(spec, words, reason):
    scenario = Scenario(spec).orders(orders.ResetWorkers(names=WEB), author="bob")
    assert short(scenario) == reason
    assert told(scenario) == f"{words} It is stopped: {reason}."


def test_removed():
    scenario = up(web).declares()
    assert told(scenario).startswith("'web' is no longer declared, so it shall not run. It is runn")
    scenario.acts()
    assert "It is stopping (pid 1001): no longer declared; SIGKILL in 30 s." in told(scenario)
    scenario.vanishes("web")
    assert told(scenario).endswith("It is stopped: no longer declared.")
    scenario.acts()
    assert told(scenario).endswith("It is stopped: no longer declared.")


@pytest.mark.accepts("D-25")
def test_being_stopped():
    scenario = up(web).at(100).orders(orders.StopWorkers(names=WEB))
    scenario.acts()
    assert short(scenario.at(110)) == "stopped by ann; SIGKILL in 20 s"
    scenario.at(130).acts()
    assert short(scenario) == "stopped by ann; SIGKILL sent, not yet verified gone"
    fault = Fault(code="UPH_STOP_UNKILLABLE", message="process 1001 survived SIGKILL")
    scenario.happens(events.StopFailed(slot="web", generation=1, fault=fault))
    assert short(scenario) == "process 1001 survived SIGKILL"


def test_being_stopped_on_unknown_terms():
    status = SlotStatus(slot="web", state=State.STOPPING, why="no longer declared")
    assert why(None, status, Instant(5.0)) == "no longer declared; SIGKILL in 0.0 s"


def test_stopped_for_a_moment():
    scenario = up(web).at(10).orders(orders.RestartWorkers(names=WEB))
    scenario.acts()
    scenario.at(20).vanishes("web").at(22)
    assert short(scenario) == "stopped 2.0 s ago"


def test_an_ended_one_shot():
    scenario = up(replace(web, restart=RestartPolicy.NO)).at(5).exits("web", 0)
    assert short(scenario) == "exited with code 0 after 5.0 s; restart = no"
    assert told(scenario) == (
        "'web' shall run. It is at its end: exited with code 0 after 5.0 s; restart = no. "
        "The rule restart = no wants no other run after this end."
    )
    unknown = SlotStatus(slot="web", state=State.EXITED, why="ended unseen")
    assert why(None, unknown, Instant(0.0)) == "ended unseen"


@pytest.mark.parametrize(
    ("before", "after", "told_of_it"),
    [
        (RestartPolicy.NO, RestartPolicy.ALWAYS, "starts again: its terms changed."),
        (RestartPolicy.ALWAYS, RestartPolicy.NO, "restart = no. The rule restart = no wants no"),
    ],
)
def test_a_changed_restart_policy_is_told_as_it_now_is(before, after, told_of_it):
    scenario = up(replace(web, restart=before)).at(5).exits("web", 1)
    scenario.orders(orders.PauseSupervisor()).declares(replace(web, restart=after))
    assert f"exited with code 1 after 5.0 s; {told_of_it}" in told(scenario)


ONCE = replace(web, restart=RestartPolicy.NO)
HOPELESS = replace(web, max_restarts=0)


@pytest.mark.parametrize("spec", [ONCE, HOPELESS, web])
@pytest.mark.parametrize(
    ("wish", "cause"),
    [(START, "start ordered by ann"), (orders.RestartWorkers(names=WEB), "restart ordered by ann")],
)
def test_what_has_ended_and_is_ordered_to_start_says_so_while_the_supervisor_is_paused(
    spec, wish, cause
):
    scenario = up(spec).orders(orders.PauseSupervisor()).at(1).exits("web", 1).orders(wish)
    scenario.acts()
    assert short(scenario) == f"exited with code 1 after 1.0 s; starts again: {cause}"
    paused = "The supervisor itself is paused, so nothing is acted on: uphold resume."
    assert told(scenario).endswith(f"starts again: {cause}. {paused}")
    scenario.orders(orders.ResumeSupervisor())
    assert [action.why for action in scenario.decides().actions] == [cause]


def test_several_slots_are_told_one_by_one():
    scenario = up(replace(web, replicas=2)).at(5).exits("web.2", signal=9)
    text = told(scenario)
    assert text.startswith("'web' shall run in 2 slots. Slot 'web' is running (pid 1001):")
    assert "Slot 'web.2' is in back-off: ended by signal 9 after 5.0 s;" in text


def test_no_slots_at_all():
    scenario = Scenario(web).orders(orders.ScaleWorker(name="web", replicas=0))
    assert told(scenario) == "'web' shall run in 0 slots."


def test_a_paused_supervisor_is_said_at_the_end():
    scenario = up(web).orders(orders.PauseSupervisor())
    assert told(scenario).endswith(
        "The supervisor itself is paused, so nothing is acted on: uphold resume."
    )


@pytest.mark.accepts("B-21")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("declared", [True, False])
def test_every_state_is_explained_in_full_sentences(state, declared):
    scenario = Scenario(*([web] if declared else []))
    status = SlotStatus(slot="web", state=state, terms=web, failures=1, why="for a reason")
    scenario.observed = scenario.observed.with_changes([status], ())
    text = told(scenario)
    assert text.endswith(".")
    assert ".." not in text
    assert "None" not in text


@pytest.mark.accepts("B-21")
def test_what_is_no_state_is_an_error():
    with pytest.raises(AssertionError):
        why(None, SlotStatus(slot="web", state="napping"), Instant(0.0))  # type: ignore[arg-type]


def test_a_worker_that_runs_elsewhere():
    probe = WorkerSpec(name="web", kind=Kind.REMOTE, heartbeat=Heartbeat())
    identity = Identity(pid=0, start_ticks=0, boot_id="b", inode=0, nonce="n")
    status = SlotStatus(slot="web", state=State.RUNNING, terms=probe, identity=identity)
    entry = Entry(spec=probe)
    assert why(entry, status, Instant(300.0)) == (
        "no heartbeat has come yet, listened to since 5 min"
    )
    declaration = Declaration(workers=MappingProxyType({"web": entry}))
    text = explain("web", declaration, Observed().with_changes([status], ()), Instant(300.0))
    assert text.startswith("'web' runs elsewhere and is listened to. It is running: no heartbeat")
    heard = replace(status, finding=Finding(health=Health.HEALTHY, why="beating"))
    assert why(entry, heard, Instant(300.0)) == "up and beating since 5 min"
