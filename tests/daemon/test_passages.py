from __future__ import annotations

import pytest

from uphold.core.events import StartBegun, Started, StartFailed
from uphold.core.passes import Check
from uphold.core.specs import Settings, SupervisorSpec, WorkerSpec
from uphold.core.statuses import Fault, Identity
from uphold.daemon.passages import Action, Report, chosen, deed_of, scrubbed
from uphold.errors import NoSuchWorker

WEB = WorkerSpec(name="web", command=("web",))
DB = WorkerSpec(name="db", command=("db",))
SETTINGS = Settings(supervisor=SupervisorSpec(name="orion"), workers=(WEB, DB))
WELL = Check(
    name="web",
    running=True,
    healthy=True,
    state="running",
    heartbeat="good",
    last_heartbeat=1_767_225_600.0,
    wanted=True,
    paused=False,
    starting=False,
    problem=None,
)


@pytest.mark.accepts("C-004")
def test_a_pass_is_about_all_workers_or_about_one():
    assert chosen(SETTINGS, None) == ("web", "db")
    assert chosen(SETTINGS, "db") == ("db",)
    assert chosen(SETTINGS, "orion") == ("web", "db"), "the supervisor's name means all"
    with pytest.raises(NoSuchWorker, match="no worker is called 'wbe'") as refused:
        chosen(SETTINGS, "wbe")
    assert refused.value.remedy == "Did you mean 'web'?"


def test_a_report_is_a_success_only_without_a_problem():
    report = Report(
        supervisor_id="s", worker_id="orion", began=1.0, ended=2.0, before=(WELL,), workers=(WELL,)
    )
    assert report.success
    document = report.document()
    assert (document["schema"], document["acted"], document["success"]) == (1, True, True)
    assert document["workers"][0]["last_heartbeat"] == "2026-01-01T00:00:00.000Z"
    assert {"running", "healthy", "heartbeat", "state", "paused"} <= set(document["workers"][0])


@pytest.mark.accepts("T24")
def test_no_secret_leaves_with_a_report():
    told = "it said hunter2"
    sick = Check(**{field: getattr(WELL, field) for field in Check.__slots__} | {"problem": told})
    report = scrubbed(
        Report(
            supervisor_id="s",
            worker_id="orion",
            began=1.0,
            ended=2.0,
            actions=(Action(slot="web", did="stopped", why=told),),
            before=(sick,),
            workers=(sick, WELL),
            problems=(told,),
        ),
        lambda text: text.replace("hunter2", "***"),
    )
    assert "hunter2" not in str(report.document())
    assert report.workers[1].problem is None


def test_only_what_was_done_is_an_action():
    begun = StartBegun(
        slot="web", generation=1, nonce="n", terms=WEB, seen=1, automatic=False, why="declared"
    )
    assert deed_of(begun) == Action(slot="web", did="started", why="declared")
    failed = StartFailed(slot="web", generation=1, fault=Fault(code="UPH_X", message="no luck"))
    assert deed_of(failed) == Action(slot="web", did="failed to start", why="no luck")
    who = Identity(pid=1, start_ticks=1, boot_id="b", inode=1, nonce="n")
    assert deed_of(Started(slot="web", generation=1, identity=who)) is None
