from __future__ import annotations

import asyncio

import pytest

from uphold.diagnose.reports import gather, render
from uphold.errors import HostFailure


async def process():
    return {"running": True, "pid": 42, "uptime": 3.5}


async def away():
    raise HostFailure("the share is away.", code="UPH_SHARE_UNREACHABLE")


async def broken():
    raise KeyError("a bug")


async def log():
    return {"lines": ["one", "two \x1b[31m"], "path": None}


def report(**sections):
    return asyncio.run(
        gather(sections, worker="OrionMX", supervisor="orion", wall=0.0, label="slow")
    )


@pytest.mark.accepts("C-095", "B-68")
def test_a_section_that_fails_says_why_and_hides_no_other():
    found = report(process=process, disk=away, paths=broken)
    assert found["sections"]["process"] == {"error": None, **asyncio.run(process())}
    assert found["sections"]["disk"] == {"error": "the share is away."}
    assert "a bug" in found["sections"]["paths"]["error"]
    assert not found["ok"]
    assert (found["label"], found["worker_id"]) == ("slow", "OrionMX")


def test_it_reads_well_and_nothing_in_it_reaches_the_terminal():
    text = render(report(process=process, disk=away, log_tail=log))
    assert text == [
        "diagnostics of OrionMX at 1970-01-01T00:00:00.000Z, slow",
        "",
        "process",
        "  running: yes",
        "  pid: 42",
        "  uptime: 3.5",
        "",
        "disk",
        "  not available: the share is away.",
        "",
        "log tail",
        "  lines:",
        "    one",
        r"    two \x1b[31m",
        "  path: none",
    ]
