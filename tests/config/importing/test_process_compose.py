from __future__ import annotations

import json

import pytest

from config.importing.readers import import_text, terms, verdict
from uphold.config.importing.compose_texts import Texts
from uphold.config.importing.reports import NotImportable


def compose(files=None, /, top=None, **processes):
    document = {"processes": processes, **(top or {})}
    return import_text("process-compose", json.dumps(document), files)


def one(files=None, /, **settings):
    return compose(files, a={"command": "x", **settings})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("$A", "${A:}"),
        ("${A}", "${A:}"),
        ("${A:-b c}", "${A:b c}"),
        ("$$A", "$A"),
        ("$${A}", "$${A}"),
        ("$(date) $1", "$(date) $1"),
        ("{{.V}} {{ .V }}", "v v"),
    ],
)
def test_variables_and_templates_are_put_in_as_there(text, read):
    imported = compose(top={"vars": {"V": "v"}}, a={"entrypoint": ["x", text]})
    assert terms(imported)["command"] == ["x", read]


def test_variables_stay_as_they_are_where_that_was_asked_for():
    imported = compose(top={"disable_env_expansion": True}, a={"entrypoint": ["x", "${A}"]})
    assert terms(imported)["command"] == ["x", "$${A}"]


def test_a_template_that_is_not_known_is_lost():
    assert verdict(one(working_dir="{{ range .X }}"), "working_dir")[0] == "lost"
    off = one(working_dir="{{ x }}", is_template_disabled=True)
    assert verdict(off, "working_dir")[0] == "translated"
    assert Texts().unknown("{{.A}}") == ["{{.A}}"]


@pytest.mark.parametrize(
    ("settings", "key", "value"),
    [
        ({"environment": ["A=1", "B=x=y"]}, "environment", {"A": "1", "B": "x=y"}),
        ({"environment": {"A": 1, "B": True, "C": None}}, "environment", {"A": "1", "B": "true", "C": ""}),
        ({"environment": ["UPHOLD_SLOT=1"]}, "environment", {}),
        ({"working_dir": "./x"}, "working_dir", "./x"),
        ({"namespace": "a b"}, "team", "a-b"),
        ({"replicas": "3"}, "replicas", 3),
        ({"disabled": True}, "autostart", False),
        ({"is_foreground": True}, "autostart", False),
        ({"availability": {"restart": "on_failure"}}, "restart", "on-failure"),
        ({"availability": {"restart": False}}, "restart", "no"),
        ({"availability": {"max_restarts": 0}}, "max_restarts", "unlimited"),
        ({"availability": {"exit_on_end": True}}, "essential", True),
        ({"shutdown": {"signal": 15}}, "stop", {"signal": "TERM"}),
        ({"env_file": ["a.env", "b.env"]}, "env_file", "a.env"),
        ({"success_exit_codes": [130]}, "success_exit_codes", [0, 130]),
        ({"is_disabled": "True"}, "autostart", False),
        ({"namespace": ["x", "y"]}, "team", "x"),
        ({"schedule": {"interval": "30m", "run_on_start": True}}, "schedule", {"every": "30m", "at_load": True}),
        ({"schedule": {"cron": "0 2 * * *", "timezone": "UTC"}}, "schedule", {"cron": "0 2 * * *", "timezone": "UTC"}),
    ],
)  # fmt: skip
def test_a_setting_becomes_a_key(settings, key, value):
    assert terms(one(**settings))[key] == value


@pytest.mark.parametrize(
    ("settings", "name", "kind", "how"),
    [
        ({"is_tty": True}, "is_tty", "lost", "no terminal"),
        ({"is_daemon": True}, "is_daemon", "lost", "foreground"),
        ({"is_daemon": False}, "is_daemon", "translated", "off"),
        ({"is_foreground": False}, "is_foreground", "translated", "off"),
        ({"is_dotenv_disabled": True}, "is_dotenv_disabled", "approximated", "env_file"),
        ({"log_configuration": {"no_color": True}}, "log_configuration", "lost", "--timestamps"),
        ({"shutdown": {"parent_only": True}}, "shutdown.parent_only", "approximated", "group"),
        ({"availability": {"exit_on_skipped": True}}, "availability.exit_on_skipped", "lost", "waiting"),
        ({"availability": {"exit_on_end": False}}, "availability.exit_on_end", "translated", "off"),
        ({"schedule": {"cron": "x", "max_concurrent": 2, "y": 1}}, "schedule", "approximated", "UTC"),
        ({"schedule": {"interval": "often"}}, "schedule", "lost", "neither"),
        ({"flavour": "mint"}, "flavour", "lost", "no such setting"),
        ({"entrypoint": ["y"]}, "entrypoint", "translated", "the command counts"),
        ({"namespace": "a b"}, "namespace", "approximated", "a-b"),
        ({"depends_on": {"a2": {"condition": "process_cooked"}}}, "depends_on", "approximated", "not known"),
        ({"depends_on": {"a2": {"condition": "process_healthy"}}}, "depends_on", "approximated", "no readiness"),
        ({"depends_on": {"b": {}}}, "depends_on", "approximated", "no process is called so"),
        ({"namespace": ["x", "y"]}, "namespace", "approximated", "has one"),
        ({"namespace": []}, "namespace", "translated", "empty"),
        ({"is_disabled": "$X"}, "is_disabled", "lost", "by hand"),
        ({"depends_on": ["a2"]}, "depends_on", "translated", "depends_on"),
    ],
)  # fmt: skip
def test_the_verdict_says_what_became_of_it(settings, name, kind, how):
    imported = compose(a={"command": "x", **settings}, a2={"command": "x"})
    found = verdict(imported, name)
    assert found[0] == kind
    assert how in found[1]


