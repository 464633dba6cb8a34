"""The runbook is true: every order it shows is one that is obeyed, every file has its real name."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys

import pytest

from docs.papers import ROOT, SOURCE, code_blocks, page
from uphold.core.specs import InboxSpec
from uphold.inbox.flags import Flag, Rules, read_flag
from uphold.inbox.handlers import HANDLERS
from uphold.inbox.receipts import (
    heartbeat_name,
    pause_marker_name,
    receipt_content,
    watcher_heartbeat_name,
)

RUNBOOK = page("docs/runbook.md")
NOW = 1_770_300_000.0
RULES = Rules(workers=frozenset({"OrionMX"}), fallback=("OrionMX",))


def section(title: str) -> str:
    return re.split(r"^##+ ", RUNBOOK.split(f"## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def orders_in(text: str) -> list[dict[str, object]]:
    found = re.findall(r"^\{\"task_id\".*\}$", text, re.MULTILINE)
    return [json.loads(each) for each in found]


@pytest.mark.accepts("C-151")
@pytest.mark.parametrize("handler", [handler.name for handler in HANDLERS])
def test_every_order_is_shown_with_a_label_and_would_be_obeyed(handler: str):
    (shown,) = orders_in(section(f"`{handler}`"))
    assert (shown["handler"], bool(shown["label"])) == (handler, True)
    name = f"supervisor_{handler}_OrionMX.flag"
    flag = read_flag(name, json.dumps(shown).encode(), rules=RULES, now=NOW)
    assert isinstance(flag, Flag), flag
    assert (flag.handler, flag.worker_id, flag.label) == (handler, "OrionMX", shown["label"])


@pytest.mark.accepts("C-151")
def test_the_recipe_for_dropping_a_flag_makes_one(tmp_path):
    recipe = code_blocks(section("How to drop a flag"), "sh")[0]
    recipe = recipe.replace("/mnt/orion/Worker_Inbox", str(tmp_path))
    subprocess.run(["sh", "-euc", recipe], check=True)
    (path,) = tmp_path.iterdir()
    assert isinstance(read_flag(path.name, path.read_bytes(), rules=RULES, now=NOW), Flag)


def test_files_and_receipts_have_their_real_names_and_keys():
    layout = InboxSpec(share="/mnt/orion").layout
    for name in (heartbeat_name, watcher_heartbeat_name, pause_marker_name):
        assert f"`{layout.state}/{name('OrionMX')}`" in RUNBOOK
    for folder in (layout.inbox, layout.outbox, f"{layout.inbox}/rejected"):
        assert f"`{folder}/`" in RUNBOOK
    shown = json.loads(code_blocks(section("What you find afterwards"), "json")[0])
    made = {key: value for key, value in shown.items() if key != "timestamp"}
    assert list(json.loads(receipt_content(wall=NOW, **made))) == list(shown)


@pytest.mark.accepts("C-152")
@pytest.mark.parametrize("name", ["docs/runbook.md", "docs/single-pass.md"])
def test_a_pass_every_two_or_three_minutes_is_shown_for_three_schedulers(name: str):
    text = page(name)
    assert re.search(r"^\*/2 \* \* \* \* .*uphold once", text, re.MULTILINE)
    assert "OnUnitInactiveSec=2min" in text
    assert "KillMode=process" in text
    assert re.search(r"schtasks /Create .* /SC MINUTE /MO 2 .*once", text)


@pytest.mark.accepts("C-153")
@pytest.mark.parametrize(
    "words",
    [
        ("Pause", "resume", "restart", "label"),
        ("heartbeats", "00_STATE", "workers_t"),
        ("labels", "audit"),
        ("rollback of 1", "3 commits"),
        ("label", "101", "refused"),
    ],
)
def test_the_checks_before_production_are_listed(words: tuple[str, ...]):
    steps = re.findall(r"^\d+\. .*$", section("Before you rely on it"), re.MULTILINE)
    assert any(all(word in step for word in words) for step in steps), words


@pytest.mark.accepts("C-150")
@pytest.mark.parametrize(
    "name",
    [
        "cli.main",
        "daemon.serving",
        "inbox.handlers",
        "daemon.handling",
        "host.commands",
        "engine.reconciler",
        "daemon.passing",
        "daemon.beating",
        "config.loading",
    ],
)
def test_each_part_of_the_supervisor_is_a_module_of_its_own(name: str):
    assert importlib.import_module(f"uphold.{name}").__doc__


@pytest.mark.accepts("C-150", "C-156")
def test_every_module_can_be_imported_from_a_clean_start():
    names = [
        "uphold." + str(path.relative_to(SOURCE).with_suffix("")).replace("/", ".")
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name not in ("__main__.py", "__init__.py")
    ]
    program = f"import importlib\nfor name in {names}: importlib.import_module(name)\nprint('all')"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (ran.returncode, ran.stdout) == (0, "all\n"), ran.stderr
