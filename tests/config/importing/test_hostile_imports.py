"""Files that nobody wrote on purpose: an import, or one sentence with a place; nothing else."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.importing.readers import READERS, import_text
from uphold.config.importing.emitting import toml_of
from uphold.config.importing.reports import NotImportable

WORDS = {
    "supervisord": [
        "[program:a]\n", "[group:g]\n", "[include]\n", "[supervisord]\n", "command=", "programs=a\n",
        "files=*\n", "%(process_num)02d", "%(ENV_X)s", "%", "numprocs=3\n", "process_name=",
        "environment=", 'A="1"', ",", "priority=1\n", "umask=022\n", "stdout_logfile_maxbytes=",
    ],
    "procfile": ["web: ", "worker:", "x", "$PORT", "${A}", "#", "'"],
    "process-compose": [
        "processes:\n", "  a:\n", "    command: x\n", "    depends_on: {a: {}}\n", "    replicas: 2\n",
        "    readiness_probe: {exec: {command: y}}\n", "    environment: [A=1]\n", "{{.PC_REPLICA_NUM}}",
        "vars: {a: b}\n", "shell: 5\n", "    entrypoint: [x]\n", "    log_configuration: {rotation: 1}\n",
        "    schedule: {cron: 5}\n", "    env_file: []\n", "    vars: [1]\n",
    ],
    "systemd": [
        "[Service]\n", "[Unit]\n", "ExecStart=", "/bin/x", "${A}", "$A", "%i", "%", "\\\n", "Restart=always\n",
        "RestartSec=1\n", "Environment=A=1\n", "LimitNOFILE=", "SuccessExitStatus=", "ExecStop=", "-", "@",
    ],
}  # fmt: skip
COMMON = [
    "²",
    "0" * 5000,
    "\n",
    " ",
    "=",
    ":",
    "1",
    "-1",
    "99999999999999999999",
    "\0",
    "é",
    "\ue000",
    '"',
    "[",
    "]",
]


@pytest.mark.parametrize("kind", READERS)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_a_file_holds_it_is_imported_or_refused(kind, data):
    text = "".join(data.draw(st.lists(st.sampled_from(WORDS[kind] + COMMON), max_size=25)))
    try:
        imported = import_text(kind, text, {".env": "A=1\n"})
    except NotImportable:
        return
    tables = tomllib.loads(toml_of(imported, source="f"))
    assert len(tables.get("workers", {})) == len(imported.workers)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("supervisord", "[program:a]\ncommand=x\na" + " " * 300_000 + "b\n"),
        ("supervisord", "[program:a]\ncommand=" + "%(here)s" * 50_000 + "\n"),
        ("procfile", "web: " + "x " * 200_000 + "\n"),
        ("process-compose", "processes: {a: {command: '" + "{{" * 200_000 + "'}}\n"),
        ("process-compose", "processes: {a: {command: '" + "${A:-" * 100_000 + "'}}\n"),
        ("systemd", "[Service]\nExecStart=/x " + "${A}" * 50_000 + "\n" + "A" * 300_000 + "=1\n"),
        ("systemd", "[Service]\nExecStart=/x\nRestartSec=" + "1" * 300_000 + "\n"),
    ],
    ids=range(7),
)
def test_long_lines_cost_in_proportion(kind, text):
    """They would take minutes, and the test its time limit, if they did not."""
    try:
        import_text(kind, text)
    except NotImportable as refusal:
        told = str(refusal)
        assert len(told) < 1000, told[:1000]
