from __future__ import annotations

import os
import pwd

import pytest

DONE = {
    "schema": 1,
    "job_id": "job_20260101_000000_ab12",
    "results": [{"name": "api", "ok": True, "state": "running", "error": None}],
}


@pytest.mark.accepts("E-20", "P27")
@pytest.mark.parametrize(
    "verb",
    "start stop restart pause resume enable disable quarantine approve reset".split(),
)
def test_an_order_goes_through_the_socket_and_waits_for_the_result(uphold, supervisor, verb):
    supervisor.answers["submit"] = DONE
    result = uphold(verb, "api", "--label", "night shift", "--reason", "it hangs")
    assert (result.code, result.out) == (0, "api: running\n")
    user = pwd.getpwuid(os.getuid()).pw_name
    assert supervisor.asked("submit") == {
        "verb": verb,
        "names": ["api"],
        "label": "night shift",
        "reason": "it hangs",
        "author": f"{user}@{os.uname().nodename}",
        "wait": True,
        "tell_accepted": True,
    }


def test_scale_and_signal_say_what_they_want(uphold, supervisor):
    supervisor.answers["submit"] = DONE
    assert uphold("scale", "web=3").code == 0
    assert supervisor.asked("submit")["replicas"] == 3
    for spelled in ("HUP", "SIGHUP", "hup", "1"):
        assert uphold("signal", "web", spelled).code == 0
        assert supervisor.asked("submit")["signal"] == "HUP"


def test_pause_and_resume_without_a_name_are_about_the_supervisor(uphold, supervisor):
    supervisor.answers["submit"] = DONE | {"results": []}
    assert uphold("pause").code == 0
    assert supervisor.asked("submit")["names"] == []


@pytest.mark.accepts("P27")
def test_without_waiting_the_answer_is_the_job(uphold, supervisor):
    supervisor.answers["submit"] = DONE | {"results": []}
    result = uphold("restart", "api", "--no-wait")
    assert result.code == 0
    assert "accepted as job_20260101_000000_ab12" in result.out
    assert supervisor.asked("submit")["wait"] is False
    assert uphold("restart", "api", "--no-wait", "--json").json["job_id"] == DONE["job_id"]


@pytest.mark.accepts("P27", "E-25")
def test_one_worker_that_fails_makes_the_whole_fail_and_is_named(uphold, supervisor):
    failed = {
        "name": "mailer",
        "ok": False,
        "state": "backoff",
        "error": {"code": "UPH_WORKER_EXITED", "message": "exit code 3"},
    }
    supervisor.answers["submit"] = DONE | {"results": [*DONE["results"], failed]}
    result = uphold("start", "api", "mailer")
    assert result.code == 1
    assert result.out.splitlines() == [
        "api: running",
        "mailer: backoff, but UPH_WORKER_EXITED: exit code 3",
    ]


def test_a_time_limit_is_the_supervisors_to_keep(uphold, supervisor):
    message = "job job_7 was not done within 0.5 s; it goes on."
    supervisor.fails("submit", "UPH_ORDER_TIMEOUT", 1, message)
    result = uphold("stop", "api", "--timeout", "500ms")
    assert result.code == 1
    assert "job_7" in result.err
    assert supervisor.asked("submit")["timeout"] == 0.5


@pytest.mark.accepts("E-23", "E-25")
@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("UPH_WORKER_UNKNOWN", 5), ("UPH_ORDER_REFUSED", 4), ("UPH_CONFIG_INVALID", 6)],
)
def test_what_the_supervisor_refuses_keeps_its_code(uphold, supervisor, code, exit_code):
    supervisor.fails("submit", code, exit_code, "no worker is called 'apo'.")
    result = uphold("stop", "apo")
    assert result.code == exit_code
    assert result.err.splitlines() == [f"uphold: no worker is called 'apo'. [{code}]", "  Do this."]


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("words", [["restart", "api"], ["reload"], ["update"]])
def test_an_order_to_a_frozen_supervisor_ends_and_says_that_nothing_is_known(
    uphold, supervisor, words
):
    result = uphold(*words, "--timeout", "100ms")
    assert (result.code, result.out) == (1, "")
    assert "did not accept the order within 0.1 s; nothing is known of it." in result.err
    assert "[UPH_SUPERVISOR_SILENT]" in result.err
    assert "`uphold jobs`" in result.err


def test_quiet_says_nothing_but_errors(uphold, supervisor):
    supervisor.answers["submit"] = DONE
    assert uphold("-q", "stop", "api") == (0, "", "")


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("words", [("start", "api"), ("reload",), ("stop", "api"), ("pause",)])
def test_without_a_supervisor_orders_exit_with_7(uphold, home, words):
    result = uphold(*words)
    assert result.code == 7
    assert "[UPH_SUPERVISOR_NOT_RUNNING]" in result.err
    assert "uphold start" in result.err


CHANGES = [
    {"name": "api", "action": "none", "reason": "as declared", "keys": []},
    {"name": "web", "action": "restart", "reason": "command changed", "keys": ["command"]},
    {"name": "old", "action": "remove", "reason": "no longer in the file", "keys": []},
]


@pytest.mark.accepts("M-23")
def test_a_plan_names_one_action_per_worker_with_its_reason(uphold, supervisor):
    supervisor.answers["plan"] = {"schema": 1, "changes": CHANGES}
    result = uphold("plan")
    assert result.code == 0
    assert result.out.splitlines() == [
        "WORKER  ACTION   REASON",
        "api     none     as declared",
        "web     restart  command changed",
        "old     remove   no longer in the file",
        "2 changes",
    ]
    assert uphold("plan", "--json").json["changes"] == CHANGES
    assert uphold("plan", "--exit-code").code == 2


def test_a_plan_without_changes_exits_with_0(uphold, supervisor):
    supervisor.answers["plan"] = {"schema": 1, "changes": CHANGES[:1]}
    result = uphold("plan", "--exit-code")
    assert result.code == 0
    assert result.out.endswith("nothing to change\n")


def test_a_reload_shows_what_changed_and_what_came_of_it(uphold, supervisor):
    supervisor.answers["reload"] = DONE | {"changes": CHANGES}
    result = uphold("reload")
    assert result.code == 0
    assert result.out.splitlines()[1:] == [
        "web     restart  command changed",
        "old     remove   no longer in the file",
        "2 changes",
        "api: running",
    ]


@pytest.mark.accepts("P12")
def test_a_refused_file_is_listed_problem_by_problem(uphold, supervisor):
    problems = [
        {"at": "uphold.toml:3", "text": "unknown key 'comand'; did you mean 'command'?"},
        {"at": "uphold.toml:9", "text": "'grace' is no duration."},
    ]
    supervisor.fails("reload", "UPH_CONFIG_INVALID", 6, "2 problems", problems=problems)
    result = uphold("reload")
    assert result.code == 6
    assert result.err.splitlines() == [
        "uphold: the configuration has 2 problems: [UPH_CONFIG_INVALID]",
        "  uphold.toml:3: unknown key 'comand'; did you mean 'command'?",
        "  uphold.toml:9: 'grace' is no duration.",
    ]
    assert uphold("reload", "--json").json["error"]["problems"] == problems
