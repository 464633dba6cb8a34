"""Health, over fakes, on virtual time: who is asked when, and what follows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.engine.test_supervisor import staged, types

from uphold.core.health import slot_health
from uphold.core.notices import NO_ERROR, UNANSWERED, Beat, Notice, Refused
from uphold.core.orders import StopWorkers
from uphold.core.specs import Heartbeat, Need, Probe, RestartPolicy, WorkerSpec
from uphold.core.statuses import Fault, Health, State
from uphold.core.vitals import Answer, Outcome
from uphold.testing.stages import Stage

PASSED = Answer(Outcome.PASSED, "well")
MISSED = Answer(Outcome.MISSED, "no answer")
REFUTED = Answer(Outcome.REFUTED, "refused")

TCP = Probe(way="tcp", target="127.0.0.1:1")
WEB = WorkerSpec(name="web", command=("web",), ready=TCP)
LIVE = WorkerSpec(name="web", command=("web",), live=replace(TCP, every=10.0))
APP = WorkerSpec(name="app", command=("app",), depends_on=(("web", Need.HEALTHY),))
SAYS = WorkerSpec(name="web", command=("web",), ready=Probe(way="notify"))
BEATS = WorkerSpec(name="web", command=("web",), heartbeat=Heartbeat(stale_after=10.0))
FILE = WorkerSpec(
    name="web", command=("web",), heartbeat=Heartbeat(file="/b.json", stale_after=30.0)
)


def health(stage, slot="web"):
    return slot_health(stage.status(slot))


async def says(stage, generation=1, **what):
    stage.supervisor.checks.heard("web", generation, Notice(**what))
    await stage.clock.settle()


@staged()
async def test_nobody_is_asked_who_does_not_want_to_be(stage):
    await stage.change(WorkerSpec(name="web", command=("web",)))
    await stage.clock.advance(100.0)
    assert stage.prober.asked == []
    assert health(stage) is Health.HEALTHY


@pytest.mark.accepts("M-30")
@staged()
async def test_a_worker_is_starting_until_it_is_ready_and_only_then_is_it_healthy(stage):
    stage.prober.answers["web"] = REFUTED
    await stage.change(WEB, APP)
    await stage.clock.advance(3.0)
    assert stage.status("web").state is State.STARTING
    assert stage.status("web").identity is not None
    assert health(stage) is Health.UNKNOWN
    assert stage.status("app").state is State.WAITING
    assert len(stage.prober.asked) == 6, "sooner than every 10 s: after 0.1, 0.2, 0.4, 0.8, 1 s"
    stage.prober.answers["web"] = PASSED
    await stage.clock.advance(1.0)
    assert stage.status("web").state is State.RUNNING
    assert health(stage) is Health.HEALTHY
    assert stage.status("app").state is State.RUNNING
    assert "worker.ready" in types(stage)


@pytest.mark.accepts("E-04", "E-44", "B-17", "D-23")
@staged(WEB)
async def test_one_that_is_no_longer_ready_is_unhealthy_and_goes_on_until_it_recovers(stage):
    await stage.clock.advance(1.0)
    stage.prober.answers["web"] = MISSED
    await stage.clock.advance(20.0)
    assert health(stage) is Health.HEALTHY, "two misses are not three"
    await stage.clock.advance(10.0)
    assert health(stage) is Health.UNHEALTHY
    assert stage.status("web").state is State.RUNNING
    assert stage.supervisor.snapshot().health is Health.DEGRADED
    stage.prober.answers["web"] = PASSED
    await stage.clock.advance(10.0)
    assert health(stage) is Health.HEALTHY
    assert stage.supervisor.snapshot().health is Health.HEALTHY
    assert types(stage).count("worker.degraded") == 1
    assert types(stage).count("worker.recovered") == 1


@pytest.mark.accepts("E-04")
@staged(LIVE)
async def test_three_misses_in_a_row_abort_a_worker_and_it_comes_back(stage):
    await stage.clock.advance(15.0)
    stage.prober.answers["web"] = MISSED
    await stage.clock.advance(19.0)
    stage.prober.answers["web"] = PASSED
    await stage.clock.advance(10.0)
    stage.prober.answers["web"] = MISSED
    await stage.clock.advance(29.0)
    told = types(stage)
    assert "worker.unhealthy" not in told[: told.index("worker.ready") + 1]
    await stage.clock.advance(5.0)
    assert stage.status("web").generation == 2
    assert stage.status("web").failures == 0 or stage.status("web").restarts == 1
    told = types(stage)
    assert told.index("worker.unhealthy") < told.index("worker.aborting")
    assert told.index("worker.aborting") < told.index("worker.disconnected")


@pytest.mark.accepts("E-04")
@staged(LIVE)
async def test_evidence_counts_at_once(stage):
    await stage.clock.advance(1.0)
    stage.prober.answers["web"] = REFUTED
    while "worker.unhealthy" not in types(stage):
        await stage.clock.advance(1.0)
    refuted = [each for each in stage.prober.asked if each[1] == 1]
    assert len(refuted) <= 2, "one good answer at most, then a single bad one"
    assert stage.status("web").generation == 2


@pytest.mark.accepts("E-05", "B-18")
@staged(LIVE)
async def test_a_late_answer_about_an_old_run_changes_nothing(stage):
    await stage.clock.advance(0.01)
    stage.prober.hang("web")
    await stage.clock.advance(10.0)
    assert stage.prober.open["web"] == 1
    stage.prober.answers["web"] = REFUTED
    stage.driver.end("web", code=1)
    await stage.clock.advance(5.0)
    assert stage.status("web").generation == 2
    stage.prober.answers["web"] = PASSED
    stage.prober.release("web")
    await stage.clock.advance(60.0)
    assert stage.status("web").generation == 2
    assert "worker.unhealthy" not in types(stage)


@staged(replace(WEB, live=replace(TCP, every=1.0)))
async def test_a_worker_is_never_asked_two_questions_at_a_time(stage):
    await stage.clock.advance(1.0)
    stage.prober.hang("web")
    before = len(stage.prober.asked)
    for _ in range(30):
        await stage.clock.advance(1.0)
        assert stage.prober.open["web"] <= 1
    assert len(stage.prober.asked) == before + 1
    stage.prober.release("web")
    await stage.clock.advance(2.0)
    assert len(stage.prober.asked) > before + 1


@staged(SAYS)
async def test_what_a_worker_says_makes_it_ready(stage):
    await stage.clock.advance(100.0)
    assert stage.status("web").state is State.STARTING
    await says(stage, generation=7, ready=True)
    assert stage.status("web").state is State.STARTING, "that was another run"
    await says(stage, ready=True, status="at work")
    assert stage.status("web").state is State.RUNNING
    await stage.clock.advance(2.0)
    assert stage.supervisor.snapshot().vitals["web"].said == "at work"


@staged()
async def test_what_a_worker_said_before_it_was_asked_to_say_it_is_not_lost(stage):
    stage.prober.answers["web"] = MISSED
    await stage.change(WEB)
    await says(stage, ready=True)
    await stage.clock.advance(5.0)
    assert stage.status("web").state is State.STARTING, "it is to be asked"
    assert stage.supervisor.snapshot().vitals["web"].answer == "no answer"
    await stage.change(SAYS)
    assert (stage.status("web").state, stage.status("web").generation) == (State.RUNNING, 1)
    await stage.clock.advance(2.0)
    assert stage.supervisor.snapshot().vitals["web"].answer == "", "that was another question"


@staged(replace(WEB, ready=Probe(way="fd", target="4")))
async def test_a_descriptor_makes_nobody_ready_who_is_to_be_asked_by_now(stage):
    stage.prober.answers["web"] = MISSED
    await stage.change(WEB)
    stage.supervisor.checks.ready_by_descriptor("web", 1)
    await stage.clock.advance(5.0)
    assert stage.status("web").state is State.STARTING
    stage.prober.answers["web"] = PASSED
    await stage.clock.advance(5.0)
    assert (stage.status("web").state, stage.status("web").generation) == (State.RUNNING, 1)


@pytest.mark.parametrize("before", [TCP, Probe(way="fd", target="4")])
def test_a_worker_that_has_no_descriptor_to_say_so_by_is_given_one_by_a_new_run(before):
    @staged()
    async def life(stage):
        stage.prober.answers["web"] = MISSED
        await stage.change(replace(WEB, ready=before))
        await stage.clock.advance(5.0)
        await stage.change(replace(WEB, ready=Probe(way="fd", target="5")))
        await stage.clock.advance(5.0)
        assert (stage.status("web").state, stage.status("web").generation) == (State.STARTING, 2)
        stage.supervisor.checks.ready_by_descriptor("web", 2)
        await stage.clock.settle()
        assert stage.status("web").state is State.RUNNING

    life()


@staged()
async def test_what_is_said_before_the_start_is_believed_is_not_lost(stage):
    stage.driver.hang_start("web")
    await stage.change(SAYS)
    await says(stage, ready=True)
    await says(stage, generation=9, ready=True)
    assert stage.status("web").state is State.STARTING
    stage.driver.release_start("web")
    await stage.clock.settle()
    assert stage.status("web").state is State.RUNNING


@pytest.mark.accepts("D-21", "D-22")
@staged(SAYS)
async def test_a_structured_error_is_shown_until_it_is_over_or_it_ends_by_it(stage):
    await says(stage, ready=True)
    await says(stage, error=Fault(code="UPH_X", message="the queue is gone"))
    assert health(stage) is Health.UNHEALTHY
    assert stage.status("web").finding.why == "the queue is gone"
    stage.driver.end("web", code=1)
    await stage.clock.settle()
    assert "the queue is gone" in stage.status("web").why or stage.status("web").generation == 2
    assert any("the queue is gone" in str(each) for each in stage.journal.appended)


@staged(BEATS)
async def test_a_worker_that_asks_for_time_gets_it(stage):
    await says(stage, watchdog="alive")
    await says(stage, extend=100.0)
    await stage.clock.advance(95.0)
    assert health(stage) is Health.HEALTHY
    stage.driver.ignore_stop("web")
    await stage.order(StopWorkers(names=("web",)))
    await says(stage, extend=60.0)
    await stage.clock.advance(50.0)
    assert ("kill", "web") not in stage.driver.calls
    await stage.clock.advance(15.0)
    assert ("kill", "web") in stage.driver.calls


@pytest.mark.accepts("P26", "B-23", "B-84")
@staged(BEATS)
async def test_missing_beats_warn_then_degrade_then_end(stage):
    await says(stage, watchdog="alive")
    assert health(stage) is Health.HEALTHY
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY, "one is told in the log"
    await stage.clock.advance(10.0)
    assert health(stage) is Health.DEGRADED
    await says(stage, watchdog="alive")
    assert health(stage) is Health.HEALTHY
    await stage.clock.advance(31.0)
    assert types(stage).count("worker.aborting") == 1
    assert stage.status("web").generation == 2


@pytest.mark.accepts("E-07")
@staged(BEATS)
async def test_the_first_beat_must_come_within_a_minute(stage):
    await stage.clock.advance(59.0)
    assert health(stage) is Health.UNKNOWN
    await stage.clock.advance(2.0)
    assert "worker.unhealthy" in types(stage)
    assert stage.status("web").generation == 2


@pytest.mark.accepts("B-78")
@staged(BEATS)
async def test_progress_that_stands_still_is_not_work(stage):
    for number in range(12):
        await says(stage, beat=Beat(status="running", progress=min(number, 3)))
        await stage.clock.advance(2.0)
    assert health(stage) is Health.DEGRADED
    assert "stands at 3" in stage.status("web").finding.why
    await says(stage, beat=Beat(status="idle", progress=3))
    assert health(stage) is Health.HEALTHY, "who has nothing to do need not move"
    await says(stage, beat=Beat(status="error", error="no disk"))
    assert health(stage) is Health.UNHEALTHY
    await says(stage, beat=Beat(status="running", progress=4))
    assert health(stage) is Health.HEALTHY
    assert stage.status("web").generation == 1


@pytest.mark.accepts("C-109", "C-110", "C-111", "C-112", "B-81")
@staged(FILE)
async def test_a_stale_file_degrades_and_never_ends_a_worker_by_default(stage):
    def write(**what):
        now = stage.clock.now().wall
        stage.prober.beats["web"] = Beat(**{"status": "running", "at": now, **what})

    await stage.clock.advance(40.0)
    assert health(stage) is Health.UNKNOWN, "there is no file yet"
    write()
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    await stage.clock.advance(40.0)
    assert health(stage) is Health.DEGRADED
    write(error="the share is gone")
    await stage.clock.advance(11.0)
    assert health(stage) is Health.UNHEALTHY
    write(status="stuck")
    await stage.clock.advance(11.0)
    assert health(stage) is Health.UNHEALTHY
    write()
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    await stage.clock.advance(1000.0)
    assert health(stage) is Health.DEGRADED
    assert stage.status("web").generation == 1


@pytest.mark.accepts("P17")
@staged(
    replace(
        FILE,
        live=LIVE.live,
        heartbeat=replace(FILE.heartbeat, on_stale="restart", stall_after=20.0),
    )
)
async def test_nobody_is_ended_for_a_file_system_that_is_silent(stage):
    def write():
        now = stage.clock.now()
        beat = Beat(status="running", at=now.wall, progress=now.mono)
        stage.prober.beats["web"] = beat

    write()
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    stage.prober.beats["web"] = Refused(UNANSWERED, "the file cannot be read.")
    await stage.clock.advance(15.0)
    assert health(stage) is Health.HEALTHY, "it may go on all the same"
    asked = len(stage.prober.asked)
    await stage.clock.advance(1000.0)
    assert health(stage) is Health.DEGRADED
    assert stage.status("web").finding.why == "the file cannot be read"
    assert types(stage).count("worker.degraded") == 1
    assert len(stage.prober.asked) >= asked + 99, "other questions go on"
    stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall - 1000.0)
    await stage.clock.advance(50.0)
    assert health(stage) is Health.DEGRADED
    assert "no heartbeat for" in stage.status("web").finding.why
    assert stage.status("web").generation == 1, "it could not be seen, and has time to be"
    write()
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    assert stage.status("web").generation == 1
    del stage.prober.beats["web"]
    await stage.clock.advance(1000.0)
    assert stage.status("web").generation > 1, "a file that is gone is silence"


@pytest.mark.accepts("P15")
@staged(replace(FILE, heartbeat=replace(FILE.heartbeat, on_stale="restart")))
async def test_nobody_is_ended_because_the_wall_clock_went_on_past_the_beat_in_its_file(stage):
    for _ in range(20):
        stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall)
        await stage.clock.advance(20.0)
    stage.clock.jump_wall(300.0)
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall)
    stage.clock.jump_wall(300.0)
    await stage.clock.advance(20.0)
    assert health(stage) is Health.HEALTHY
    assert stage.status("web").generation == 1


@staged(FILE)
async def test_a_file_that_always_tells_of_old_beats_is_stale_however_often_it_changes(stage):
    await stage.clock.advance(300.0)
    for _ in range(10):
        stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall - 100.0)
        await stage.clock.advance(20.0)
        assert health(stage) is Health.DEGRADED


@pytest.mark.accepts("P15")
@staged(FILE)
async def test_a_beat_does_not_stay_fresh_because_the_wall_clock_was_set_back(stage):
    stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall)
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    stage.clock.jump_wall(-3600.0)
    await stage.clock.advance(40.0)
    assert health(stage) is Health.DEGRADED


@pytest.mark.accepts("S26")
@staged(BEATS)
async def test_what_is_refused_is_counted_and_is_no_beat(stage):
    stage.supervisor.checks.heard("web", 1, Refused("not-a-number"))
    await stage.clock.settle()
    assert stage.supervisor.checks.refused == {"not-a-number": 1}
    assert health(stage) is Health.UNKNOWN


@staged(replace(LIVE, restart=RestartPolicy.NO))
async def test_one_that_shall_not_come_back_stays_down_with_its_reason(stage):
    await stage.clock.advance(1.0)
    stage.prober.answers["web"] = REFUTED
    await stage.clock.advance(10.0)
    status = stage.status("web")
    assert status.state is State.EXITED
    assert status.error.code == "UPH_WORKER_UNHEALTHY"
    assert "refused" in status.error.message


@staged(WEB)
async def test_a_worker_that_was_ready_need_not_become_so_again_for_the_next_supervisor(stage):
    await stage.clock.advance(1.0)
    stage.prober.answers["web"] = MISSED
    await stage.crash()
    await stage.start()
    assert stage.status("web").state is State.RUNNING
    await stage.clock.advance(45.0)
    assert health(stage) is Health.UNHEALTHY, "and it is asked on"


@staged(WEB)
async def test_terms_that_change_in_place_are_followed(stage):
    await stage.clock.advance(1.0)
    before = len(stage.prober.asked)
    await stage.change(replace(WEB, ready=None))
    await stage.clock.advance(100.0)
    assert len(stage.prober.asked) == before
    assert stage.status("web").generation == 1
    stage.prober.answers["web"] = REFUTED
    await stage.change(WEB)
    await stage.clock.advance(45.0)
    assert stage.status("web").state is State.RUNNING
    assert health(stage) is Health.UNHEALTHY


async def asked_within(stage, seconds):
    """Count the questions of the next while."""
    before = len(stage.prober.asked)
    await stage.clock.advance(seconds)
    return len(stage.prober.asked) - before


def relabelled(spec, number):
    """The same worker after an edit that has nothing to do with its health."""
    return replace(spec, labels=(("number", str(number)),))


EVERY_10 = replace(TCP, every=10.0)
BOTH = replace(WEB, ready=EVERY_10, live=EVERY_10)


@staged(BOTH)
async def test_edits_of_something_else_neither_repeat_nor_postpone_a_question(stage):
    await stage.clock.advance(60.0)
    assert await asked_within(stage, 100.0) == 20
    before = len(stage.prober.asked)
    for number in range(25):
        await stage.change(relabelled(BOTH, number))
        await stage.clock.advance(4.0)
    assert len(stage.prober.asked) == before + 20
    assert await asked_within(stage, 100.0) == 20


@staged(LIVE)
async def test_an_edit_of_something_else_neither_forgives_a_miss_nor_adds_one(stage):
    await stage.clock.advance(15.0)
    stage.prober.answers["web"] = MISSED
    for number in range(2):
        await stage.clock.advance(10.0)
        await stage.change(relabelled(LIVE, number))
    assert "worker.aborting" not in types(stage)
    await stage.clock.advance(10.0)
    assert "worker.aborting" in types(stage)


@staged(LIVE)
async def test_an_edit_of_something_else_does_not_interrupt_a_question(stage):
    await stage.clock.advance(0.01)
    stage.prober.hang("web")
    await stage.clock.advance(10.0)
    await stage.change(relabelled(LIVE, 1))
    assert stage.prober.open["web"] == 1
    stage.prober.answers["web"] = REFUTED
    stage.prober.release("web")
    await stage.clock.settle()
    assert "worker.aborting" in types(stage)


@pytest.mark.accepts("D-21", "D-22")
@staged(LIVE)
async def test_an_edit_does_not_forget_what_the_worker_said_of_itself(stage):
    await stage.clock.advance(30.0)
    await says(stage, status="at work", error=Fault(code="E_DB", message="the database is gone"))
    for edited in (relabelled(LIVE, 1), replace(LIVE, live=replace(LIVE.live, timeout=7.0))):
        await stage.change(edited)
        await stage.clock.advance(60.0)
        assert health(stage) is Health.UNHEALTHY
        assert stage.status("web").finding.named == "E_DB"
        assert stage.supervisor.snapshot().vitals["web"].said == "at work"
    assert types(stage).count("worker.degraded") == 1
    await says(stage, error=NO_ERROR)
    assert health(stage) is Health.HEALTHY


@staged(BEATS)
async def test_an_edit_is_no_heartbeat(stage):
    await says(stage, watchdog="alive")
    for number in range(3):
        await stage.clock.advance(9.0)
        await stage.change(relabelled(BEATS, number))
    assert health(stage) is Health.DEGRADED
    calmer = replace(BEATS, heartbeat=replace(BEATS.heartbeat, stall_after=500.0))
    await stage.change(calmer)
    assert health(stage) is Health.DEGRADED, "by the new terms it is as silent as by the old"
    await stage.clock.advance(4.0)
    assert "worker.aborting" in types(stage)


@staged(replace(BOTH, live=replace(EVERY_10, every=2.0)))
async def test_from_questions_to_a_word_of_its_own_and_the_others_go_on(stage):
    spec = stage.config.current.settings.workers[0]
    await stage.clock.advance(20.0)
    await stage.change(replace(spec, ready=Probe(way="notify")))
    assert await asked_within(stage, 100.0) == 50, "live alone"
    assert "notify" not in {way for _, _, way in stage.prober.asked}
    assert health(stage) is Health.HEALTHY


@pytest.mark.parametrize(
    "ready", [None, Probe(way="notify"), Probe(way="fd"), Probe(way="log"), replace(TCP, every=5.0)]
)
def test_a_worker_is_not_unhealthy_for_a_question_that_is_no_longer_put(ready):
    @staged(WEB, replace(APP, autostart=False))
    async def go(stage):
        await stage.clock.advance(1.0)
        stage.prober.answers["web"] = MISSED
        await stage.clock.advance(30.0)
        assert health(stage) is Health.UNHEALTHY
        await stage.change(replace(WEB, ready=ready), APP)
        await stage.clock.advance(1.0)
        assert health(stage) is Health.HEALTHY
        assert stage.status("app").state is State.RUNNING
        assert stage.status("web").generation == 1

    go()


@staged(BOTH)
async def test_trouble_found_by_a_question_that_stays_is_still_trouble(stage):
    await stage.clock.advance(20.0)
    stage.prober.answers["web"] = MISSED
    await stage.change(replace(BOTH, live=replace(EVERY_10, failures=100)))
    await stage.clock.advance(40.0)
    assert health(stage) is Health.UNHEALTHY
    await stage.change(replace(BOTH, live=None))
    assert health(stage) is Health.UNHEALTHY
    assert "no longer ready" in stage.status("web").finding.why
    stage.prober.answers["web"] = PASSED
    await stage.clock.advance(10.0)
    assert health(stage) is Health.HEALTHY


@staged(replace(BOTH, live=replace(EVERY_10, every=1.0)))
async def test_a_question_that_hangs_is_given_up_when_it_is_put_otherwise(stage):
    spec = stage.config.current.settings.workers[0]
    await stage.clock.advance(5.0)
    stage.prober.hang("web")
    await stage.clock.advance(20.0)
    assert stage.prober.open["web"] == 1
    await stage.change(replace(spec, live=replace(EVERY_10, way="http")))
    assert stage.prober.asked[-1] == ("web", 1, "tcp"), "the one that had to wait"
    assert stage.prober.open["web"] == 1
    stage.prober.release("web")
    await stage.clock.advance(20.0)
    assert stage.prober.asked[-1] in (("web", 1, "tcp"), ("web", 1, "http"))
    assert await asked_within(stage, 100.0) == 20
    assert health(stage) is Health.HEALTHY


@staged(replace(BOTH, heartbeat=BEATS.heartbeat))
async def test_life_begins_when_readiness_is_no_longer_asked_for(stage):
    spec = stage.config.current.settings.workers[0]
    stage.prober.answers["web"] = MISSED
    stage.driver.end("web", code=0)
    await stage.clock.advance(30.0)
    assert stage.status("web").state is State.STARTING
    await stage.change(replace(spec, ready=None))
    assert stage.status("web").state is State.RUNNING
    stage.prober.answers["web"] = PASSED
    assert await asked_within(stage, 50.0) == 5
    await stage.clock.advance(11.0)
    assert "no heartbeat yet" in str(stage.journal.appended), "it had a minute for the first"


@staged(BOTH)
async def test_whatever_a_prober_raises_is_a_missed_answer_and_it_is_asked_on(stage):
    await stage.clock.advance(15.0)
    stage.prober.mistakes["web"] = IndexError("tuple index out of range")
    assert await asked_within(stage, 20.0) == 4
    assert health(stage) is Health.HEALTHY
    assert "tuple index" in stage.supervisor.snapshot().vitals["web"].answer
    del stage.prober.mistakes["web"]
    assert await asked_within(stage, 20.0) == 4
    stage.prober.mistakes["web"] = IndexError("tuple index out of range")
    await stage.clock.advance(40.0)
    assert "worker.aborting" in types(stage)


@staged(replace(FILE, live=EVERY_10, heartbeat=replace(FILE.heartbeat, on_stale="restart")))
async def test_nobody_is_ended_because_its_file_could_not_be_read_by_our_mistake(stage):
    stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall)
    await stage.clock.advance(11.0)
    stage.prober.mistakes["web"] = KeyError("oops")
    await stage.change(replace(stage.config.current.settings.workers[0], live=None))
    await stage.clock.advance(200.0)
    assert health(stage) is Health.DEGRADED
    assert "KeyError" in stage.status("web").finding.why
    del stage.prober.mistakes["web"]
    stage.prober.beats["web"] = Beat(status="running", at=stage.clock.now().wall)
    await stage.clock.advance(11.0)
    assert health(stage) is Health.HEALTHY
    assert stage.status("web").generation == 1


@staged(replace(LIVE, live=replace(TCP, every=86_400.0)))
async def test_questions_to_runs_that_have_ended_do_not_pile_up(stage):
    for _ in range(200):
        stage.driver.end("web", code=0)
        await stage.clock.advance(60.0)
    assert stage.status("web").generation == 201
    assert len(stage.supervisor.checks._agenda) < 100


@pytest.mark.parametrize("ready", [None, Probe(way="notify")])
def test_trouble_that_is_told_while_its_question_is_taken_back_does_not_stay(ready):
    once = replace(WEB, ready=replace(TCP, failures=1))

    @staged(once)
    async def go(stage):
        await stage.clock.advance(1.0)
        stage.prober.hang("web")
        stage.prober.answers["web"] = MISSED
        await stage.clock.advance(10.0)
        stage.config.change(replace(once, ready=ready))
        while stage.supervisor.snapshot().declaration.workers["web"].spec.ready == once.ready:
            await asyncio.sleep(0)
        stage.journal.hang()
        await stage.clock.settle()
        stage.prober.release("web")
        await stage.clock.settle()
        stage.journal.release()
        await stage.clock.advance(1.0)
        told = types(stage)
        assert told.index("worker.degraded") < told.index("worker.recovered")
        assert health(stage) is Health.HEALTHY

    go()


def test_who_waits_for_a_worker_starts_when_its_readiness_is_no_longer_asked_for():
    """At once, not at the next look at everything."""
    web = WorkerSpec(name="web", command=("web",), ready=Probe(way="notify"))
    app = WorkerSpec(name="app", command=("app",), depends_on=(("web", Need.HEALTHY),))

    async def go():
        stage = await Stage(web, app).start()
        assert stage.status("app").state is State.WAITING
        await stage.change(replace(web, ready=None), app)
        await stage.clock.advance(0.5)
        assert stage.status("app").state is State.RUNNING
        await stage.supervisor.abandon()

    asyncio.run(go())
