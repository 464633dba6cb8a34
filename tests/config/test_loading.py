"""Whole files: what is wrong is named at once, with its line; what is right becomes settings."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from uphold.config.loading import examine, load
from uphold.core.specs import Backoff, Heartbeat, Kind, Limits, Logs, Need, RestartPolicy, StopRule
from uphold.errors import ConfigInvalid, Problem

OK = "[workers.a]\ncommand = 'run'\n"
"""A right worker of two lines; what follows it starts on line 3."""


def problems(tmp_path, text, name="uphold.toml", **environ):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = examine(path, environ=environ).problems
    return [(problem.at.rpartition("/")[2], problem.text) for problem in found]


BAD_TOML = {
    # id: (text, [(line, words that the message must contain), …])
    "no value": ("[workers.a]\ncommand =\n", [(2, ["not valid TOML"])]),
    "open string": (OK + "user = 'x\n", [(3, ["not valid TOML"])]),
    "open array": (OK + "labels = [1,\n", [(3, ["not valid TOML"])]),
    "same key twice": (OK + "team = 'x'\nteam = 'y'\n", [(4, ["twice"])]),
    "same table twice": (OK + "[workers.a]\n", [(3, ["twice"])]),
    "leading zero": (OK + "umask = 022\n", [(3, ["not valid TOML"])]),
    "endless number": (OK + f"replicas = {'9' * 5000}\n", [(3, ["not valid TOML"])]),
    "endless hex number": (OK + f"replicas = 0x{'f' * 9000}\n", [(3, ["replicas", "very large"])]),
    "deep list": ("a = " + "[" * 5000, [(1, ["nested too deeply"])]),
    "endless key": (OK + "a." * 20000 + "a = 1\n", [(3, ["more than 16 parts"])]),
    "endless key inside": (OK + "labels = { " + "a." * 20000 + "a = 1 }\n", [(3, ["16 parts"])]),
    "empty": ("", [(1, ["empty", "[workers]"])]),
    "only comments": ("# nothing\n\n", [(1, ["empty"])]),
    "empty part of an application's file": ("x = 1\n[uphold]\n", [(2, ["empty"])]),
    "unknown section": (OK + "[worker.b]\n", [(3, ["'worker'", "the file", "'workers'"])]),
    "familiar section": ("[programs.x]\n", [(1, ["'programs'", "'workers'"])]),
    "section of a later version": (OK + "[teams.x]\n", [(3, ["'teams'", "later version"])]),
    "gateway": (OK + "[gateway]\nlisten = ''\n", [(3, ["'gateway'", "later version"])]),
    "workers are not a table": ("workers = 3\n", [(1, ["[workers]", "table of workers", "3"])]),
    "worker is not a table": ("[workers]\napi = 'run'\n", [(2, ["'api'", "table", "'run'"])]),
    "supervisor is not a table": (OK + "[[supervisor]]\n", [(3, ["[supervisor]", "a list"])]),
    "defaults are not a table": ("defaults = 1\n" + OK, [(1, ["[defaults]", "table"])]),
    "no command": ("[workers.a]\nteam = 'x'\n", [(1, ["'a'", "no command"])]),
    "empty command": ("[workers.a]\ncommand = ' '\n", [(2, ["command", "empty"])]),
    "empty list": ("[workers.a]\ncommand = []\n", [(2, ["command", "empty"])]),
    "no program": ("[workers.a]\ncommand = ['', 'x']\n", [(2, ["command", "program"])]),
    "command is a number": ("[workers.a]\ncommand = 3\n", [(2, ["command", "list of words", "3"])]),
    "word is a table": (
        "[workers.a]\ncommand = [\n 'x',\n {},\n]\n",
        [(4, ["command[1]", "text", "a table"])],
    ),
    "open quote": ('[workers.a]\ncommand = "x \'y"\n', [(2, ["command", "no closing quotation"])]),
    "NUL in a command": ('[workers.a]\ncommand = ["a\\u0000b"]\n', [(2, ["command[0]", "NUL"])]),
    "shell with a list": (
        "[workers.a]\nshell = true\ncommand = ['x']\n",
        [(3, ["command", "text", "shell = true"])],
    ),
    "misspelt key": (
        "[workers.api]\ncomand = 'x'\n",
        [(2, ["unknown key 'comand' in worker 'api'; did you mean 'command'?"])],
    ),
    "key of another supervisor": (OK + "stopwaitsecs = 3\n", [(3, ["'stop.grace'"])]),
    "old word": (OK + "stop_timeout = 3\n", [(3, ["did you mean 'stop.grace'?"])]),
    "strange key": (OK + "zzzqqq = 3\n", [(3, ["unknown key 'zzzqqq' in worker 'a'."])]),
    "misspelt key inside": (
        OK + "stop = { graze = 3 }\n",
        [(3, ["unknown key 'graze' in stop of worker 'a'; did you mean 'grace'?"])],
    ),
    "misspelt key in the supervisor": ("[supervisor]\nnme = 'x'\n" + OK, [(2, ["'name'"])]),
    "bad name": ("[workers.'a b']\ncommand = 'x'\n", [(1, ["'a b'", "letters"])]),
    "dotted name": ("[workers.'a.2']\ncommand = 'x'\n", [(1, ["'a.2'", "letters"])]),
    "companion's name": ("[workers.'@pump']\ncommand = 'x'\n", [(1, ["'@pump'", "letters"])]),
    "case twins": (OK + "[workers.A]\ncommand = 'x'\n", [(3, ["'a' and 'A'", "case"])]),
    "restart": (OK + "restart = 'maybe'\n", [(3, ["'no', 'on-failure', 'always'", "'maybe'"])]),
    "restart is false": (OK + "restart = false\n", [(3, ["restart", "'no'", "false"])]),
    "replicas too many": (OK + "replicas = 1001\n", [(3, ["replicas", "0 to 1000", "1001"])]),
    "replicas negative": (OK + "replicas = -1\n", [(3, ["replicas", "-1"])]),
    "replicas true": (OK + "replicas = true\n", [(3, ["replicas", "whole number", "true"])]),
    "replicas text": (OK + "replicas = '2'\n", [(3, ["replicas", "whole number", "'2'"])]),
    "replicas half": (OK + "replicas = 1.5\n", [(3, ["replicas", "1.5"])]),
    "enabled text": (OK + "enabled = 'yes'\n", [(3, ["enabled", "true or false", "'yes'"])]),
    "duration word": (OK + "stable_after = 'soon'\n", [(3, ["stable_after", "'30s'", "'soon'"])]),
    "duration unit": (OK + "stable_after = '3 weeks'\n", [(3, ["stable_after", "duration"])]),
    "duration NaN": (OK + "stable_after = nan\n", [(3, ["stable_after", "0s to 365d", "nan"])]),
    "duration inf": (OK + "stable_after = inf\n", [(3, ["stable_after", "inf"])]),
    "duration negative": (OK + "stable_after = -1\n", [(3, ["stable_after", "-1"])]),
    "duration text negative": (OK + "stable_after = '-1s'\n", [(3, ["stable_after"])]),
    "duration without unit": (OK + "stable_after = '30'\n", [(3, ["stable_after", "'30'"])]),
    "grace too long": (OK + "stop.grace = '2d'\n", [(3, ["stop.grace", "0s to 1d"])]),
    "jitter": (OK + "backoff.jitter = 1.1\n", [(3, ["backoff.jitter", "0 to 1", "1.1"])]),
    "base beyond max": (OK + "backoff.base = '9m'\n", [(3, ["backoff", "base", "max"])]),
    "size unit": (OK + "logs.max_size = '10M'\n", [(3, ["logs.max_size", "'10MB'", "'10M'"])]),
    "size small": (OK + "logs.max_size = 10\n", [(3, ["logs.max_size", "1000 to"])]),
    "size fraction": (OK + "logs.max_size = 1e6\n", [(3, ["logs.max_size"])]),
    "log mode": (OK + "logs.mode = 'syslog'\n", [(3, ["logs.mode", "'pump', 'file'"])]),
    "overflow": (OK + "logs.overflow = 'wait'\n", [(3, ["logs.overflow", "'block', 'drop'"])]),
    "signal": (OK + "stop.signal = 'SIGFOO'\n", [(3, ["stop.signal", "'SIGFOO'"])]),
    "signal that cannot end": (OK + "stop.signal = 'STOP'\n", [(3, ["stop.signal", "end"])]),
    "signal number": (OK + "stop.signal = 99\n", [(3, ["stop.signal", "99"])]),
    "umask number": (OK + "umask = 22\n", [(3, ["umask", "octal", "'022'"])]),
    "umask digits": (OK + "umask = '89'\n", [(3, ["umask", "octal"])]),
    "user": (OK + "user = 'a b'\n", [(3, ["user", "name or a number"])]),
    "group negative": (OK + "group = -1\n", [(3, ["group", "-1"])]),
    "exit code": (OK + "success_exit_codes = [0, 256]\n", [(3, ["success_exit_codes[1]", "255"])]),
    "exit codes empty": (OK + "success_exit_codes = []\n", [(3, ["success_exit_codes", "[0]"])]),
    "variable name": (OK + "environment = { 'A=B' = 'x' }\n", [(3, ["environment.A=B", "name"])]),
    "variable value": (OK + "environment = { A = 1.5 }\n", [(3, ["environment.A", "quotes"])]),
    "uphold's own variable": (
        OK + "environment = { UPHOLD_NONCE = 'x' }\n",
        [(3, ["UPHOLD_NONCE", "uphold itself"])],
    ),
    "passed name": (OK + "pass_environment = ['A', '*B']\n", [(3, ["pass_environment[1]"])]),
    "tilde": (OK + "working_dir = '~/x'\n", [(3, ["working_dir", "'~'", "${HOME}"])]),
    "env_file missing": (OK + "env_file = 'no.env'\n", [(3, ["env_file", "does not exist"])]),
    "env_file missing by default": (
        "[defaults]\nenv_file = 'no.env'\n" + OK + "[workers.b]\ncommand = 'x'\n",
        [(2, ["[defaults]", "env_file", "does not exist"])],
    ),
    "wrong default told once": (
        "[defaults]\nreplicas = -1\n" + OK + "[workers.b]\ncommand = 'x'\n",
        [(2, ["[defaults]", "replicas"])],
    ),
    "depends on nobody": (
        "[workers.cache]\ncommand = 'x'\n" + OK + "depends_on = ['cahce']\n",
        [(5, ["'a' comes after 'cahce'", "did you mean 'cache'?"])],
    ),
    "depends on itself": (OK + "depends_on = { a = 'started' }\n", [(3, ["itself"])]),
    "circle": (
        OK + "depends_on = ['b']\n[workers.b]\ncommand = 'x'\ndepends_on = ['a']\n",
        [(3, ["a → b → a"])],
    ),
    "need unknown": (
        "[workers.b]\ncommand = 'x'\n" + OK + "depends_on.b = 'up'\n",
        [(5, ["depends_on.b", "'started'", "'up'"])],
    ),
    "needs are text": (OK + "depends_on = 'b'\n", [(3, ["depends_on", "list of workers"])]),
    "ready by nothing": (OK + "ready = {}\n", [(3, ["ready", "no way to ask", "notify"])]),
    "ready by two": (
        OK + "ready = { tcp = 80, fd = 4 }\n",
        [(3, ["ready", "tcp and fd", "choose one"])],
    ),
    "live by log": (OK + "live = { log = 'up' }\n", [(3, ["unknown key 'log'", "live"])]),
    "no address": (OK + "live.tcp = 'db'\n", [(3, ["live.tcp", "host:port"])]),
    "no URL": (OK + "ready.http = 'ftp://x/'\n", [(3, ["ready.http", "http://"])]),
    "no pattern": (OK + "ready.log = '('\n", [(3, ["ready.log", "no regular expression"])]),
    "beats that are late": (
        OK + "heartbeat.on_stale = 'kill'\n",
        [(3, ["heartbeat.on_stale", "'degrade'", "'restart'"])],
    ),
    "python": ("[workers.a]\npython = 'x.Y'\n", [(2, ["python", "'package.module:Class'"])]),
    "python, spaces": ("[workers.a]\npython = 'x: Y'\n", [(2, ["'package.module:Class'"])]),
    "python and command": (OK + "python = 'x:Y'\n", [(1, ["both command and python"])]),
    "python and command by default": (
        "[defaults]\ncommand = 'x'\npython = 'x:Y'\n[workers.a]\n",
        [(1, ["[defaults]", "both command and python"])],
    ),
    "python in a shell": (
        "[workers.a]\npython = 'x:Y'\nshell = true\n",
        [(3, ["shell", "a Python class needs no shell"])],
    ),
    "memory": (OK + "limits.memory = '1KB'\n", [(3, ["limits.memory", "size", "'1KB'"])]),
    "cpu": (OK + "limits.cpu = 0\n", [(3, ["limits.cpu", "from 0.01", "0"])]),
    "mcp": ("[workers.a]\nmcp = {}\n", [(2, ["'mcp'", "later version"])]),
    "remote with a command": (
        "[workers.a]\nremote = true\ncommand = 'x'\n",
        [(3, ["command", "remote = true"])],
    ),
    "remote with a limit": (
        "[workers.a]\nremote = true\nlimits = { memory = '1GB' }\n",
        [(3, ["limits", "remote = true"])],
    ),
    "remote to be restarted": (
        "[workers.a]\nremote = true\nheartbeat = { on_stale = 'restart' }\n",
        [(3, ["heartbeat", "runs elsewhere"])],
    ),
    "remote, or not": ("[workers.a]\nremote = 3\n", [(2, ["remote", "true or false"])]),
    "nice": (OK + "limits = { nice = 20 }\n", [(3, ["limits.nice", "-20 to 19"])]),
    "unset variable": (
        OK + "team = '${TEAM_NAME}'\n",
        [(3, ["workers.a.team", "TEAM_NAME is not set", "${TEAM_NAME:default}"])],
    ),
    "two unset variables": (
        "[workers.a]\ncommand = [\n'${P}',\n'${Q}']\n",
        [(3, ["command[0]", "P is"]), (4, ["command[1]", "Q is"])],
    ),
    "open brace": (OK + "team = '${X'\n", [(3, ["'${'", "'$${'"])]),
    "date": (OK + "team = 2020-01-01\n", [(3, ["team", "a date"])]),
    "on_exit": ("[supervisor]\non_exit = 'x'\n" + OK, [(2, ["on_exit", "'stop', 'keep'"])]),
    "reconcile_every": (
        "[supervisor]\nreconcile_every = '1ms'\n" + OK,
        [(2, ["reconcile_every", "100ms to 1d"])],
    ),
    "not UTF-8": (b"[workers.a]\ncommand = '\xff'\n", [(None, ["not UTF-8", "line 2"])]),
}

BAD_YAML = {
    "open list": ("workers:\n  a: [1\n", [(2, ["not valid YAML"])]),
    "tab": ("workers:\n\ta: 1\n", [(2, ["not valid YAML"])]),
    "control character": ("workers:\n  a: \x07\n", [(2, ["not valid YAML", "control"])]),
    "same key twice": (
        "workers:\n  a:\n    command: x\n    command: y\n",
        [(4, ["'command'", "twice"])],
    ),
    "same worker twice": (
        "workers:\n  a:\n    command: x\n  a:\n    command: y\n",
        [(4, ["'a'", "twice"])],
    ),
    "tag": ("workers:\n  a:\n    command: !!python/object:os.x y\n", [(3, ["tags"])]),
    "two documents": ("workers:\n---\na: 1\n", [(2, ["one document"])]),
    "list at the top": ("- a\n", [(1, ["table of keys"])]),
    "empty": ("# nothing\n", [(1, ["empty"])]),
    "unknown alias": ("workers:\n  a: *b\n", [(2, ["'&b'"])]),
    "alias of itself": ("workers: &w\n  a: *w\n", [(2, ["'&w'"])]),
    "key is a list": ("workers:\n  ? [a]\n  : 1\n", [(2, ["key must be plain text"])]),
    "merge of text": ("workers:\n  a:\n    <<: x\n    command: y\n", [(3, ["'<<'"])]),
    "deep": ("a: " + "[" * 5000, [(1, ["nested too deeply"])]),
    "yes is text": (
        "workers:\n  a:\n    command: x\n    enabled: yes\n",
        [(4, ["enabled", "true or false", "'yes'"])],
    ),
    "word in a list": (
        "workers:\n  a:\n    command:\n      - x\n      - 1.5\n",
        [(5, ["command[1]", "text", "1.5"])],
    ),
    "nothing": ("workers:\n  a:\n    command:\n", [(3, ["command", "empty"])]),
}


@pytest.mark.accepts("P12", "C-016", "E-17", "T18")
@pytest.mark.parametrize("name", BAD_TOML)
def test_what_is_wrong_in_toml_is_named_with_its_line(tmp_path, name):
    text, expected = BAD_TOML[name]
    check(problems(tmp_path, text), "uphold.toml", expected)


@pytest.mark.accepts("P12", "C-134", "T18")
@pytest.mark.parametrize("name", BAD_YAML)
def test_what_is_wrong_in_yaml_is_named_with_its_line(tmp_path, name):
    text, expected = BAD_YAML[name]
    check(problems(tmp_path, text, "uphold.yaml"), "uphold.yaml", expected)


def check(found, file, expected):
    assert len(found) == len(expected), found
    for (at, text), (line, words) in zip(found, expected, strict=True):
        assert at == (file if line is None else f"{file}:{line}"), found
        for word in words:
            assert word in text
        assert text.endswith((".", "?"))


@pytest.mark.accepts("P12")
def test_five_mistakes_are_five_problems_in_the_order_of_the_file(tmp_path):
    text = """
