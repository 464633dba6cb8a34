"""Signatures: whatever is changed is noticed, and the recipes of the manual give the same."""

from __future__ import annotations

import os
import subprocess
import sys
from shutil import which

import pytest

from docs.papers import ROOT
from uphold.core.specs import SenderSpec
from uphold.host.clock import MachineClock
from uphold.inbox.flags import Flag, Rules, read_flag
from uphold.inbox.signing import Doubt, canonical_bytes, sender_of, sign

CONSOLE = SenderSpec(name="console", key="a key of sixteen letters or more")
OTHER = SenderSpec(name="other", key="another key of sixteen letters")
CONTENT = {
    "task_id": "t1",
    "handler": "rollback_code",
    "label": None,
    "worker_id": "web",
    "params": {"commits_back": 2},
    "issued_at": "2026-02-05T14:00:00Z",
    "expires_at": "2026-02-05T14:15:00Z",
}
SIGNED = {**CONTENT, "signature": sign(CONTENT, CONSOLE.name, CONSOLE.key)}


def test_what_is_signed_is_written_in_one_certain_way():
    assert canonical_bytes({"b": "é", "a": {"d": 1, "c": None}}, "me") == (
        b'uphold-flag-1\n{"a":{"c":null,"d":1},"b":"\\u00e9","sender":"me"}'
    )


def test_a_signature_names_its_sender_and_does_not_depend_on_the_order_of_keys():
    assert sender_of(SIGNED, (OTHER, CONSOLE)) == CONSOLE
    assert sender_of(dict(reversed(SIGNED.items())), (CONSOLE,)) == CONSOLE
    assert SIGNED["signature"] == (
        "console:f10b53382a1cedcb38b057d8149c2151aa2392ea840222d90d9dc59ff5c83218"
    )


def test_nobody_signed_what_has_no_signature():
    assert sender_of(CONTENT, (CONSOLE,)) is None
    assert sender_of({**CONTENT, "signature": None}, (CONSOLE,)) is None


@pytest.mark.accepts("S10")
@pytest.mark.parametrize(
    "change",
    [{"task_id": "t2"}, {"handler": "update_code"}, {"label": "x"}, {"worker_id": "api"},
     {"params": {"commits_back": 3}}, {"params": {}}, {"issued_at": "2026-02-05T14:00:01Z"},
     {"expires_at": "2036-02-05T14:15:00Z"}, {"extra": 1}],
)  # fmt: skip
def test_every_change_of_a_signed_flag_is_noticed(change):
    assert isinstance(sender_of({**SIGNED, **change}, (CONSOLE, OTHER)), Doubt)
    fewer = {key: value for key, value in SIGNED.items() if key not in change}
    if fewer != SIGNED:
        assert isinstance(sender_of(fewer, (CONSOLE, OTHER)), Doubt)


@pytest.mark.accepts("S10")
def test_the_name_of_the_sender_is_signed_too():
    taken = SIGNED["signature"].replace("console", "other")
    twin = SenderSpec(name="other", key=CONSOLE.key)
    assert isinstance(sender_of({**SIGNED, "signature": taken}, (CONSOLE, twin)), Doubt)


@pytest.mark.accepts("S10")
@pytest.mark.parametrize(
    "claim",
    ["", "console", "console:", "console:abc", ":" + "0" * 64, "console:" + "0" * 64,
     "console:" + "é" * 64, "console:" + "A" * 64, "nobody:" + "0" * 64, "console:" + "0" * 65,
     SIGNED["signature"] + "\n", SIGNED["signature"].upper(), 7, True, ["x"], {}],
)  # fmt: skip
def test_no_other_signature_is_believed_and_no_reason_tells_the_right_one(claim):
    found = sender_of({**CONTENT, "signature": claim}, (CONSOLE, OTHER))
    assert isinstance(found, Doubt)
    assert CONSOLE.key not in found.reason
    assert SIGNED["signature"][8:] not in found.reason


def recipe(language: str) -> str:
    """Take a recipe out of the manual."""
    page = (ROOT / "docs/flags.md").read_text()
    return page.split(f"```{language}\n", 1)[1].split("```", 1)[0]


@pytest.mark.accepts("S10")
@pytest.mark.parametrize("language", ["python", "sh"])
def test_the_recipes_of_the_manual_make_flags_that_are_believed(language, tmp_path):
    if language == "sh" and not (which("jq") and which("openssl")):
        pytest.skip("needs jq and openssl")
    command = {"python": [sys.executable, "-Ic"], "sh": ["sh", "-ec"]}[language]
    (tmp_path / "Worker_Inbox").mkdir()
    given = {**os.environ, "CONSOLE_KEY": CONSOLE.key, "SHARE_ROOT": str(tmp_path)}
    subprocess.run([*command, recipe(language)], cwd=tmp_path, env=given, check=True)
    (path,) = (tmp_path / "Worker_Inbox").iterdir()
    rules = Rules(workers=frozenset({"watcher"}), require_signature=True, senders=(CONSOLE,))
    now = MachineClock().now().wall
    found = read_flag(path.name, path.read_bytes(), rules=rules, now=now)
    assert isinstance(found, Flag), found
    assert (found.sender, found.handler) == ("console", "pause_watcher")
