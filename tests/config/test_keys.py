"""The table of keys agrees with the core's defaults and with the manual."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from uphold.config import keys
from uphold.config.loading import load
from uphold.config.places import Place, Report
from uphold.config.shapes import Table
from uphold.core.specs import (
    DeploySpec,
    InboxSpec,
    JournalSpec,
    StoreSpec,
    SupervisorSpec,
    WorkerSpec,
)

MANUAL = Path(__file__).parents[2] / "docs" / "configuration.md"
TABLES = {
    "worker": (keys.WORKER, WorkerSpec(name="x")),
    "supervisor": (keys.SUPERVISOR, SupervisorSpec(name="x")),
    "journal": (keys.JOURNAL, JournalSpec()),
    "store": (keys.STORE, StoreSpec(url="sqlite:///x")),
    "inbox": (keys.INBOX, InboxSpec(share="/x")),
    "deploy": (keys.DEPLOY, DeploySpec(repo="/x")),
    **{
        name: (table, table.build())
        for name, table in (
            ("backoff", keys.BACKOFF),
            ("stop", keys.STOP),
            ("limits", keys.LIMITS),
            ("logs", keys.LOGS),
            ("layout", keys.LAYOUT),
            ("gate", keys.GATE),
        )
    },
}


SECTIONS = (
    ("supervisor", keys.SUPERVISOR),
    ("journal", keys.JOURNAL),
    ("store", keys.STORE),
    ("inbox", keys.INBOX),
    ("deploy", keys.DEPLOY),
    ("worker", keys.WORKER),
)


def every_key():
    for section, table in SECTIONS:
        for key in table.keys:
            yield section, key.name
            if isinstance(key.kind, Table):
                yield from ((section, f"{key.name}.{inner.name}") for inner in key.kind.keys)


@pytest.mark.accepts("B-88")
@pytest.mark.parametrize("name", TABLES)
def test_defaults_in_the_table_are_those_of_the_core(name):
    table, core = TABLES[name]
    for key in table.keys:
        if key.default in (None, {}) or key.name in ("home", "working_dir", "when", "repo"):
            continue
        report = Report()
        read = key.kind.read(key.default, Place(report, (), ""))
        assert report.problems("", lambda _: 1) == []
        assert read == getattr(core, key.name), key.name


def test_keys_without_a_default_are_unset_in_the_core():
    for table, core in TABLES.values():
        for key in table.keys:
            if key.default is None and key.name not in (
                "name",
                "command",
                "env_file",
                "url",
                "share",
            ):
                assert getattr(core, key.name) is None, key.name


@pytest.mark.parametrize(("section", "name"), list(every_key()))
def test_every_key_is_in_the_manual(section, name):
    assert re.search(rf"^\| `{re.escape(name)}` \|", MANUAL.read_text(), re.MULTILINE)


def test_every_key_in_the_manual_exists():
    known = {name for _, name in every_key()}
    rows = re.findall(r"^\| `([a-z_.]+)` \|", MANUAL.read_text(), re.MULTILINE)
    assert [row for row in rows if row not in known] == []


@pytest.mark.accepts("B-46")
def test_every_example_in_the_manual_is_right(tmp_path):
    blocks = re.findall(r"^```(toml|yaml)\n(.*?)^```", MANUAL.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    for name in ("api.env", ".env.api"):
        (tmp_path / name).write_text("A=1\n")
    for number, (language, text) in enumerate(blocks):
        path = tmp_path / f"{number}.{language}"
        path.write_text(text)
        load(path, environ={"HOME": "/root", "DATABASE_URL": "x", "STATE_DIRECTORY": "/tmp/x"})


def test_keys_of_other_supervisors_lead_to_keys_that_exist():
    known = {name for _, name in every_key()}
    assert set(keys.WORKER.meant.values()) <= known
    assert not set(keys.WORKER.meant) & {name for each, name in every_key() if each == "worker"}
