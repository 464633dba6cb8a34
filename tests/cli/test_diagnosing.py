"""Orders that take their time, sent to a stand-in: what is asked for, and what is printed."""

from __future__ import annotations

import json

import pytest

JOB = "job_20260101_000000_ab12"


def done(**more):
    return {"schema": 1, "job_id": JOB, "results": [], "error": None, "details": {}, **more}


@pytest.mark.accepts("E-20", "C-093")
def test_diagnose_says_where_the_report_is_and_what_could_not_be_read(uphold, supervisor):
    details = {"report_path": "/srv/report.json", "problems": ["disk: the share hangs"]}
    supervisor.answers["submit"] = done(details=details)
    result = uphold("diagnose", "api", "--label", "night shift")
    assert result.code == 0
    assert result.out == "report: /srv/report.json\nnot available: disk: the share hangs\n"
    asked = supervisor.asked("submit")
    assert (asked["verb"], asked["names"], asked["label"], asked["wait"]) == (
        *("diagnose", ["api"], "night shift"),
        True,
    )


def test_an_errand_that_failed_says_why_and_exits_1(uphold, supervisor):
    supervisor.answers["submit"] = done(error="nothing could be written")
    result = uphold("diagnose", "api")
    assert (result.code, result.out) == (1, "")
    assert result.err == "uphold: nothing could be written [UPH_FAILED]\n"


@pytest.mark.accepts("P27")
def test_the_answer_is_given_as_a_document_and_without_waiting_as_a_job(uphold, supervisor):
    supervisor.answers["submit"] = done(details={"report_path": "/srv/report.json"})
    assert uphold("diagnose", "api", "--json").json["job_id"] == JOB
    result = uphold("diagnose", "api", "--no-wait")
    assert (result.code, result.out) == (0, f"accepted as {JOB}; see `uphold jobs`.\n")
    assert supervisor.asked("submit")["wait"] is False


def test_nothing_that_comes_back_can_paint_on_a_terminal(uphold, supervisor):
    details = {"report_path": "/srv/\x1b[2Jreport", "problems": ["a\nb"]}
    supervisor.answers["submit"] = done(details=details)
    out = uphold("diagnose", "api").out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


@pytest.mark.accepts("E-20")
def test_diagnose_prints_the_report_for_reading(uphold, supervisor, tmp_path):
    path = tmp_path / "report.json"
    section = {"error": None, "content": {"running": True, "pid": 7}}
    report = {"worker_id": "api", "sections": {"process": section}}
    path.write_text(json.dumps(report))
    supervisor.answers["submit"] = done(details={"report_path": str(path)})
    result = uphold("diagnose", "api", "--open")
    assert result.code == 0
    assert "process" in result.out.lower()


def test_a_report_that_is_gone_is_no_crash(uphold, supervisor, tmp_path):
    supervisor.answers["submit"] = done(details={"report_path": str(tmp_path / "gone.json")})
    result = uphold("diagnose", "api", "--open")
    assert result.code == 1
    assert "gone.json cannot be read from here" in result.err
