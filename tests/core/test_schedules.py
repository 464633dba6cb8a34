"""Workers on a schedule: when they run, what happens between runs, and clocks that are set."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.stories import STORIES, lived, says_the_same_later
from uphold.core import events, orders
from uphold.core.absorbing import Illegal, Observed, absorb
from uphold.core.actions import Appoint, Pardon, Skip, Start, Stop, Wait
from uphold.core.changes import preview
from uphold.core.explaining import explain, why
from uphold.core.outcomes import Accepted, Pending, outcome
from uphold.core.schedules import next_after, next_run_at
from uphold.core.specs import Backoff, Need, RestartPolicy, Schedule, WorkerSpec
from uphold.core.statuses import SlotStatus, State
from uphold.core.times import utc_text
from uphold.testing.scenarios import EPOCH, Scenario

job = WorkerSpec(
    name="job",
    command=("job",),
    restart=RestartPolicy.NO,
    backoff=Backoff(jitter=0.0),
    schedule=Schedule(every=60.0),
)
HOURLY = Schedule(cron="0 * * * *")
hourly = replace(job, schedule=HOURLY)
db = WorkerSpec(name="db", command=("store",))
NAMES = ("job",)


def having(**changes: object) -> WorkerSpec:
    assert job.schedule is not None
    return replace(job, schedule=replace(job.schedule, **changes))


def kinds(scenario: Scenario) -> list[str]:
    return [type(action).__name__ for action in scenario.acts().actions]


def settled(scenario: Scenario) -> list[str]:
    """Act until nothing is left to do; name what was done."""
    done: list[str] = []
    for _ in range(10):
        names = kinds(scenario)
        if not names:
            return done
        done += names
    raise AssertionError(f"never at rest: {done}")


def runs(scenario: Scenario, code: int = 0) -> Scenario:
    """Let the run that is being started come up and end."""
    return scenario.rises("job").exits("job", code)


def started_runs(scenario: Scenario, until: float, step: float = 10.0) -> list[float]:
    """Look at it regularly, let each run end at once; tell when they were started."""
    found = []
    now = scenario.now.mono
    while now <= until:
        scenario.at(now)
        if "Start" in settled(scenario):
            found.append(scenario.now.mono)
            settled(runs(scenario))
        now += step
    return found


# Every so often


def test_waits_for_its_first_run_and_says_until_when():
    scenario = Scenario(job)
    decided = scenario.acts()
    assert isinstance(decided.actions[0], Wait)
    status = scenario.status("job")
    assert (status.state, status.why) == (State.WAITING, "next run at 2026-01-01 00:01:00 UTC")
    assert scenario.decides().wake_at == 60.0
    assert next_run_at(scenario.declaration.workers["job"], status, scenario.now) == EPOCH + 60


def test_runs_at_load_when_asked_to():
    scenario = Scenario(having(at_load=True))
    assert kinds(scenario) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]
    assert scenario.decides().wake_at == 60.0


def test_counts_from_start_to_start():
    scenario = Scenario(job)
    settled(scenario)
    scenario.at(60.5)
    assert kinds(scenario) == ["Start"]
    scenario.at(61).rises("job").at(90)
    assert settled(scenario) == []
    assert settled(scenario.exits("job")) == ["Wait"]
    assert scenario.decides().wake_at == 120.5
    assert scenario.status("job").exit is not None


@pytest.mark.accepts("B-89")
def test_goes_on_running_after_every_run():
    scenario = Scenario(job)
    assert started_runs(scenario, 320, 1.0) == [60, 120, 180, 240, 300]


def test_a_failed_run_is_shown_until_the_next_one():
    scenario = Scenario(job)
    settled(scenario)
    scenario.at(60)
    assert settled(scenario) == ["Start"]
    assert settled(runs(scenario, code=3)) == []
    status = scenario.status("job")
    assert status.state is State.EXITED
    assert status.error is not None
    entry = scenario.declaration.workers["job"]
    assert "exited with code 3" in why(entry, status, scenario.now.mono)
    assert "next run at 2026-01-01 00:02:00 UTC" in why(entry, status, scenario.now.mono)
    assert settled(scenario.at(120)) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]
    assert scenario.status("job").error is None


def test_on_failure_is_tried_again_within_its_period_and_afresh_with_the_next():
    spec = replace(job, restart=RestartPolicy.ON_FAILURE, max_restarts=2)
    scenario = Scenario(spec)
    settled(scenario)
    scenario.at(60)
    assert settled(scenario) == ["Start"]
    assert settled(runs(scenario, code=1)) == ["Start"]
    scenario.rises("job").exits("job", 1)
    assert scenario.decides().wake_at == 61.0
    assert settled(scenario.at(61)) == ["Start"]
    assert settled(runs(scenario, code=1)) == ["GiveUp"]
    assert scenario.decides().wake_at == 120.0
    assert settled(scenario.at(120)) == ["Start"]
    assert scenario.status("job").failures == 0


def test_the_next_run_comes_before_the_end_of_a_long_back_off():
    backoff = Backoff(first=500.0, base=500.0, max=900.0, jitter=0.0)
    scenario = Scenario(replace(job, restart=RestartPolicy.ON_FAILURE, backoff=backoff))
    settled(scenario)
    settled(scenario.at(60))
    settled(runs(scenario, code=1))
    assert scenario.status("job").state is State.BACKOFF
    assert scenario.decides().wake_at == 120.0
    assert settled(scenario.at(120)) == ["Start"]


def test_what_can_never_start_is_tried_again_with_its_next_run():
    scenario = Scenario(job)
    settled(scenario)
    settled(scenario.at(60))
    assert settled(scenario.cannot_start("job", hopeless=True)) == ["GiveUp"]
    assert scenario.status("job").state is State.FAILED
    assert settled(scenario.at(120)) == ["Start"]


# A run that is due while the last one goes on


def busy(overlap: str) -> Scenario:
    scenario = Scenario(having(overlap=overlap))
    settled(scenario)
    settled(scenario.at(60))
    scenario.rises("job")
    assert settled(scenario) == []
    return scenario.at(120)


def test_skip_leaves_it_out_and_counts_it():
    scenario = busy("skip")
    assert settled(scenario) == ["Skip"]
    assert settled(scenario.at(180)) == ["Skip"]
    due = scenario.status("job").due
    assert due is not None
    assert (due.skipped, due.at) == (2, 240.0)
    assert "2 runs were skipped" in told(scenario)
    assert settled(scenario.at(200).exits("job")) == ["Wait"]
    assert settled(scenario.at(240)) == ["Start"]


def test_queue_runs_it_directly_after_and_only_once():
    scenario = busy("queue")
    assert settled(scenario) == ["Appoint"]
    assert settled(scenario.at(180)) == ["Skip"]
    assert "Another run follows it directly" in told(scenario)
    assert settled(scenario.at(200).exits("job")) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]
    assert scenario.decides().wake_at == 260.0


def test_kill_ends_it_first_and_then_runs():
    scenario = busy("kill")
    (action,) = scenario.acts().actions
    assert isinstance(action, Stop)
    assert "overlap = kill" in action.why
    assert settled(scenario.at(125).exits("job", None, signal=15)) == []
    assert settled(scenario.vanishes("job")) == ["Start"]
    assert scenario.rises("job").status("job").state is State.RUNNING
    assert scenario.decides().wake_at == 185.0


def test_what_was_put_off_is_forgotten_when_somebody_stops_it():
    scenario = busy("queue")
    assert settled(scenario) == ["Appoint"]
    scenario.orders(orders.StopWorkers(names=NAMES))
    assert settled(scenario) == ["Stop"]
    assert settled(scenario.exits("job", None, signal=15).vanishes("job")) == []
    scenario.at(130).orders(orders.StartWorkers(names=NAMES))
    assert settled(scenario) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]


# Orders


def told(scenario: Scenario) -> str:
    return explain("job", scenario.declaration, scenario.observed, scenario.now.mono)


def done(scenario: Scenario, wish: orders.Wish) -> object:
    accepted = Accepted(wish=wish, names=NAMES, version=scenario.declaration.version)
    return outcome(accepted, "job", scenario.declaration, scenario.observed, scenario.now.mono)


def test_start_runs_it_now_and_is_done_when_it_has_run():
    scenario = Scenario(job)
    settled(scenario)
    wish = orders.StartWorkers(names=NAMES)
    scenario.at(10).orders(wish)
    assert isinstance(done(scenario, wish), Pending)
    assert settled(scenario) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]
    assert scenario.decides().wake_at == 70.0
    assert done(scenario, wish).ok


def test_a_start_that_fails_is_told_so():
    scenario = Scenario(job)
    settled(scenario)
    wish = orders.StartWorkers(names=NAMES)
    scenario.at(10).orders(wish)
    settled(scenario)
    settled(runs(scenario, code=7))
    result = done(scenario, wish)
    assert not result.ok
    assert "code 7" in result.error


def test_start_ahead_of_a_time_of_day_leaves_that_time_alone():
    scenario = Scenario(hourly)
    settled(scenario)
    scenario.at(1800).orders(orders.StartWorkers(names=NAMES))
    assert settled(scenario) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]
    assert scenario.status("job").why == "next run at 2026-01-01 01:00 UTC"


def test_a_start_that_must_wait_for_another_worker_is_not_forgotten():
    spec = replace(job, depends_on=(("db", Need.STARTED),), autostart=False)
    scenario = Scenario(replace(db, autostart=False), spec)
    settled(scenario)
    wish = orders.StartWorkers(names=NAMES)
    scenario.orders(wish)
    assert settled(scenario) == ["Wait"]
    assert isinstance(done(scenario, wish), Pending)
    scenario.at(5000).orders(orders.StartWorkers(names=("db",)))
    assert settled(scenario) == ["Start", "Wait"]  # in other words: db is starting now
    assert settled(scenario.rises("db")) == ["Start"]
    assert scenario.status("job").state is State.STARTING


def test_reset_clears_a_failed_run_and_lets_it_wait_for_the_next():
    scenario = Scenario(job)
    settled(scenario)
    settled(scenario.at(60))
    settled(runs(scenario, code=7))
    assert scenario.status("job").state is State.EXITED
    wish = orders.ResetWorkers(names=NAMES)
    assert settled(scenario.orders(wish)) == ["Pardon", "Wait"]
    assert done(scenario, wish).ok
    assert "next run at" in scenario.status("job").why
    assert scenario.status("job").error is None


def test_stop_withholds_it_until_it_is_started_again():
    scenario = Scenario(job)
    settled(scenario)
    scenario.orders(orders.StopWorkers(names=NAMES))
    assert settled(scenario) == ["Rest"]
    assert settled(scenario.at(500)) == []
    assert scenario.decides().wakes == ()


@pytest.mark.parametrize(
    ("hold", "lift"),
    [
        (orders.PauseWorkers(names=NAMES), orders.ResumeWorkers(names=NAMES)),
        (orders.DisableWorkers(names=NAMES), orders.EnableWorkers(names=NAMES)),
        (orders.QuarantineWorkers(names=NAMES), orders.ApproveWorkers(names=NAMES)),
    ],
)
def test_what_is_let_go_again_waits_for_its_time(hold, lift):
    scenario = Scenario(job)
    settled(scenario)
    scenario.orders(hold)
    settled(scenario)
    scenario.at(500).orders(lift)
    assert settled(scenario) == ["Wait"]
    assert scenario.decides().wake_at == 560.0
    assert done(scenario, lift).ok


def test_a_pardon_does_not_disturb_it():
    scenario = Scenario(job)
    settled(scenario)
    settled(scenario.at(60))
    settled(scenario.cannot_start("job", hopeless=True))
    scenario.orders(orders.ResetWorkers(names=NAMES))
    first, second = settled(scenario)
    assert (first, second) == (Pardon.__name__, Wait.__name__)


# The file changes


def test_another_schedule_is_followed_from_now_on():
    scenario = Scenario(job)
    settled(scenario)
    scenario.at(10).declares(having(every=30.0))
    assert settled(scenario) == ["Wait"]
    assert scenario.decides().wake_at == 40.0


def test_another_command_waits_for_the_next_run():
    scenario = Scenario(job)
    started_runs(scenario, 60)
    wish = orders.Declare(specs=(replace(job, command=("other",)),))
    scenario.orders(wish)
    assert settled(scenario) == []
    assert done(scenario, wish).ok
    (action,) = scenario.at(120).acts().actions
    assert isinstance(action, Start)
    assert action.spec.command == ("other",)


def test_a_run_is_not_cut_off_by_an_edit():
    scenario = Scenario(job)
    settled(scenario)
    settled(scenario.at(60))
    scenario.rises("job")
    settled(scenario)
    other = replace(job, command=("other",), umask=0o22)
    wish = orders.Declare(specs=(other,))
    (change,) = preview(scenario.declaration.workers, (other,))
    assert (change.action, change.reason) == ("update", "with its next run: command, umask")
    scenario.at(70).orders(wish)
    assert settled(scenario) == []
    assert done(scenario, wish).ok
    assert settled(scenario.at(100).exits("job")) == ["Wait"]
    (action,) = scenario.at(120).acts().actions
    assert action.spec == other


def test_plan_says_that_a_new_one_waits():
    (change,) = preview({}, (job,))
    assert (change.action, change.reason) == ("none", "new, waits for its first run")
    (change,) = preview({}, (having(at_load=True),))
    assert change.action == "start"


def test_without_its_schedule_it_runs_all_the_time_and_back():
    scenario = Scenario(job)
    settled(scenario)
    plain = replace(job, schedule=None)
    assert settled(scenario.declares(plain)) == ["Start"]
    scenario.rises("job")
    settled(scenario)
    assert settled(scenario.declares(job)) == ["Amend"]
    assert scenario.status("job").state is State.RUNNING
    assert settled(scenario.exits("job")) == ["Wait"]


# Clocks and downtime


@pytest.mark.accepts("P15", "B-89")
@pytest.mark.parametrize("spec", [job, hourly])
def test_there_is_no_backlog_after_downtime(spec):
    scenario = Scenario(spec)
    settled(scenario)
    scenario.at(100_000)
    assert settled(scenario) == ["Skip", "Wait"]
    due = scenario.status("job").due
    assert due is not None
    assert scenario.now.mono < due.at <= scenario.now.mono + 3600


def test_a_little_late_is_on_time():
    scenario = Scenario(hourly)
    settled(scenario)
    assert settled(scenario.at(3659)) == ["Start"]


@pytest.mark.accepts("P15")
def test_a_clock_that_is_set_does_not_touch_what_runs_every_so_often():
    scenario = Scenario(job)
    settled(scenario)
    for by in (86400 * 365, -86400 * 500, 7):
        scenario.sets_clock(by)
        assert settled(scenario) == []
        assert scenario.decides().wake_at == 60.0


@pytest.mark.accepts("P15")
def test_a_time_of_day_is_met_when_the_clock_shows_it():
    scenario = Scenario(hourly)
    settled(scenario)
    scenario.at(100).sets_clock(3600 - 130)
    assert settled(scenario) == []
    assert scenario.decides().wake_at == 130.0
    assert settled(scenario.at(130)) == ["Start"]


@pytest.mark.accepts("P15")
def test_a_clock_set_back_serves_no_minute_twice():
    scenario = Scenario(replace(hourly, schedule=Schedule(cron="*/10 * * * *")))
    assert started_runs(scenario, 7200) == list(range(600, 7201, 600))
    scenario.sets_clock(-3600)
    assert started_runs(scenario, 10_700) == []
    assert started_runs(scenario, 11_400) == [11_400]


@pytest.mark.accepts("P15")
def test_a_clock_set_ahead_and_put_right_again_is_followed():
    scenario = Scenario(hourly)
    settled(scenario)
    scenario.at(100).sets_clock(86400 * 365)
    assert settled(scenario) == ["Skip", "Wait"]
    scenario.at(200).sets_clock(-86400 * 365)
    assert settled(scenario) == ["Wait"]
    assert started_runs(scenario, 8000) == [3600, 7200]


def test_a_clock_that_was_never_right_is_forgotten_once_it_is():
    scenario = Scenario(hourly).sets_clock(86400 * 365 * 70)
    assert started_runs(scenario, 4000) == [3600]
    scenario.sets_clock(-86400 * 365 * 70)
    assert started_runs(scenario, 8000) == [7200]


JUMPS = st.sampled_from(
    [0, 0, *(sign * by for by in (1, 60, 3600, 86400, 315_360_000) for sign in (1, -1))]
)


@given(st.lists(st.tuples(st.integers(1, 900), st.integers(-7200, 7200) | JUMPS), max_size=40))
def test_whatever_happens_to_the_clock_no_minute_is_served_twice(steps):
    scenario = Scenario(replace(hourly, schedule=Schedule(cron="*/5 * * * *")))
    settled(scenario)
    served: list[str] = []
    for seconds, jump in steps:
        scenario.at(scenario.now.mono + seconds)
        scenario.sets_clock(jump)
        if "Start" in settled(scenario):
            served.append(utc_text(scenario.now.wall)[:16])
            settled(runs(scenario))
    assert len(served) == len(set(served))


def test_after_the_end_of_the_calendar_nothing_is_due():
    never = Schedule(cron="not a cron expression")
    assert next_after(never, EPOCH) > EPOCH + 1e9
    scenario = Scenario(replace(job, schedule=never))
    assert settled(scenario) == ["Wait"]
    assert scenario.status("job").why == "next run at no time that ever comes"
    assert (
        next_run_at(scenario.declaration.workers["job"], scenario.status("job"), scenario.now)
        is None
    )


def test_damaged_books_are_survived():
    scenario = Scenario(hourly)
    settled(scenario)
    status = scenario.status("job")
    bare = replace(status.due, spans=(), wall=1e300, at=-1e300)
    scenario.observed = scenario.observed.with_changes([replace(status, due=bare)], ())
    entry = scenario.declaration.workers["job"]
    assert next_run_at(entry, scenario.status("job"), scenario.now) is None
    settled(scenario.at(3600))
    bare = replace(status.due, spans=())
    scenario.observed = scenario.observed.with_changes([replace(status, due=bare)], ())
    assert settled(scenario) == ["Start"]


# What others see


def test_a_dependent_that_wants_it_completed_starts_after_its_first_good_run():
    after = replace(db, name="after", depends_on=(("job", Need.COMPLETED),))
    scenario = Scenario(job, after)
    assert set(settled(scenario)) == {"Wait"}
    scenario.at(60)
    assert "Start" in settled(scenario)
    assert sorted(settled(runs(scenario))) == ["Start", "Wait"]


def test_a_run_whose_dependency_is_not_there_in_time_is_left_out():
    spec = replace(job, schedule=HOURLY, depends_on=(("db", Need.STARTED),))
    scenario = Scenario(replace(db, autostart=False), spec)
    settled(scenario)
    assert settled(scenario.at(3600)) == ["Wait"]
    assert "waits for 'db'" in scenario.status("job").why
    assert settled(scenario.at(3700)) == ["Skip", "Wait"]
    assert "next run at 2026-01-01 02:00 UTC" in scenario.status("job").why


@pytest.mark.parametrize(
    ("schedule", "due", "looks"),
    [(Schedule(every=300.0), 300.0, 360.0), (HOURLY, 3600.0, 3630.0)],
)
def test_a_run_that_waits_for_its_dependency_is_looked_at_before_it_is_too_late(
    schedule, due, looks
):
    spec = replace(job, schedule=schedule, depends_on=(("db", Need.STARTED),))
    scenario = Scenario(replace(db, autostart=False), spec)
    settled(scenario)
    settled(scenario.at(due))
    assert scenario.decides().wakes == (("job", looks),)


def test_a_run_that_is_looked_at_when_it_is_too_late_is_too_late_however_times_are_rounded():
    spec = replace(job, schedule=Schedule(every=20.0), depends_on=(("db", Need.STARTED),))
    scenario = Scenario(replace(db, autostart=False), spec).at(2025.1499999999999)
    settled(scenario)
    settled(scenario.at(scenario.decides().wake_at))
    assert "Skip" in settled(scenario.at(scenario.decides().wake_at))


def test_a_run_at_load_waits_for_its_dependency_however_long_that_takes():
    spec = replace(having(at_load=True, every=3600.0), depends_on=(("db", Need.STARTED),))
    scenario = Scenario(db, spec)
    settled(scenario)
    assert scenario.status("job").why.startswith("waits for 'db'")
    assert settled(scenario.at(300).rises("db")) == ["Start"]
    assert settled(runs(scenario)) == ["Wait"]
    assert scenario.status("job").why == "next run at 2026-01-01 01:05:00 UTC"


def failed_without_its_dependency(schedule: Schedule) -> Scenario:
    """Give a job whose run of 01:00 has failed while what it depends on went away."""
    retried = replace(
        job,
        restart=RestartPolicy.ON_FAILURE,
        schedule=schedule,
        depends_on=(("db", Need.STARTED),),
    )
    scenario = Scenario(replace(db, restart=RestartPolicy.NO), retried)
    settled(scenario)
    settled(scenario.rises("db"))
    settled(scenario.at(3600))
    settled(scenario.rises("job").at(3605).exits("db", 1).exits("job", 1))
    assert "waits for 'db'" in scenario.status("job").why
    return scenario


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("schedule", [Schedule(every=3600.0), HOURLY])
def test_a_retry_waits_for_its_dependency_goes_on_counting_and_leaves_the_next_run_its_time(
    schedule,
):
    scenario = failed_without_its_dependency(schedule).at(4000)
    settled(scenario.orders(orders.StartWorkers(names=("db",))))
    assert settled(scenario.rises("db")) == ["Start"]
    settled(scenario.rises("job").at(4005).exits("job", 1))
    assert (scenario.status("job").failures, scenario.status("job").restarts) == (2, 1)
    assert settled(scenario.at(4010)) == ["Start"]
    settled(runs(scenario))
    assert "next run at 2026-01-01 02:00" in scenario.status("job").why


@pytest.mark.parametrize("schedule", [Schedule(every=3600.0), HOURLY])
def test_a_retry_that_the_file_no_longer_wants_is_given_up_and_the_next_run_is_not(schedule):
    scenario = failed_without_its_dependency(schedule)
    store = replace(db, restart=RestartPolicy.NO)
    settled(scenario.declares(store, replace(job_of(scenario), restart=RestartPolicy.NO)))
    settled(scenario.orders(orders.StartWorkers(names=("db",))))
    assert settled(scenario.rises("db")) == []
    assert scenario.status("job").state is State.EXITED
    assert settled(scenario.at(7200)) == ["Start"]


def job_of(scenario: Scenario) -> WorkerSpec:
    return scenario.declaration.workers["job"].spec


@pytest.mark.parametrize("schedule", [Schedule(every=3600.0), HOURLY])
def test_a_retry_that_waits_beyond_the_next_run_is_that_run(schedule):
    scenario = failed_without_its_dependency(schedule)
    assert settled(scenario.at(7800)) == []
    settled(scenario.orders(orders.StartWorkers(names=("db",))))
    assert settled(scenario.rises("db")) == ["Start"]
    settled(runs(scenario))
    assert settled(scenario.at(10700)) == []
    assert scenario.status("job").due.skipped == 0


@pytest.mark.parametrize(
    ("overlap", "words"),
    [("skip", "is skipped if"), ("queue", "waits for the end"), ("kill", "ends this one")],
)
def test_why_says_what_the_next_run_will_do(overlap, words):
    scenario = Scenario(having(overlap=overlap))
    settled(scenario)
    assert "on its schedule (every 60 s)" in told(scenario)
    assert "next run at 2026-01-01 00:01:00 UTC" in told(scenario)
    settled(scenario.at(60))
    scenario.rises("job")
    assert words in told(scenario)


def test_all_actions_of_a_schedule_carry_the_next_run():
    scenario = busy("skip")
    (skip,) = scenario.acts().actions
    assert isinstance(skip, Skip)
    assert skip.due.at == 180.0
    assert not isinstance(skip, Appoint)


# Whatever happens


TIMED = [
    None,
    Schedule(every=7.0),
    Schedule(every=30.0, overlap="queue"),
    Schedule(every=30.0, overlap="kill", at_load=True),
    Schedule(cron="* * * * *", overlap="kill"),
    Schedule(cron="*/2 * * * *", overlap="queue", at_load=True),
]


def with_schedule(story, chosen):
    """Give the workers of a story schedules, here and in every later file."""
    file, moves = story

    def timed(specs):
        return tuple(
            replace(spec, schedule=schedule, restart=restart) if schedule is not None else spec
            for spec, (schedule, restart) in zip(specs, chosen, strict=False)
        )

    return timed(file), [(how, timed(what) if how == "declares" else what) for how, what in moves]


@pytest.mark.accepts("P5", "P11")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    STORIES,
    st.lists(
        st.tuples(
            st.sampled_from(TIMED), st.sampled_from([RestartPolicy.NO, RestartPolicy.ON_FAILURE])
        ),
        min_size=3,
        max_size=3,
    ),
)
def test_a_story_with_schedules_keeps_the_rules_too(story, chosen):
    world = lived(with_schedule(story, chosen))
    for before, decided in world.plans:
        slots = [action.slot for action in decided.actions]
        assert len(slots) == len(set(slots)), "one action per slot"
        assert says_the_same_later(before, decided), "who is to be looked at again has a time"
        assert all(at > decided.at for _, at in decided.wakes), "what is due is done, not awaited"
    assert not world.doubled, "never two processes in one slot"
    _calms_down(world)
    _replays(world.scenario)


def _calms_down(world):
    """At one moment there is only so much to do."""
    for _ in range(30):
        world.obeys()
        if not world.acts():
            break
    else:
        raise AssertionError("there is no end to what is done at one moment")
    scenario = world.scenario
    decided = scenario.decides()
    if scenario.declaration.paused or scenario.declaration.closing is not None:
        return
    waking = {name for name, _ in decided.wakes}
    for name, entry in scenario.declaration.workers.items():
        if entry.wanted and entry.spec.schedule is not None and entry.replicas:
            waits = any("waits for" in scenario.status(slot).why for slot in entry.slots())
            assert waits or name in waking, "its next run has a time"


def _replays(scenario):
    observed = Observed()
    for fact, at, version in scenario.history:
        before = observed.slots.get(fact.slot)
        if before is None:
            before = SlotStatus(slot=fact.slot, since=at.mono, since_wall=at.wall)
        after = absorb(before, fact, at, version)
        assert not isinstance(after, Illegal)
        forgotten = [fact.slot] if isinstance(fact, events.Forgotten) else []
        observed = observed.with_changes([after], forgotten)
    assert observed == scenario.observed
