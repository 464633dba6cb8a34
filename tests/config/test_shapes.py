from __future__ import annotations

import pytest

from uphold.config.kinds import Flag, Whole
from uphold.config.places import UNREAD, Place, Report
from uphold.config.shapes import Command, ExitCodes, Key, Needs, PassedNames, Table, TextTable
from uphold.core.specs import Need

TABLE = Table(
    (Key("on", Flag(), True, "On."), Key("many", Whole(0, 9), 1, "Many.")),
    later=frozenset({"soon"}),
    meant={"lots": "many"},
)


def read(kind, value):
    report = Report()
    result = kind.read(value, Place(report, ("key",), "it"))
    return result, [problem.text for problem in report.problems("f", lambda _: 1)]


@pytest.mark.parametrize(
    ("kind", "given", "result"),
    [
        (Command(), "a b", "a b"), (Command(), ["a", 1], ("a", "1")),
        (Command(may_be_empty=True), [], ()), (Command(may_be_empty=True), "", ()),
        (ExitCodes(), [0, 255], (0, 255)), (PassedNames(), ["A", "B_*"], ("A", "B_*")),
        (PassedNames(), [], ()), (TextTable(), {"a": "x", "b": 1, "c": True, "d": ""},
         {"a": "x", "b": "1", "c": "true", "d": ""}), (TextTable(), None, {}),
        (Needs(), ["a", "a", "b"], (("a", Need.STARTED), ("b", Need.STARTED))),
        (Needs(), {"a": "started"}, (("a", Need.STARTED),)), (Needs(), {}, ()),
        (TABLE, {"on": False}, {"on": False}), (TABLE, None, {}),
    ],
)  # fmt: skip
def test_right_values_are_taken(kind, given, result):
    assert read(kind, given) == (result, [])


@pytest.mark.parametrize(
    ("kind", "given", "count"),
    [
        (Command(), None, 1), (Command(), [[], {}], 2), (Command(), "a\0", 1),
        (ExitCodes(), 0, 1), (ExitCodes(), [-1, 300, "x"], 3), (PassedNames(), "A", 1),
        (PassedNames(), ["", 1], 2), (Needs(), None, 1), (Needs(), ["a b", 1], 2),
        (TABLE, [], 1), (TextTable(), [], 1),
    ],
)  # fmt: skip
def test_every_wrong_part_is_named(kind, given, count):
    result, problems = read(kind, given)
    assert result is UNREAD
    assert len(problems) == count


def test_a_table_keeps_what_is_right_and_names_the_rest():
    result, problems = read(TABLE, {"on": 1, "many": 3, "lots": 1, "soon": 1, "mny": 2})
    assert result == {"many": 3}
    assert len(problems) == 4
    assert "did you mean 'many'?" in problems[1]
    assert "later version" in problems[2]
    assert "did you mean 'many'?" in problems[3]


@pytest.mark.accepts("E-18")
def test_the_value_of_a_variable_is_not_shown_when_it_is_wrong():
    _, problems = read(TextTable(variables=True), {"TOKEN": 123.456, "UPHOLD_SLOT": "x"})
    assert len(problems) == 2
    assert "123" not in problems[0]


def test_values_that_were_reported_before_are_passed_over():
    assert read(TABLE, {"on": UNREAD}) == ({}, [])
    assert read(TextTable(), {"a": UNREAD}) == ({}, [])
    assert read(Needs(), {"a": UNREAD, "b": "started"}) == ((("b", Need.STARTED),), [])
