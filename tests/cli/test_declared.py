"""Names that only the file knows, in homes without a supervisor."""

from __future__ import annotations

import asyncio
import json

import pytest

from uphold.core.overrides import Override
from uphold.host.mirrors import render
from uphold.host.proctable import boot_id
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.wire.overrides import encode_override

FILE = """
[workers.api]
command = ["sleep", "60"]
[workers.off]
command = ["sleep", "60"]
enabled = false
[workers.strange]
command = ["sleep", "60"]
quarantined = true
[workers.later]
command = ["sleep", "60"]
autostart = false
[workers.many]
command = ["sleep", "60"]
replicas = 2
"""


@pytest.fixture
def declared(home):
    (home.parent / "uphold.toml").write_text(FILE)


@pytest.fixture
def ordered(home, declared):
    """Leave a journal in which people ordered something."""

    def leave(**overrides):
        async def append():
            owner = Owner(name="orion", hostname="h", pid=1)
            journal, _ = open_journal(home / "journal.db", boot_id=boot_id(), owner=owner, now=1.0)
            texts = {name: json.dumps(each) for name, each in overrides.items()}
            await journal.append(Batch(overrides=texts))
            await journal.close()

        asyncio.run(append())

    return leave


@pytest.mark.parametrize(
    ("name", "admin", "why"),
    [
        ("api", "enabled", "not started yet"),
        ("off", "disabled", "disabled in the file"),
        ("strange", "quarantined", "quarantined until approved"),
        ("later", "enabled", "started only on request (autostart is off)"),
    ],
)
def test_what_the_file_names_is_known_before_it_ever_ran(uphold, declared, name, admin, why):
    result = uphold("status", name, "--json")
    assert result.code == 3
    (row,) = result.json["workers"]
    assert (row["slot"], row["admin"], row["state"], row["why"]) == (name, admin, "stopped", why)
    assert uphold("show", name, "--json").json["worker"]["admin"] == admin
    told = uphold("why", name)
    assert told.code == 0
    assert why in told.out


def test_the_slots_of_such_a_worker_can_be_named_too(uphold, declared):
    def slots(*names):
        return [row["slot"] for row in uphold("status", *names, "--json").json["workers"]]

    assert slots("many") == ["many", "many.2"]
    assert slots("many.2", "api", "many.2") == ["many.2", "api"]
    assert uphold("status", "many.3").code == 5


@pytest.mark.parametrize("verb", ["status", "show", "why"])
def test_a_name_that_the_file_does_not_know_either_is_told_the_nearest_one(uphold, declared, verb):
    result = uphold(verb, "laser")
    assert result.code == 5
    assert "Did you mean 'later'?" in result.err


@pytest.mark.parametrize("content", ["[workers.api", None], ids=["broken", "gone"])
def test_a_file_that_is_no_good_names_nobody(uphold, home, content):
    config = home.parent / "uphold.toml"
    config.unlink() if content is None else config.write_text(content)
    assert uphold("why", "api").code == 5


def test_a_supervisor_that_runs_knows_best(uphold, declared, supervisor):
    supervisor.fails("status", "UPH_NO_SUCH_WORKER", 5, "there is no worker 'off'.")
    assert uphold("status", "off").code == 5


@pytest.mark.parametrize(
    ("name", "override", "step"),
    [
        ("api", {}, "Next: uphold start."),
        ("api", {"held": True, "by": "ann"}, "Next: uphold start, then uphold resume api."),
        ("api", {"up": False, "by": "ann"}, "Next: uphold start, then uphold start api."),
        ("api", {"enabled": False, "by": "ann"}, "Next: uphold start, then uphold enable api."),
        ("api", {"quarantined": True}, "Next: uphold start, then uphold approve api."),
        ("off", {}, "Next: uphold start, then uphold enable off."),
        ("strange", {}, "Next: uphold start, then uphold approve strange."),
        ("later", {}, "Next: uphold start, then uphold start later."),
        ("off", {"enabled": True}, "Next: uphold start."),
        ("api", {"replicas": 0}, "Next: uphold start, then uphold scale api=1."),
        ("many.2", {"held": True}, "Next: uphold start, then uphold resume many."),
    ],
)
def test_why_names_the_step_that_brings_it_up(uphold, ordered, name, override, step):
    ordered(**({name.partition(".")[0]: override} if override else {}))
    assert step in uphold("why", name).out


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ({"held": True, "by": "bob", "authors": {"held": {"by": "ann"}}}, "paused by ann"),
        ({"up": False, "by": "bob", "authors": {"up": {"by": "ann"}}}, "stopped by ann"),
        ({"enabled": False, "by": "bob", "authors": {"up": {"by": "ann"}}}, "disabled"),
        ({"held": True, "by": "bob", "authors": {"held": None}}, "paused by bob"),
        (
            {"held": True, "by": "bob", "order": "1", "authors": {"kick": {"order": "2"}}},
            "paused by bob",
        ),
    ],
)
def test_of_several_orders_the_one_is_named_that_keeps_it_down(uphold, ordered, override, reason):
    ordered(api=override)
    assert f"api is stopped: {reason}; it stays down" in uphold("why", "api").out


def test_why_says_who_holds_it_back(uphold, ordered):
    ordered(api={"held": True, "by": "ann"})
    assert "api is stopped: paused by ann; it stays down when a supervisor starts." in (
        uphold("why", "api").out
    )


def test_what_was_ordered_is_known_from_the_mirror_where_the_journal_is_lost(
    uphold, home, declared
):
    orders = {"api": encode_override(Override(held=True, by="ada"))}
    (home / "runtime.json").write_bytes(render({"overrides": orders}))
    assert "paused by ada; it stays down" in uphold("why", "api").out
    (home / "journal.db").write_text("garbage " * 1000)
    assert "paused by ada; it stays down" in uphold("why", "api").out
