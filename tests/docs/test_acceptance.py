"""The tool that says which acceptance ids have no test."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

from docs.papers import ROOT


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("acceptance", ROOT / "tools" / "acceptance.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = load_tool()


def test_ids_are_found_where_they_are_defined_and_not_where_they_are_mentioned():
    text = (
        "- M-01 Something, see D-05.\n"
        "- C-147b More.\n"
        "- C-T01 one · C-T02 two\n"
        "A sentence about R-09.\n"
        "- Where E-03 and P8 differ.\n"
    )
    assert TOOL.listed_in(text) == ("M-01", "C-147b", "C-T01", "C-T02")


def test_quotes_are_read_from_decorators_marks_and_parameters_without_importing():
    source = """
import nothing_of_this_name

pytestmark = pytest.mark.accepts("R-01")

@pytest.mark.accepts("D-01", "P9")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.accepts("E-05"))])
def test_it(x): ...

@something.accepts("D-02")
def test_other(): ...
"""
    found = list(TOOL.quotes_in(source, "test_it.py"))
    assert sorted(quote.id for quote in found) == ["D-01", "E-05", "P9", "R-01"]
    assert found[0].where == "test_it.py:4"


def test_the_tally_tells_quoted_open_deferred_void_and_mistyped_ids_apart():
    quotes = [
        TOOL.Quote("M-01", "a.py:1"),
        TOOL.Quote("M-99", "a.py:2"),
        TOOL.Quote("P9", "a.py:3"),
    ]
    found = TOOL.tally(("M-01", "M-02", "E-19", "E-03"), quotes)
    assert found.quoted == ("M-01",)
    assert found.open == ("M-02",)
    assert found.later == ("E-19",)
    assert found.void == ("E-03",)
    assert [quote.where for quote in found.unknown] == ["a.py:2"]


def test_the_report_groups_open_ids_by_letter_and_names_what_is_deferred():
    quotes = [TOOL.Quote("M-01", "a.py:1"), TOOL.Quote("P9", "a.py:3")]
    found = TOOL.tally(("M-01", "M-02", "C-10", "C-9", "C-T01", "E-19"), quotes)
    lines = list(TOOL.report(found, quotes, "a list"))
    assert "6 ids: 1 quoted by a test, 4 without one, 1 deferred, 0 void." in lines
    assert "  C (3 of 3) C-9 C-10 C-T01" in lines
    assert "  M (1 of 2) M-02" in lines
    deferred = next(line for line in lines if line.startswith("Deferred"))
    assert " E-19 P19 S14 " in deferred


@pytest.mark.skipif(not TOOL.OUTSIDE.is_file(), reason="the list is not beside this checkout")
def test_the_committed_ids_are_those_of_the_list_beside_the_checkout():
    outside = TOOL.listed_in(TOOL.OUTSIDE.read_text(encoding="utf-8"))
    assert sorted(TOOL.committed_ids()) == sorted(outside)


@pytest.mark.accepts("R-18", "B-97")
def test_every_acceptance_id_that_a_test_quotes_is_in_the_list():
    quotes = tuple(TOOL.quotes_under(ROOT / folder for folder in TOOL.QUOTING))
    assert quotes
    assert TOOL.tally(TOOL.committed_ids(), quotes).unknown == ()


def test_each_committed_id_stands_once_and_in_order():
    ids = TOOL.committed_ids()
    assert len(ids) == len(set(ids))
    assert [each for group in TOOL.by_letter(ids).values() for each in group] == list(ids)


def test_the_tool_prints_the_counts_and_always_succeeds():
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "acceptance.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert " ids: " in ran.stdout
    assert "Deferred" in ran.stdout
