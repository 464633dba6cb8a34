"""Schedules in a file: what is taken, and what is refused with which words."""

from __future__ import annotations

import pytest

from uphold.config.loading import load
from uphold.core.specs import RestartPolicy, Schedule
from uphold.errors import ConfigInvalid

TOP = '[workers.job]\ncommand = "true"\n'


def read(tmp_path, text, **environ):
    path = tmp_path / "uphold.toml"
    path.write_text(text)
    return {spec.name: spec for spec in load(path, environ=environ).workers}


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("{ every = '10m' }", Schedule(every=600.0)),
        ("{ every = '1s', overlap = 'queue' }", Schedule(every=1.0, overlap="queue")),
        ("{ cron = '*/5  *  * * *' }", Schedule(cron="*/5 * * * *")),
        (
            "{ cron = '@daily', timezone = 'Europe/Berlin', overlap = 'kill', at_load = true }",
            Schedule(cron="@daily", timezone="Europe/Berlin", overlap="kill", at_load=True),
        ),
    ],
)
def test_a_schedule_is_read_and_means_no_restart(tmp_path, text, schedule):
    job = read(tmp_path, f"{TOP}schedule = {text}\n")["job"]
    assert job.schedule == schedule
    assert job.restart is RestartPolicy.NO


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("schedule = {}", ["must say every or cron"]),
        ("schedule = { every = '1m', cron = '@daily' }", ["not both"]),
        ("schedule = { every = '1ms' }", ["schedule.every", "100ms"]),
        ("schedule = { every = '1m', timezone = 'UTC' }", ["only cron"]),
        ("schedule = { cron = '61 * * * *' }", ["schedule.cron has '61' as minute"]),
        ("schedule = { cron = 5 }", ["schedule.cron must be text"]),
        ("schedule = { cron = '@daily', timezone = 'Mars' }", ["schedule.timezone", "'Mars'"]),
        ("schedule = { cron = '@daily', timezone = 1 }", ["schedule.timezone must be the name"]),
        ("schedule = { every = '1m', overlap = 'both' }", ["'skip', 'queue', 'kill'"]),
        ("schedule = { every = '1m' }\nrestart = 'always'", ["restart must be 'no' or"]),
        ("schedule = { every = '1m' }\nessential = true", ["essential cannot be true"]),
        ("schedule = { interval = '1m', every = '1m' }", ["did you mean 'every'"]),
        ("cron = '@daily'", ["did you mean 'schedule.cron'"]),
        ("schedule = { cron = '${WHEN}' }", ["must be a cron expression", "'${WHEN}'"]),
    ],
)
def test_what_is_wrong_is_named_once(tmp_path, text, parts):
    with pytest.raises(ConfigInvalid) as refused:
        read(tmp_path, f"{TOP}{text}\n", WHEN="a secret")
    (problem,) = refused.value.problems
    for part in parts:
        assert part in problem.text
    assert "a secret" not in problem.text


def test_on_failure_may_be_asked_for_and_always_by_default_is_not_meant_for_it(tmp_path):
    text = (
        "[defaults]\nrestart = 'always'\n"
        "[workers.a]\ncommand = 'true'\nschedule = { every = '1m' }\n"
        "[workers.b]\ncommand = 'true'\nschedule = { every = '1m' }\nrestart = 'on-failure'\n"
        "[workers.c]\ncommand = 'true'\n"
    )
    restarts = {name: spec.restart for name, spec in read(tmp_path, text).items()}
    assert restarts == {"a": "no", "b": "on-failure", "c": "always"}


def test_a_zone_for_all_makes_nobody_scheduled(tmp_path):
    text = (
        "[defaults]\nschedule = { timezone = 'Europe/Berlin' }\n"
        "[workers.a]\ncommand = 'true'\nschedule = { cron = '@daily' }\n"
        "[workers.b]\ncommand = 'true'\n"
        "[workers.c]\ncommand = 'true'\nschedule = { every = '1h' }\n"
    )
    found = read(tmp_path, text)
    assert found["a"].schedule.timezone == "Europe/Berlin"
    assert found["b"].schedule is None
    assert found["c"].schedule.every == 3600.0