PROBE = {"exec": {"command": "true", "working_dir": "a b"}}


def test_probes_keep_their_numbers():
    imported = one(
        readiness_probe={**PROBE, "period_seconds": 0, "failure_threshold": 0},
        liveness_probe={
            "http_get": {"host": "h", "scheme": "HTTPS", "port": "${P:-1}", "path": "x"}
        },
    )
    assert terms(imported)["ready"] == {
        "exec": ["sh", "-c", "cd 'a b' && true"],
        "every": "1s",
        "timeout": "1s",
        "successes": 1,
        "failures": 1,
    }
    assert terms(imported)["live"]["http"] == "https://h:${P:1}/x"


def test_one_way_to_be_ready_is_enough():
    imported = one(ready_log_line="up", readiness_probe=PROBE)
    assert terms(imported)["ready"] == {"log": "up"}
    assert verdict(imported, "readiness_probe")[0] == "lost"
    other = one(readiness_probe=PROBE, ready_log_line="up")
    assert verdict(other, "ready_log_line")[0] == "lost"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replicas": "many"}, "whole number"),
        ({"replicas": True}, "whole number"),
        ({"environment": ["A"]}, "KEY=value"),
        ({"environment": 5}, "KEY=value"),
        ({"availability": {"restart": "often"}}, "restart must be"),
        ({"shutdown": {"signal": 19}}, "can end"),
        ({"depends_on": {"a": {}}}, "depends on itself"),
        ({"extends": "nobody"}, "which cannot be"),
        ({"extends": "a"}, "which cannot be"),
        ({"success_exit_codes": [300]}, "exit codes"),
        ({"depends_on": "b"}, "must be a table"),
        ({"readiness_probe": {}}, "http_get or exec"),
        ({"readiness_probe": {"exec": {}}}, "must have a command"),
        ({"readiness_probe": {"http_get": []}}, "must be a table"),
        ({"readiness_probe": {"http_get": {"port": "x"}}}, "port"),
        ({"readiness_probe": {**PROBE, "period_seconds": "x"}}, "period_seconds"),
        ({"command": "", "entrypoint": []}, "has no command"),
        ({"command": "", "entrypoint": "x"}, "list of words"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(settings, words):
    with pytest.raises(NotImportable, match=words):
        one(**settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("processes: [\n", "not valid YAML"),
        ("processes:\n  a: {command: x}\n  a: {command: y}\n", "given twice"),
        ("processes: 5\n", "must be a table"),
        ("processes: {a: 5}\n", "must be a table"),
        ("- a\n", "must be a table"),
    ],
)
def test_a_file_that_is_none_is_named_with_its_line(text, words):
    with pytest.raises(NotImportable, match=words) as found:
        import_text("process-compose", text)
    assert found.value.at.startswith("process-compose.yaml:")


def test_the_env_beside_it_is_for_all_unless_it_is_broken():
    good = one({".env": "A=1\n"})
    assert good.defaults["env_file"] == ".env"
    assert verdict(good, "(.env)")[0] == "translated"
    bad = one({".env": "what?\n"})
    assert "env_file" not in bad.defaults
    assert verdict(bad, "(.env)")[0] == "lost"


def test_settings_of_the_project_have_verdicts_too():
    imported = compose(
        top={"x-note": 1, "env_cmds": {}, "new": 1, "shell": {"shell_command": "zsh"}},
        a={"command": "x | y"},
    )
    assert terms(imported)["command"] == ["zsh", "-c", "x | y"]
    assert [(line.setting, line.verdict) for line in imported.report][:4] == [
        ("x-note", "translated"),
        ("env_cmds", "lost"),
        ("new", "lost"),
        ("shell", "translated"),
    ]


def test_a_process_that_extends_another_has_its_keys():
    imported = compose(
        base={"command": "x", "environment": ["A=1", "B=1"], "availability": {"restart": "always"}},
        mine={"extends": "base", "environment": ["A=2"]},
    )
    assert terms(imported, "mine")["environment"] == {"A": "2", "B": "1"}
    assert terms(imported, "mine")["restart"] == "always"
    assert verdict(imported, "extends")[0] == "translated"


def test_a_file_lies_over_the_one_it_extends_and_below_its_override():
    files = {
        "base.yaml": "extends: gone.yaml\nprocesses:\n  a: {command: x, working_dir: /x}\n",
        "process-compose.override.yaml": "name: shop\nprocesses:\n  a:\n    replicas: 2\n",
    }
    text = "extends: base.yaml\nordered_shutdown: true\nprocesses:\n  a: {command: y}\n"
    imported = import_text("process-compose", text, files)
    assert terms(imported) == {"command": "y", "working_dir": "/x", "replicas": 2}
    assert imported.supervisor == {"name": "shop"}
    places = {line.setting: line.at for line in imported.report if line.section == "a"}
    assert places == {
        "command": "process-compose.yaml:4",
        "working_dir": "base.yaml:3",
        "replicas": "process-compose.override.yaml:4",
    }
    assert [(line.at, line.verdict) for line in imported.report if line.setting == "extends"] == [
        ("process-compose.yaml:1", "translated"),
        ("base.yaml:1", "lost"),
    ]
