from __future__ import annotations

import json
from pathlib import Path

import pytest

from uphold.cli import seeing


@pytest.fixture
def logs(home: Path) -> Path:
    folder = home / "logs"
    folder.mkdir()
    return folder


def record(second: int, message: str, **more: object) -> str:
    known = {
        "timestamp": f"2026-01-01T00:00:{second:02d}.000Z",
        "level": "INFO",
        "event": "worker.starting",
        "message": message,
        "worker": "api",
        "task_id": None,
        "label": None,
    }
    return json.dumps(known | more) + "\n"


@pytest.mark.accepts("D-38")
def test_a_fresh_home_has_no_logs_and_that_is_no_error(uphold, home):
    assert uphold("logs") == (0, "no logs yet\n", "")
    assert uphold("logs", "api") == (0, "no logs yet\n", "")
    assert uphold("logs", "--json") == (0, "", "")


def test_of_a_silent_supervisor_the_home_tells_who_has_no_logs_yet(uphold, supervisor, monkeypatch):
    monkeypatch.setattr(seeing, "_TO_ANSWER", 0.05)
    (supervisor.home / "runtime.json").write_text(json.dumps({"workers": {"api": {}, "web": {}}}))
    assert uphold("logs", "api") == (0, "no logs yet\n", "")
    refused = uphold("logs", "apo")
    assert refused.code == 5
    assert "Did you mean 'api'?" in refused.err


@pytest.mark.accepts("D-35", "R-17", "C-154")
def test_without_a_name_the_runtime_events_are_told(uphold, logs):
    told = record(2, "stopping api", level="WARNING", task_id="job_1", label="night 1")
    (logs / "runtime.log").write_text(record(1, "starting api") + told)
    assert uphold("logs").out.splitlines() == [
        "2026-01-01T00:00:01.000Z  INFO     worker.starting           api           starting api",
        (
            "2026-01-01T00:00:02.000Z  WARNING  worker.starting           api           "
            "[job_1 - night 1] stopping api"
        ),
    ]
    (line,) = uphold("logs", "--json", "-n", "1").out.splitlines()
    assert json.loads(line) == json.loads(told)


def test_runtime_events_can_be_narrowed_down(uphold, logs):
    (logs / "runtime.log.1").write_text(record(1, "one"))
    (logs / "runtime.log").write_text(record(2, "two") + record(3, "three"))

    def messages(*words: str) -> list[str]:
        return [line.split()[-1] for line in uphold("logs", *words).out.splitlines()]

    assert messages() == ["one", "two", "three"]
    assert messages("-n", "2") == ["two", "three"]
    assert messages("--since", "2026-01-01T00:00:02Z") == ["two", "three"]
    assert messages("--until", "2026-01-01T00:00:01Z") == ["one"]
    assert messages("--grep", "t.o|three") == ["two", "three"]


@pytest.mark.accepts("S21")
def test_a_torn_or_hostile_line_is_shown_harmlessly(uphold, logs):
    (logs / "runtime.log").write_bytes(b'{"timestamp": "20\n' + record(1, "a\x1b[2J\nb").encode())
    out = uphold("logs").out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


def test_the_output_of_a_worker_is_shown_with_its_name(uphold, logs):
    (logs / "api.log").write_text("one\ntwo\nthree\n")
    assert uphold("logs", "api", "-n", "2").out == "api | two\napi | three\n"
    assert uphold("logs", "api", "-n", "1", "--no-prefix").out == "three\n"
    assert uphold("logs", "api", "--grep", "^t", "--no-prefix").out == "two\nthree\n"
    lines = uphold("logs", "api", "--json", "-n", "1").out.splitlines()
    assert json.loads(lines[0])["text"] == "three"


@pytest.mark.accepts("E-25")
def test_a_bad_pattern_is_a_usage_error(uphold, logs):
    (logs / "api.log").write_text("one\n")
    assert uphold("logs", "api", "--grep", "(").code == 2


@pytest.mark.accepts("E-25")
def test_a_worker_nobody_knows_is_not_taken_for_a_silent_one(
    uphold, logs, supervisor, document, row
):
    supervisor.answers["status"] = document(row("mailer"))
    result = uphold("logs", "mialer")
    assert result.code == 5
    assert "Did you mean 'mailer'?" in result.err
    assert uphold("logs", "mailer") == (0, "no logs yet\n", "")


@pytest.mark.accepts("E-25")
def test_one_unknown_name_among_known_ones_is_not_passed_over(
    uphold, logs, supervisor, document, row
):
    (logs / "mailer.log").write_text("one\n")
    supervisor.answers["status"] = document(row("mailer"), row("web"))
    assert uphold("logs", "mailer", "wbe").code == 5
    assert uphold("logs", "mailer", "web").code == 0
