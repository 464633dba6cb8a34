"""Events, audit and jobs, read from a real journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from uphold.cli.history import details
from uphold.core.events import Note, Recorded
from uphold.host.proctable import boot_id
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import AuditEntry, Batch, JobRow

NOW = 1_767_225_600.0


def event(seq: int, worker: str = "api", **payload: object) -> Recorded:
    note = Note(type="worker.exited", entity_type="worker", entity_id=worker, payload=payload)
    return Recorded(seq=seq, id=f"e-{seq}", at=NOW + seq, event=note)


def entry(number: int) -> AuditEntry:
    return AuditEntry(
        id=f"a-{number}",
        actor="ada@orion",
        action="restart",
        target_type="worker",
        target_id="api",
        label="night 1",
        at=NOW + number,
        details={"reason": "it hangs"},
    )


def job(number: int, state: str = "succeeded", **changes: object) -> JobRow:
    known = {
        "id": f"job_{number}",
        "task_id": None,
        "type": "restart",
        "target": "api",
        "label": None,
        "state": state,
        "created_at": NOW + number,
        "updated_at": NOW + number,
    }
    return JobRow(**(known | changes))


@pytest.fixture
def write(home: Path) -> Callable[..., None]:
    def write(batch: Batch) -> None:
        async def append() -> None:
            owner = Owner(name="orion", hostname="h", pid=1)
            journal, _ = open_journal(home / "journal.db", boot_id=boot_id(), owner=owner, now=NOW)
            await journal.append(batch)
            await journal.close()

        asyncio.run(append())

    return write


@pytest.mark.parametrize(
    ("verb", "told"),
    [("events", "no events yet"), ("audit", "no audit records yet"), ("jobs", "no jobs yet")],
)
def test_a_fresh_home_has_no_history_and_that_is_no_error(uphold, home, verb, told):
    assert uphold(verb) == (0, f"{told}\n", "")
    assert uphold(verb, "--json") == (0, "", "")
    assert list(home.iterdir()) == []


def test_events_are_told_in_order_one_line_each(uphold, write):
    write(Batch(events=[event(1, exit={"code": 3, "signal": None}), event(2, "web")]))
    lines = uphold("events").out.splitlines()
    assert lines[0] == (
        "2026-01-01T00:00:01.000Z  info     worker.exited             api           exit=code:3"
    )
    assert "web" in lines[1]


def test_events_can_be_narrowed_down(uphold, write):
    write(Batch(events=[event(1), event(2, "web"), event(3)]))

    def seqs(*words: str) -> list[int]:
        out = uphold("events", "--json", *words).out
        return [json.loads(line)["seq"] for line in out.splitlines()]

    assert seqs() == [1, 2, 3]
    assert seqs("-n", "2") == [2, 3]
    assert seqs("-n", "0") == []
    assert seqs("web") == [2]
    assert seqs("web", "api", "-n", "2") == [2, 3]
    assert seqs("--since", "2026-01-01T00:00:02Z") == [2, 3]


@pytest.mark.accepts("P11")
def test_following_goes_on_where_the_history_ended_without_repeating(uphold, supervisor, write):
    write(Batch(events=[event(1), event(2)]))
    supervisor.answers["subscribe"] = {"seq": 3}
    news = {"type": "worker.ready", "entity_id": "api", "payload": {}, "severity": "info"}
    supervisor.news = [
        news | {"seq": 2},
        news | {"seq": 3},
        news | {"type": "gap", "seq": 9, "payload": {"from": 4, "to": 8}},
    ]
    lines = uphold("events", "-f", "--json", "api").out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 9]
    assert supervisor.asked("subscribe") == {"from_seq": 2, "names": ["api"]}


def test_following_without_a_supervisor_says_so(uphold, write):
    write(Batch(events=[event(1)]))
    for verb in ("events", "audit", "jobs"):
        result = uphold(verb, "-f")
        assert result.code == 7
        assert result.out


@pytest.mark.accepts("C-154")
def test_the_audit_names_who_what_whom_the_label_and_why(uphold, write):
    write(Batch(audit=[entry(1), entry(2)]))
    line, _ = uphold("audit").out.splitlines()
    assert line == (
        "2026-01-01T00:00:01.000Z  ada@orion         restart       api           "
        "[night 1]  reason=it hangs"
    )
    assert len(uphold("audit", "-n", "1", "--json").out.splitlines()) == 1


@pytest.mark.accepts("P10")
def test_the_chain_of_the_audit_is_checked(uphold, home, write):
    write(Batch(audit=[entry(1), entry(2), entry(3)]))
    assert uphold("audit", "verify").out == (
        "the audit is whole: 3 records, every one as it was written.\n"
    )
    assert uphold("audit", "verify", "--json").json["ok"] is True
    import sqlite3

    with sqlite3.connect(home / "journal.db") as file:
        file.execute("DROP TRIGGER audit_stays")
        file.execute("UPDATE audit_log_t SET actor = 'eve' WHERE audit_id = 'a-2'")
    file.close()
    result = uphold("audit", "verify")
    assert result.code == 1
    assert "[UPH_AUDIT_BROKEN]" in result.err
    assert "a-2" in result.err
    assert uphold("audit", "verify", "--json").code == 1


def test_jobs_say_where_orders_stand(uphold, write):
    write(Batch(jobs=[job(1), job(2, "failed", error="exit code 3", label="l 7")]))
    first, second = uphold("jobs").out.splitlines()
    assert "succeeded" in first
    assert second.endswith("[l 7]     exit code 3")


def test_a_followed_job_is_told_again_when_its_state_changes(uphold, supervisor, write):
    write(Batch(jobs=[job(1, "running")]))

    def subscribe(_params: object) -> dict[str, int]:
        write(Batch(jobs=[job(1, "succeeded"), job(2, "queued")]))
        return {"seq": 1}

    supervisor.answers["subscribe"] = subscribe
    lines = uphold("jobs", "-f", "--json").out.splitlines()
    assert [(json.loads(line)["job_id"], json.loads(line)["state"]) for line in lines] == [
        ("job_1", "running"),
        ("job_1", "succeeded"),
        ("job_2", "queued"),
    ]


@pytest.mark.accepts("S21")
def test_history_cannot_command_the_terminal(uphold, write):
    write(
        Batch(
            events=[event(1, "\x1b[2Japi", message="a\nb\x9b")],
            audit=[
                AuditEntry(
                    **{f: getattr(entry(1), f) for f in AuditEntry.__slots__}
                    | {"actor": "\x1b]0;x\x07"}
                )
            ],
        )
    )
    out = uphold("events").out + uphold("audit").out
    assert "\x1b" not in out
    assert "\x9b" not in out
    assert len(out.splitlines()) == 2


def test_details_say_the_reason_last_and_leave_out_what_is_empty():
    payload = {"slot": "a", "before": "up", "after": "down", "why": "asked", "x": None, "y": ""}
    assert details(payload) == "up -> down slot=a (asked)"
    assert details({"names": ["a", "b"]}) == "names=a,b"
    assert details("text") == "text"
    assert details(None) == ""
    assert details({"left_overs": True}) == "left_overs=being seen off"
    assert details({"left_overs": False}) == "left_overs=no"
    assert details({"automatic": True, "seen": [None, True]}) == "automatic=yes seen=-,yes"
    assert details({"exit": {"code": 0, "known": False}}) == "exit=code:0,known:no"


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("verb", ["events", "audit", "logs"])
def test_the_history_of_a_worker_nobody_knows_is_an_error_with_the_nearest_name(
    uphold, supervisor, document, row, write, verb
):
    write(Batch(events=[event(1)], audit=[entry(1)]))
    supervisor.answers["status"] = document(row("mailer"))
    result = uphold(verb, "mialer")
    assert result.code == 5
    assert "Did you mean 'mailer'?" in result.err
    assert uphold(verb, "-f", "mialer").code == 5
    assert uphold(verb, "mailer").code == 0, "it has no history yet, but it is known"


@pytest.mark.parametrize("verb", ["events", "audit"])
def test_a_worker_that_was_removed_keeps_its_history(
    uphold, supervisor, document, row, write, verb
):
    write(Batch(events=[event(1)], audit=[entry(1)]))
    supervisor.answers["status"] = document(row("mailer"))
    result = uphold(verb, "api")
    assert (result.code, len(result.out.splitlines())) == (0, 1)


def test_the_events_of_a_slot_are_those_of_its_worker(uphold, write):
    write(Batch(events=[event(1), event(2, "web")]))
    assert len(uphold("events", "api.2").out.splitlines()) == 1


def test_the_audit_can_be_narrowed_down_to_workers(uphold, write):
    several = replace(entry(2), target_id="*", details={"names": ["api", "web"]})
    other = replace(entry(3), target_id="db", details={})
    write(Batch(audit=[entry(1), several, other]))

    def ids(*words: str) -> list[str]:
        out = uphold("audit", "--json", *words).out
        return [json.loads(line)["audit_id"] for line in out.splitlines()]

    assert ids() == ["a-1", "a-2", "a-3"]
    assert ids("api") == ["a-1", "a-2"]
    assert ids("web") == ["a-2"]
    assert ids("web", "db", "api") == ["a-1", "a-2", "a-3"]
    assert ids("web", "db", "api", "-n", "2") == ["a-2", "a-3"]


def told(uphold, verb: str, key: str, *words: str) -> list[object]:
    out = uphold(verb, "--json", *words).out
    return [json.loads(line)[key] for line in out.splitlines()]


def noted(seq: int, kind: str, severity: str = "info", **more: object) -> Recorded:
    note = Note(type=kind, entity_type="worker", entity_id="api", payload={}, severity=severity)
    return Recorded(seq=seq, id=f"e-{seq}", at=NOW + seq, event=note, **more)


def test_events_are_found_by_type_severity_time_and_cause(uphold, write):
    accepted = Note(type="order.accepted", entity_type="order", entity_id="o-1", payload={})
    write(
        Batch(
            events=[
                Recorded(seq=1, id="e-1", at=NOW + 1, event=accepted),
                noted(2, "worker.exited", "warning", cause="o-1"),
                noted(3, "worker.failed", "error"),
                noted(4, "supervisor.heartbeat"),
                noted(5, "worker.ready", cause="o-1"),
            ]
        )
    )

    def seqs(*words: str) -> list[object]:
        return told(uphold, "events", "seq", *words)

    assert seqs("--type", "worker.*") == [2, 3, 5]
    assert seqs("--type", "worker.ready,order.*") == [1, 5]
    assert seqs("--type", "worker.ready", "--type", "worker.failed") == [3, 5]
    assert seqs("--type", "worker") == []
    assert seqs("--severity", "warning") == [2, 3]
    assert seqs("--severity", "error") == [3]
    assert seqs("--severity", "info") == [1, 2, 3, 4, 5]
    assert seqs("--cause", "o-1") == [1, 2, 5]
    assert seqs("--since", "2026-01-01T00:00:02Z", "--until", "2026-01-01T00:00:04Z") == [2, 3, 4]
    assert seqs("--until", "2026-01-01T00:00:04Z", "-n", "1") == [4]
    assert seqs("api", "--type", "worker.*", "--severity", "error") == [3]
    assert uphold("events", "--type", "x.*").out == "no events match\n"


def test_what_is_followed_is_narrowed_down_like_what_was(uphold, supervisor, write):
    write(Batch(events=[noted(1, "worker.exited", "warning")]))
    supervisor.answers["subscribe"] = {"seq": 1}
    news = {"type": "worker.ready", "entity_id": "api", "payload": {}, "severity": "info"}
    supervisor.news = [
        news | {"seq": 2},
        news | {"seq": 3, "type": "worker.failed", "severity": "error", "cause": "o-1"},
        news | {"seq": 4, "type": "order.done", "severity": "warning", "cause": "o-1"},
        news | {"type": "gap", "seq": 9, "payload": {"from": 5, "to": 8}},
    ]
    assert told(uphold, "events", "seq", "-f", "--type", "worker.*", "--severity", "warning") == [
        *(1, 3, 9)
    ]
    assert told(uphold, "events", "seq", "-f", "-n", "0", "--cause", "o-1") == [3, 4, 9]


@pytest.mark.parametrize("verb", ["events", "audit", "jobs"])
def test_following_up_to_a_time_is_refused(uphold, home, verb):
    result = uphold(verb, "-f", "--until", "1m")
    assert result.code == 2
    assert "Leave one of them out" in result.err


@pytest.mark.accepts("C-154")
def test_the_audit_is_found_by_who_what_label_time_and_order(uphold, write):
    lines = [
        entry(1),
        replace(entry(2), id="a-1.succeeded", action="restart.succeeded"),
        replace(entry(3), actor="bob@lyra", label="day 2"),
        replace(entry(4), action="stop", label=None),
    ]
    write(Batch(audit=lines))

    def ids(*words: str) -> list[object]:
        return told(uphold, "audit", "audit_id", *words)

    assert ids("--actor", "ada@*") == ["a-1", "a-1.succeeded", "a-4"]
    assert ids("--actor", "bob@lyra") == ["a-3"]
    assert ids("--action", "restart") == ["a-1", "a-1.succeeded", "a-3"]
    assert ids("--action", "*.succeeded,stop") == ["a-1.succeeded", "a-4"]
    assert ids("--label", "night 1") == ["a-1", "a-1.succeeded"]
    assert ids("--label", "d*") == ["a-3"]
    assert ids("--cause", "a-1") == ["a-1", "a-1.succeeded"]
    assert ids("--until", "2026-01-01T00:00:02Z") == ["a-1", "a-1.succeeded"]
    assert uphold("audit", "--actor", "eve").out == "no audit records match\n"


def test_jobs_are_found_by_worker_state_verb_label_and_task(uphold, write):
    jobs = [
        job(1, label="night 1"),
        job(2, "failed", target="web,api"),
        job(3, "running", target="webby", type="stop", task_id="task_1"),
    ]
    write(Batch(jobs=jobs))

    def ids(*words: str) -> list[object]:
        return told(uphold, "jobs", "job_id", *words)

    assert ids("api") == ["job_1", "job_2"]
    assert ids("web") == ["job_2"]
    assert ids("--state", "failed,running") == ["job_2", "job_3"]
    assert ids("--action", "st*") == ["job_3"]
    assert ids("--label", "night*") == ["job_1"]
    assert ids("--task-id", "task_1") == ids("--cause", "job_3") == ["job_3"]
    assert ids("--until", "2026-01-01T00:00:01Z") == ["job_1"]
    assert uphold("jobs", "--label", "none").out == "no jobs match\n"
    refused = uphold("jobs", "--state", "broken")
    assert refused.code == 2
    assert "'broken' is no state" in refused.err


def test_columns_are_as_wide_as_what_stands_in_them(uphold, write):
    write(Batch(events=[event(1, "a"), event(2, "a-rather-long-name", code=3)]))
    first, second = uphold("events").out.splitlines()
    assert first.endswith("a")
    assert "a-rather-long-name  code=3" in second
    write(Batch(audit=[entry(1), replace(entry(2), actor="somebody@a-long-machine-name")]))
    first, second = uphold("audit").out.splitlines()
    assert first.index("restart") == second.index("restart")


def test_a_burst_that_is_followed_is_told_in_full(uphold, supervisor, write):
    write(Batch(audit=[entry(1), entry(2)]))

    def subscribe(_params: object) -> dict[str, int]:
        write(Batch(audit=[entry(n) for n in range(3, 203)]))
        return {"seq": 1}

    supervisor.answers["subscribe"] = subscribe
    assert len(told(uphold, "audit", "audit_id", "-f", "-n", "1")) == 201


@pytest.mark.accepts("E-20")
@pytest.mark.parametrize("verb", ["events", "audit", "jobs"])
def test_help_shows_examples(uphold, verb):
    assert f"examples:\n  uphold {verb} " in uphold(verb, "--help").out


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("words", [["events"], ["audit"], ["audit", "verify"], ["jobs"]])
def test_a_history_that_one_may_not_read_is_not_permitted(uphold, home, as_somebody_else, words):
    (home / "journal.db").touch()
    as_somebody_else(home)
    result = uphold(*words, "--home", str(home))
    assert (result.code, result.out) == (4, "")
    assert "permission is denied" in result.err
