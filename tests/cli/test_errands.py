"""`update`, `rollback` and `diagnose`: orders that take their time, and how their end is told."""

from __future__ import annotations

import json

import pytest

from uphold.cli.errands import carry_out

JOB = "job_20260205_143015_ab12"


def ended(error=None, **details):
    return {"schema": 1, "job_id": JOB, "results": [], "error": error, "details": details}


@pytest.mark.accepts("E-20", "P27")
def test_an_update_is_one_order_about_nobody_by_name(uphold, supervisor):
    supervisor.answers["submit"] = ended(
        before_commit="4be1", after_commit="9c07", commits=["9c07 Read in order"], held=False
    )
    result = uphold("update", "--deps", "--label", "release 1_4")
    assert (result.code, result.out) == (0, "4be1 -> 9c07\n  9c07 Read in order\n")
    asked = supervisor.asked("submit")
    assert (asked["verb"], asked["names"], asked["dependencies"]) == ("update", [], True)
    assert (asked["label"], asked["wait"]) == ("release 1_4", True)


def test_an_update_without_news_says_so(uphold, supervisor):
    supervisor.answers["submit"] = ended(before_commit="4be1", up_to_date=True)
    assert uphold("update").out == "already up to date\n"
    assert supervisor.asked("submit")["dependencies"] is False


def test_an_update_that_went_back_fails_and_says_where_it_stands(uphold, supervisor):
    why = "after the update OrionMX is not well"
    supervisor.answers["submit"] = ended(why, before_commit="4be1", after_commit="4be1")
    result = uphold("update")
    assert result.code == 1
    assert result.err == f"uphold: {why} [UPH_FAILED]\n"
    assert result.out == "still at 4be1\n"


def test_what_was_refused_comes_with_its_remedy(uphold, supervisor):
    refused = ended("tracked files are changed.", code="UPH_DEPLOY_DIRTY", remedy="Commit them.")
    supervisor.answers["submit"] = refused
    told = "uphold: tracked files are changed. [UPH_DEPLOY_DIRTY]\n  Commit them.\n"
    for words in (("update",), ("rollback",), ("update", "-q")):
        result = uphold(*words)
        assert (result.code, result.out, result.err) == (1, "", told)


def test_workers_that_are_held_are_said_to_be_down(uphold, supervisor):
    supervisor.answers["submit"] = ended(before_commit="a", after_commit="b", held=True)
    assert "the workers are held and were not started" in uphold("update").out
    assert "the workers are held and were not started" in uphold("rollback").out


def test_a_rollback_says_what_was_undone_and_what_was_not(uphold, supervisor):
    supervisor.answers["submit"] = ended(
        "9c07 cannot be reverted",
        commits_back=3,
        commits_reverted=1,
        reverted_commits=["ab12 One more"],
        failed_commit="9c07 Read in order",
        final_commit="77aa",
    )
    result = uphold("rollback", "--commits", "3")
    assert result.code == 1
    assert supervisor.asked("submit")["commits"] == 3
    assert result.out.splitlines() == [
        "1 of 3 reverted",
        "  ab12 One more",
        "not reverted: 9c07 Read in order",
        "now at 77aa",
    ]


def test_what_was_refused_before_anything_began_exits_with_4(uphold, supervisor):
    supervisor.answers["submit"] = ended("edited", code="UPH_DEPLOY_DIRTY", refused=True)
    assert uphold("update").code == 4
    assert uphold("rollback").code == 4


def test_a_rollback_is_of_one_commit_unless_told(uphold, supervisor):
    supervisor.answers["submit"] = ended(commits_back=1, commits_reverted=1)
    assert uphold("rollback").code == 0
    assert supervisor.asked("submit")["commits"] == 1
    assert uphold("rollback", "--commits", "many").code == 2


def test_a_report_is_named_and_printed_if_asked_for(uphold, supervisor, tmp_path):
    path = tmp_path / "report.json"
    section = {"ok": True, "error": None, "content": {"running": True, "pid": 4711}}
    head = {"timestamp": "2026-02-05T14:30:15.234Z", "supervisor_id": "s", "worker_id": "api"}
    report = {"schema": 1, **head, "task_id": None, "label": None, "complete": True}
    path.write_text(json.dumps({**report, "sections": {"process": section}}))
    supervisor.answers["submit"] = ended(report_path=str(path), problems=["disk: no share"])
    plain = uphold("diagnose", "api")
    assert (plain.code, plain.out) == (0, f"report: {path}\nnot available: disk: no share\n")
    assert supervisor.asked("submit")["names"] == ["api"]
    assert "4711" in uphold("diagnose", "api", "--open").out


@pytest.mark.parametrize("words", [("update",), ("rollback",), ("diagnose", "api")])
def test_programs_get_the_whole_answer_and_nobody_must_wait(uphold, supervisor, words):
    supervisor.answers["submit"] = ended("it failed")
    result = uphold(*words, "--json")
    assert (result.code, result.json) == (1, ended("it failed"))
    supervisor.answers["submit"] = {"schema": 1, "job_id": JOB, "results": []}
    result = uphold(*words, "--no-wait")
    assert (result.code, result.out) == (0, f"accepted as {JOB}; see `uphold jobs`.\n")
    assert supervisor.asked("submit")["wait"] is False


@pytest.mark.parametrize("words", [("update",), ("rollback",), ("diagnose", "api")])
def test_without_a_supervisor_nobody_can_do_it(uphold, home, words):
    assert uphold(*words).code == 7


def test_an_outcome_without_details_is_still_an_outcome(uphold, supervisor):
    assert callable(carry_out)
    supervisor.answers["submit"] = {"schema": 1, "job_id": JOB, "results": [], "details": None}
    assert uphold("update").code == 0