[supervisor]
on_exit = "leave"

[workers.api]
command = "serve"
replicas = "many"
depends_on = ["db"]

[workers.job]
comand = "run"
restart = "${WHEN}"
"""
    found = problems(tmp_path, text)
    assert [at for at, _ in found] == [f"uphold.toml:{line}" for line in (3, 7, 8, 11, 12)]


@pytest.mark.accepts("P12", "C-015")
def test_a_missing_file_is_an_error_with_its_own_code(tmp_path):
    with pytest.raises(ConfigInvalid) as caught:
        load(tmp_path / "uphold.toml", environ={})
    assert caught.value.code == "UPH_CONFIG_MISSING"
    assert caught.value.exit_code == 6
    assert "does not exist" in caught.value.problems[0].text


@pytest.mark.accepts("P12")
def test_folders_pipes_and_giants_are_refused(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "giant.toml").write_text("#" * (4 * 1024 * 1024 + 1))
    for name, words in (("folder", "is a folder"), ("pipe", "regular"), ("giant", "4 MiB")):
        found = examine(tmp_path / f"{name}.toml", environ={})
        assert found.settings is None
        assert words in found.problems[0].text


def test_an_unknown_ending_is_refused(tmp_path):
    assert ".toml, .yaml or .yml" in problems(tmp_path, OK, "uphold.conf")[0][1]


def test_files_below_the_current_folder_are_named_shortly(tmp_path, monkeypatch):
    (tmp_path / "uphold.toml").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    for given_path in ("uphold.toml", tmp_path / "uphold.toml"):
        assert examine(given_path, environ={}).problems[0].at == "uphold.toml:1"


@pytest.mark.accepts("P12")
def test_only_the_uphold_part_of_an_applications_file_is_read(tmp_path):
    text = "[app]\nkey = '${NOT_OURS}'\n[uphold.workers.a]\ncommand = 'x'\nreplicas = -1\n"
    assert problems(tmp_path, text) == [
        (
            "uphold.toml:5",
            "worker 'a': replicas must be a whole number from 0 to 1000; it is -1.",
        )
    ]


WHOLE_TOML = """
[supervisor]
name = "orion"
reconcile_every = 10
heartbeat_every = "1m30s"
on_exit = "keep"

