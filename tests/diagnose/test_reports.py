"""Reports whose sections fail, hang and leak, one by one and all together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from uphold.diagnose.reports import SECTIONS, About, compose, render
from uphold.errors import HostFailure
from uphold.wire.codecs import decode, encode
from uphold.wire.redaction import Redactor

ABOUT = About(supervisor_id="sup", worker_id="watcher", task_id="t-1", label="spring clean")


def reader(name: str):
    async def read() -> dict[str, Any]:
        return {"it is": name}

    return read


async def fails() -> dict[str, Any]:
    raise HostFailure("the share is gone.", code="UPH_SHARE_UNREACHABLE")


async def breaks() -> dict[str, Any]:
    return {}["nothing"]


async def hangs() -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


def report(limit: float = 30.0, secrets: tuple[str, ...] = (), **readers: Any) -> dict[str, Any]:
    whole = {name: reader(name) for name in SECTIONS} | readers
    redactor = Redactor(secrets)
    return asyncio.run(compose(ABOUT, whole, wall=0.0, redactor=redactor, limit=limit))


@pytest.mark.accepts("C-T27", "C-094")
def test_a_report_has_every_section_and_says_whose_it_is():
    made = report()
    assert list(made["sections"]) == [
        "process",
        "heartbeat",
        "database",
        "paths",
        "disk",
        "log",
        "inbox",
        "audit",
    ]
    assert made["complete"] is True
    assert (made["worker_id"], made["task_id"], made["label"]) == ("watcher", "t-1", "spring clean")
    assert made["sections"]["disk"] == {"ok": True, "error": None, "content": {"it is": "disk"}}
    assert decode(dict, encode(made)) == made


@pytest.mark.accepts("C-095", "B-68")
@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("wrong", [fails, breaks, hangs])
def test_a_section_that_fails_breaks_or_hangs_hinders_no_other(name: str, wrong: Any):
    made = report(limit=0.3, **{name: wrong})
    assert made["complete"] is False
    for other, section in made["sections"].items():
        assert section["ok"] is (other != name)
    assert made["sections"][name]["error"]["message"]
    assert made["sections"][name]["content"] is None


@pytest.mark.accepts("C-095")
def test_all_of_them_together_hinder_no_report():
    made = report(limit=0.1, **dict.fromkeys(SECTIONS, hangs))
    codes = {section["error"]["code"] for section in made["sections"].values()}
    assert codes == {"UPH_DIAGNOSE_TIMEOUT"}
    nobody = asyncio.run(compose(ABOUT, {}, wall=0.0, redactor=Redactor()))
    assert all(section["ok"] is False for section in nobody["sections"].values())


@pytest.mark.accepts("S43")
def test_secrets_leave_out_wherever_they_stand():
    async def leaks() -> dict[str, Any]:
        return {"lines": ["connect mysql://me:hunter22@db/x", "the word is opensesame1"]}

    async def leaks_too() -> dict[str, Any]:
        raise HostFailure("cannot log in with opensesame1")

    made = report(secrets=("opensesame1",), log=leaks, database=leaks_too)
    assert "opensesame1" not in str(made) + render(made)
    assert "hunter22" not in str(made) + render(made)


def test_it_can_be_read_by_people():
    async def waiting() -> dict[str, Any]:
        return {"count": 1, "more": False, "files": [{"name": "a.flag", "bytes": 3}], "none": None}

    text = render(report(inbox=waiting, disk=fails))
    assert text.startswith(
        "Diagnostics of watcher at 1970-01-01T00:00:00.000Z, spring clean\n\nWorker process\n"
    )
    assert "Room on the share\n  cannot be told: the share is gone.\n" in text
    assert (
        "Waiting in the inbox\n  count: 1\n  more: no\n  files:\n    name=a.flag  bytes=3\n"
        "  none: -\n" in text
    )


def test_a_report_from_elsewhere_is_shown_without_harm():
    strange = {
        "worker_id": "\x1b[31m",
        "sections": {"new": {"content": {"a\nb": ["\x07"]}}, "x": 1},
    }
    text = render(strange)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "new\n" in text
