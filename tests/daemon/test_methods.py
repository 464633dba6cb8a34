from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.specs import Need, StopRule, WorkerSpec
from uphold.core.statuses import State
from uphold.daemon.methods import Methods, wish_of
from uphold.engine.telling import supervisor_note
from uphold.errors import ConfigInvalid, Problem, UpholdError
from uphold.testing.stages import Stage
from uphold.testing.waiting import eventually
from uphold.wire.redaction import Redactor


@pytest.mark.parametrize(
    ("params", "wish"),
    [
        ({"verb": "start", "names": ["a"]}, orders.StartWorkers(names=("a",))),
        ({"verb": "stop", "names": ["a", "b"]}, orders.StopWorkers(names=("a", "b"))),
        ({"verb": "stop", "names": ["b", "a", "b"]}, orders.StopWorkers(names=("b", "a"))),
        ({"verb": "restart", "names": ["a"]}, orders.RestartWorkers(names=("a",))),
        ({"verb": "pause"}, orders.PauseSupervisor()),
        ({"verb": "pause", "names": ["a"]}, orders.PauseWorkers(names=("a",))),
        ({"verb": "resume"}, orders.ResumeSupervisor()),
        ({"verb": "resume", "names": ["a"]}, orders.ResumeWorkers(names=("a",))),
        ({"verb": "enable", "names": ["a"]}, orders.EnableWorkers(names=("a",))),
        ({"verb": "disable", "names": ["a"]}, orders.DisableWorkers(names=("a",))),
        ({"verb": "quarantine", "names": ["a"]}, orders.QuarantineWorkers(names=("a",))),
        ({"verb": "approve", "names": ["a"]}, orders.ApproveWorkers(names=("a",))),
        ({"verb": "reset", "names": ["a"]}, orders.ResetWorkers(names=("a",))),
        (
            {"verb": "scale", "names": ["a"], "replicas": 3},
            orders.ScaleWorker(name="a", replicas=3),
        ),
        (
            {"verb": "signal", "names": ["a"], "signal": "sighup"},
            orders.SignalWorkers(names=("a",), signal="HUP"),
        ),
        (
            {"verb": "signal", "names": ["a"], "signal": 10},
            orders.SignalWorkers(names=("a",), signal="USR1"),
        ),
    ],
)
def test_a_request_becomes_the_wish_it_says(params, wish):
    assert wish_of(params) == wish


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"verb": "start"},
        {"verb": "explode", "names": ["a"]},
        {"verb": "scale", "names": ["a"]},
        {"verb": "scale", "names": ["a"], "replicas": "3"},
        {"verb": "scale", "names": ["a"], "replicas": True},
        {"verb": "signal", "names": ["a"]},
        {"verb": "signal", "names": ["a"], "signal": "NOPE"},
        {"verb": "signal", "names": ["a"], "signal": 999},
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(params):
    with pytest.raises(UpholdError) as refused:
        wish_of(params)
    assert refused.value.exit_code == 2


def methods_of(stage):
    return Methods(
        supervisor=stage.supervisor,
        config=stage.config,
        read=lambda: stage.config.current.settings,
        clock=stage.clock,
        journal=stage.journal,
        about=dict,
        redactor=Redactor,
    )


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["a", "a"], "uphold jobs, uphold why a"),
        (["a", "b"], "uphold jobs, uphold why a, uphold why b"),
        (["a", "b", "c", "d"], "uphold jobs, uphold why a, uphold why b, uphold why c, ..."),
    ],
)
def test_whoever_waits_too_long_is_told_commands_that_can_be_given(names, asked):
    async def go():
        specs = [WorkerSpec(name=name, command=(name,), autostart=False) for name in "abcd"]
        stage = await Stage(*specs).start()
        order = {"verb": "start", "names": names, "timeout": 0, "author": "ada"}
        with pytest.raises(UpholdError) as late:
            await methods_of(stage).submit(order)
        await stage.supervisor.abandon()
        return late.value

    error = asyncio.run(go())
    assert error.code == "UPH_ORDER_TIMEOUT"
    assert error.remedy == f"See where it stands: {asked}"


@pytest.mark.accepts("P27")
@pytest.mark.parametrize(
    ("order", "seconds"),
    [
        ({"verb": "start", "names": ["a"]}, 12 + 5 + 30),
        ({"verb": "diagnose", "names": ["a"]}, 12 + 5 + 30 + 900),
        ({"verb": "start", "names": ["a"], "timeout": 3}, 3),
    ],
)
def test_an_order_is_accepted_with_its_job_and_how_long_it_is_waited_for(order, seconds):
    """Unless told otherwise: the longest grace along the dependencies, and half a minute."""

    after_a = (("a", Need.STARTED),)

    async def go():
        stage = await Stage(
            WorkerSpec(name="a", command=("a",), stop=StopRule(grace=12)),
            WorkerSpec(name="b", command=("b",), stop=StopRule(grace=5), depends_on=after_a),
        ).start()
        told = {**order, "author": "ada", "tell_accepted": True}
        underway = await methods_of(stage).submit(told)
        jobs = list(stage.journal.jobs)
        await stage.supervisor.abandon()
        return underway.accepted, jobs

    accepted, jobs = asyncio.run(go())
    assert accepted["within"] == seconds
    assert accepted["job_id"] == jobs[-1]


BY_ADA = {"author": "ada@host", "label": "release 2", "reason": "new port", "wait": False}