[defaults]
stop = { grace = "5s" }
environment = { LEVEL = "info", SHARED = "1" }
logs.keep = 2

[workers.db]
command = "db --port 5432 'two words'"

[workers.api]
command = ["serve", 8001]
working_dir = "sub/../app"
user = "nobody"
group = 1000
umask = "027"
environment = { LEVEL = "debug", N = 3, ON = true }
clear_environment = true
pass_environment = ["LANG", "AWS_*"]
enabled = false
quarantined = true
autostart = false
replicas = 3
team = "web"
essential = true
restart = "on-failure"
backoff = { first = "500ms", base = "2s", max = "1h", jitter = 0 }
stable_after = "2m"
max_restarts = "unlimited"
success_exit_codes = [0, 3]
stop = { signal = "SIGINT", command = "stop it" }
depends_on = { db = "started" }
limits = { nofile = 4096, nice = -5 }
logs = { mode = "file", max_size = "1MiB", compress = false, split = true, overflow = "drop" }
labels = { tier = "front" }

[workers.line]
command = "echo $$HOME | cat"
shell = true
"""

WHOLE_YAML = """
supervisor: {name: orion, reconcile_every: 10, heartbeat_every: 1m30s, on_exit: keep}
defaults:
  stop: {grace: 5s}
  environment: {LEVEL: info, SHARED: "1"}
  logs: {keep: 2}
workers:
  db:
    command: db --port 5432 'two words'
  api:
    command: [serve, 8001]
    working_dir: sub/../app
    user: nobody
    group: 1000
    umask: 027
    environment: {LEVEL: debug, N: 3, ON: true}
    clear_environment: true
    pass_environment: [LANG, AWS_*]
    enabled: false
    quarantined: true
    autostart: false
    replicas: 3
    team: web
    essential: true
    restart: on-failure
    backoff: {first: 500ms, base: 2s, max: 1h, jitter: 0}
    stable_after: 2m
    max_restarts: unlimited
    success_exit_codes: [0, 3]
    stop: {signal: SIGINT, command: stop it}
    depends_on: [db]
    limits: {nofile: 4096, nice: -5}
    logs: {mode: file, max_size: 1MiB, compress: false, split: true, overflow: drop}
    labels: {tier: front}
  line:
    command: echo $$HOME | cat
    shell: true
"""


def test_every_key_arrives_in_the_settings(tmp_path):
    (tmp_path / "uphold.toml").write_text(WHOLE_TOML)
    found = load(tmp_path / "uphold.toml", environ={})
    assert [spec.name for spec in found.workers] == ["db", "api", "line"]
    db, api, line = found.workers
    assert db.command == ("db", "--port", "5432", "two words")
    assert db.working_dir == str(tmp_path)
    assert db.stop == StopRule(grace=5.0)
    assert api.command == ("serve", "8001")
    assert api.working_dir == str(tmp_path / "app")
    assert (api.user, api.group, api.umask) == ("nobody", "1000", 0o027)
    assert api.environment == (("LEVEL", "debug"), ("N", "3"), ("ON", "true"), ("SHARED", "1"))
    assert api.clear_environment
    assert api.pass_environment == ("LANG", "AWS_*")
    assert (api.enabled, api.quarantined, api.autostart) == (False, True, False)
    assert (api.replicas, api.team, api.essential) == (3, "web", True)
    assert api.restart is RestartPolicy.ON_FAILURE
    assert api.backoff == Backoff(first=0.5, base=2.0, max=3600.0, jitter=0.0)
    assert (api.stable_after, api.max_restarts) == (120.0, None)
    assert api.success_exit_codes == (0, 3)
    assert api.stop == StopRule(signal="INT", grace=5.0, command=("stop", "it"))
    assert api.depends_on == (("db", Need.STARTED),)
    assert api.limits == Limits(nofile=4096, nice=-5)
    assert api.logs == Logs(
        mode="file", max_size=2**20, keep=2, compress=False, split=True, overflow="drop"
    )
    assert api.labels == (("tier", "front"),)
    assert (line.command, line.shell) == (("echo $HOME | cat",), True)
    assert (found.supervisor.name, found.supervisor.on_exit) == ("orion", "keep")
    assert (found.supervisor.reconcile_every, found.supervisor.heartbeat_every) == (10.0, 90.0)
    assert found.source == str(tmp_path / "uphold.toml")


@pytest.mark.accepts("C-134", "B-44")
def test_the_same_configuration_means_the_same_in_both_languages(tmp_path):
    (tmp_path / "uphold.toml").write_text(WHOLE_TOML)
    (tmp_path / "uphold.yaml").write_text(WHOLE_YAML)
    toml = load(tmp_path / "uphold.toml", environ={})
    yaml = load(tmp_path / "uphold.yaml", environ={})
    assert toml.workers == yaml.workers
    assert toml.supervisor == yaml.supervisor
    assert repr(toml.workers) == repr(yaml.workers)
    assert toml == load(tmp_path / "uphold.toml", environ={})


@pytest.mark.accepts("E-17", "C-155")
def test_variables_come_from_the_environment_then_from_the_env_file_beside(tmp_path):
    (tmp_path / ".env").write_text("WHO=file\nONLY=file\nCOUNT=2\n")
    (tmp_path / "uphold.toml").write_text(
        "[workers.a]\ncommand = ['${WHO}', '${ONLY}', '${NONE:de fault}', '$${RAW}', '${TWICE}']\n"
        "replicas = '${COUNT}'\nstable_after = '${WAIT:90}'\nenabled = '${ON:false}'\n"
    )
    [spec] = load(tmp_path / "uphold.toml", environ={"WHO": "process", "TWICE": "${WHO}"}).workers
    assert spec.command == ("process", "file", "de fault", "${RAW}", "${WHO}")
    assert (spec.replicas, spec.stable_after, spec.enabled) == (2, 90.0, False)


@pytest.mark.accepts("E-17")
def test_mistakes_in_env_files_have_their_own_file_and_line(tmp_path):
    (tmp_path / ".env").write_text("A=1\nnonsense\n")
    (tmp_path / "more.env").write_text("\n\nB='open\n")
    found = problems(tmp_path, OK + "env_file = 'more.env'\n")
    assert [at for at, _ in found] == [".env:2", "more.env:3"]


def test_a_folder_called_dot_env_is_no_concern(tmp_path):
    (tmp_path / ".env").mkdir()
    assert problems(tmp_path, OK) == []


@pytest.mark.accepts("E-18", "S43")
def test_secrets_are_collected_and_never_shown_in_problems(tmp_path):
    (tmp_path / ".env").write_text("DB_PASSWORD=hunter2hunter2\nOPAQUE=4f9a0c77de\n")
    (tmp_path / "w.env").write_text("API_TOKEN=tok-123456\nMODE=production\n")
    (tmp_path / "uphold.toml").write_text(
        "[workers.a]\ncommand = ['run', '--secret', 'literal-secret', '${OPAQUE}']\n"
        "env_file = 'w.env'\nteam = '${TEAM}'\n"
        "environment = { DB = 'pg://u:${DB_PASSWORD}@h/db', SESSION_KEY = 'abcdef' }\n"
    )
    environ = {"TEAM": "team-42"}
    found = load(tmp_path / "uphold.toml", environ=environ)
    assert set(found.secrets) == {
        "hunter2hunter2", "4f9a0c77de", "tok-123456", "literal-secret", "abcdef",
    }  # fmt: skip
    wrong = OK + "replicas = '${DB_PASSWORD}'\nuser = 'x ${OPAQUE}'\n"
    texts = " ".join(text for _, text in problems(tmp_path, wrong))
    assert "'${DB_PASSWORD}'" in texts
    assert "hunter2" not in texts
    assert "4f9a0c" not in texts


@pytest.mark.accepts("B-27")
def test_a_changed_env_file_changes_the_settings(tmp_path):
    (tmp_path / "uphold.toml").write_text(OK + "env_file = 'w.env'\n")
    (tmp_path / "w.env").write_text("A=1\n")
    before = load(tmp_path / "uphold.toml", environ={})
    (tmp_path / "w.env").write_text("A=2\n")
    after = load(tmp_path / "uphold.toml", environ={})
    assert before.workers != after.workers


def test_a_remote_worker_is_its_heartbeats_and_little_more(tmp_path):
    (tmp_path / "uphold.toml").write_text(
        "[defaults]\ncommand = 'x'\nlimits.nofile = 64\nheartbeat.stale_after = '1m'\n"
        "team = 'all'\ndepends_on = ['a']\n"
        "[workers.a]\nremote = true\n"
        "[workers.b]\nremote = true\nteam = 'b'\nheartbeat = { file = 'b.json' }\n"
        "[workers.c]\nremote = false\n"
    )
    a, b, c = load(tmp_path / "uphold.toml", environ={}).workers
    assert (a.kind, a.command, a.limits, a.team) == (Kind.REMOTE, (), Limits(), "all")
    assert a.heartbeat == Heartbeat(stale_after=60.0)
    assert b.heartbeat == Heartbeat(stale_after=60.0, file=str(tmp_path / "b.json"))
    assert (b.team, b.depends_on) == ("b", (("a", Need.STARTED),))
    assert (c.kind, c.command) == (Kind.PROCESS, ("x",))
    (tmp_path / "uphold.toml").write_text("[defaults]\nremote = true\n[workers.a]\n")
    (a,) = load(tmp_path / "uphold.toml", environ={}).workers
    assert a.remote
    assert a.heartbeat == Heartbeat()


def test_a_thousand_workers_share_what_they_have_in_common(tmp_path):
    one = "[workers.w{0}]\ncommand = 'python3 -m app'\nstop.grace = '5s'\nlogs.keep = 1\n"
    one += "environment = {{ LEVEL = 'info' }}\nbackoff.base = 2\nlabels.tier = 'x'\n"
    (tmp_path / "uphold.toml").write_text("".join(one.format(number) for number in range(1000)))
    workers = load(tmp_path / "uphold.toml", environ={}).workers
    assert len(workers) == 1000
    for key in ("command", "stop", "logs", "environment", "backoff", "labels", "working_dir"):
        assert len({id(getattr(spec, key)) for spec in workers}) == 1, key


NASTY = {
    "toml dots": ("toml", "a." * 50_000 + "a = 1"),
    "toml header": ("toml", "[" + "a." * 50_000 + "a]"),
    "toml brackets": ("toml", "a = " + "[" * 100_000),
    "toml braces": ("toml", "a = " + "{a=" * 33_000),
    "toml quotes": ("toml", "a = " + '"' * 100_000),
    "toml variables": ("toml", "a = '" + "${a:" * 25_000 + "'"),
    "toml unknown keys": ("toml", "".join(f"[workers.a{n}]\nx{n}=1\n" for n in range(4000))),
    "toml circle": (
        "toml",
        "".join(f"[workers.a{n}]\ncommand='x'\ndepends_on=['a{n + 1}']\n" for n in range(2000)),
    ),
    "toml one command": ("toml", '[workers.a]\ncommand = "' + "'a' " * 25_000 + "'" + '"'),
    "yaml brackets": ("yaml", "[" * 100_000),
    "yaml dashes": ("yaml", "- " * 50_000),
    "yaml questions": ("yaml", "? " * 50_000),
    "yaml anchors": ("yaml", "".join(f"a{n}: &a{n} 1\n" for n in range(8000))),
    "yaml bomb": (
        "yaml",
        "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    ),
    "yaml merge bomb": (
        "yaml",
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 30)}]}}\n" for n in range(1, 9)),
    ),
}


@pytest.mark.accepts("S45", "T18")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", NASTY)
def test_nasty_files_are_refused_without_much_work(tmp_path, name):
    ending, text = NASTY[name]
    assert problems(tmp_path, text, f"uphold.{ending}") != []


PIECES = strategies.sampled_from(
    [
        "[workers.a]\n", "[[workers]]\n", "[defaults]\n", "command = ", "'x'\n", "'''x\n'''\n",
        "= ", "[1, {a=1}]\n", "{b = 'c'}\n", "depends_on = ['a']\n", "stop.grace", "nan\n", "\n",
        "${A}", "workers:\n", "  a:\n", "    command: x\n", "&x ", "*x ", "- ", "<<: ", "!!str ",
        "replicas", ": ", "1e999\n", '"\\u0000"\n', "#", ".", "\t", "'", '"', "{", "}", "[", "]",
    ]
)  # fmt: skip


@pytest.mark.accepts("T18")
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=strategies.one_of(
        strategies.binary(max_size=300),
        strategies.text(max_size=200).map(lambda text: text.encode(errors="replace")),
        strategies.lists(PIECES, max_size=25).map(lambda pieces: "".join(pieces).encode()),
    ),
    ending=strategies.sampled_from(["toml", "yaml"]),
)
def test_no_content_raises_anything_but_config_invalid(tmp_path, content, ending):
    path = tmp_path / f"uphold.{ending}"
    path.write_bytes(content)
    problems: list[Problem] = []
    try:
        assert load(path, environ={"A": "x"}).source == str(path)
    except ConfigInvalid as cause:
        problems = cause.problems
        if not problems:
            raise
    for problem in problems:
        at, _, line = problem.at.rpartition(":")
        if at.endswith(ending):
            assert 1 <= int(line) <= content.count(b"\n") + content.count(b"\r") + 1