def reloaded(read):
    """Ask for a reload whose reading of the file is `read(config, asker)`; what is on record?"""

    async def go():
        stage = await Stage(WorkerSpec(name="web", command=("web",))).start()
        stage.config.path = "uphold.toml"
        stage.config.reload = lambda asker: read(stage.config, asker)
        before = len(stage.journal.audit), len(stage.journal.jobs)
        try:
            answer = await methods_of(stage).reload(BY_ADA)
        except UpholdError as error:
            answer = error
        await stage.clock.settle()
        audit, jobs = stage.journal.audit[before[0] :], list(stage.journal.jobs.values())
        for line in audit:
            assert (line.actor, line.label) == ("ada@host", "release 2")
            assert (line.details["origin"], line.details["reason"]) == ("socket", "new port")
        await stage.supervisor.abandon()
        return answer, audit, jobs[before[1] :]

    return asyncio.run(go())


def test_a_reload_that_changes_something_is_on_record_as_the_order_of_who_asked():
    def read(config, asker):
        config.change(WorkerSpec(name="web", command=("other",)), asker=asker)
        return config.current.settings

    answer, audit, jobs = reloaded(read)
    assert audit[0].action == "declare"
    assert [(job.id, job.label) for job in jobs] == [(answer["job_id"], "release 2")]


def test_a_reload_that_changes_nothing_is_on_record_too():
    answer, (line,), (job,) = reloaded(lambda config, asker: config.current.settings)
    assert line.action == "declare.unchanged"
    assert answer == {"schema": 1, "job_id": job.id, "results": [], "changes": answer["changes"]}
    assert (job.type, job.label, job.state) == ("declare", "release 2", "succeeded")
    assert job.finished_at is not None


def test_a_reload_that_is_refused_is_on_record_as_refused():
    def read(config, asker):
        raise ConfigInvalid([Problem("uphold.toml:2", "unknown key."), Problem("x", "y")])

    error, (line,), jobs = reloaded(read)
    assert isinstance(error, ConfigInvalid)
    assert line.action == "declare.refused"
    assert "uphold.toml:2: unknown key. (and 1 more)" in line.details["error"]
    assert jobs == []


def test_a_reload_with_a_wrong_label_reads_nothing():
    async def go():
        stage = await Stage().start()
        with pytest.raises(UpholdError) as refused:
            await methods_of(stage).reload({"label": "no/slash"})
        await stage.supervisor.abandon()
        return refused.value

    assert asyncio.run(go()).code == "UPH_LABEL_INVALID"


def stream(from_seq, *, change=lambda stage: None):
    """Read the events of a small supervisor from a number on, after something was done to it."""

    async def go():
        stage = await Stage(WorkerSpec(name="web", command=("web",))).start()
        change(stage)
        methods = methods_of(stage)
        last = stage.supervisor.last_seq
        first, lines = methods.subscribe({"from_seq": from_seq})
        assert first == {"seq": last}
        await stage.supervisor.tell(supervisor_note("supervisor.heartbeat"))
        heard = []
        async for line in lines:
            heard.append(json.loads(line)["event"])
            if heard[-1]["seq"] == last + 1 and heard[-1]["type"] != "gap":
                break
        await lines.aclose()
        await stage.supervisor.abandon()
        return last, heard

    return asyncio.run(go())


def ranges(events):
    return [
        (event["payload"]["from_seq"], event["payload"]["to_seq"])
        for event in events
        if event["type"] == "gap"
    ]


@pytest.mark.accepts("P11")
def test_a_whole_history_is_streamed_without_a_gap():
    last, heard = stream(1)
    assert [event["seq"] for event in heard] == list(range(1, last + 2))
    assert ranges(heard) == []


@pytest.mark.accepts("P11")
def test_a_reader_who_knows_higher_numbers_than_a_rescued_journal_is_told_of_a_gap():
    last, heard = stream(5001)
    assert ranges(heard) == [(last + 1, 5000)]
    assert heard[0]["type"] == "gap"
    assert heard[-1]["seq"] == last + 1, "and hears what comes now"


@pytest.mark.accepts("P11")
def test_a_reader_of_what_was_pruned_is_told_of_a_gap():
    def prune(stage):
        for seq in (1, 2, 3):
            del stage.journal._shelf.events[seq]

    last, heard = stream(1, change=prune)
    assert ranges(heard) == [(1, 3)]
    told = [event["seq"] for event in heard if event["type"] != "gap"]
    assert told == list(range(4, last + 2))


@pytest.mark.accepts("P11")
def test_a_reader_whose_whole_past_was_pruned_is_told_of_a_gap_with_the_next_event():
    last, heard = stream(1, change=lambda stage: stage.journal._shelf.events.clear())
    assert ranges(heard) == [(1, last)]
    assert heard[-1]["seq"] == last + 1


def test_a_reload_that_finds_its_file_under_way_is_done_when_that_is():
    """Whoever brought it into force: the watch of the file, or somebody else."""
    web = WorkerSpec(name="web", command=("web",))

    async def go():
        stage = await Stage(web).start()
        stage.driver.world.deaf.add("web")
        stage.config.path = "uphold.toml"
        read = []

        def reload(asker):
            read.append(asker)
            return stage.config.current.settings

        stage.config.reload = reload
        await stage.change(replace(web, command=("other",)))
        asked = asyncio.create_task(methods_of(stage).reload({**BY_ADA, "wait": True}))
        await eventually(lambda: read)
        await stage.clock.advance(1)
        assert stage.status("web").state is State.STOPPING
        assert not asked.done(), "it is not as the file says yet"
        await stage.clock.advance(60)
        answer = await asked
        assert [each["name"] for each in answer["results"]] == ["web"]
        assert stage.status("web").state is State.RUNNING
        await stage.supervisor.abandon()

    asyncio.run(go())
