from __future__ import annotations

import pytest

from uphold.config.places import UNREAD, Place, Report, path_text, shown
from uphold.config.variables import Substituted
from uphold.errors import Problem


def lines(where):
    return {"a": 9, "b": 3}.get(where[0], 1)


def test_problems_stand_in_the_order_of_the_file_and_those_of_other_files_last():
    report = Report()
    report.wrong_in(".env:2", "Third.")
    report.wrong(("a",), "Second.")
    report.wrong(("b",), "First")
    report.wrong(("b",), "First")
    assert report.problems("f", lines) == [
        Problem("f:3", "First."),
        Problem("f:9", "Second."),
        Problem(".env:2", "Third."),
    ]


def test_faults_of_the_writing_stand_among_them():
    report = Report()
    report.wrong(("a",), "Second.")
    found = report.problems("f", lines, [(4, "First."), (10, "Third.")])
    assert [problem.text for problem in found] == ["First.", "Second.", "Third."]


def test_a_place_says_whose_key_is_wrong():
    report = Report()
    place = Place(report, ("workers", "api"), "worker 'api'")
    assert place.inside("stop").inside("command").inside(1).must("text", 3) is UNREAD
    [problem] = report.problems("f", lambda _: 1)
    assert problem.text == "worker 'api': stop.command[1] must be text; it is 3."


def test_guessing_ends_after_a_while():
    report = Report()
    guesses = [report.guess("comand", ["command"]) for _ in range(100)]
    assert guesses[0] == "; did you mean 'command'?"
    assert guesses[-1] == ""


@pytest.mark.accepts("E-18", "S43")
def test_what_a_variable_held_is_never_shown():
    value = Substituted("hunter2")
    value.written = "${PASSWORD}"
    assert shown(value) == "'${PASSWORD}' (after substitution)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "empty"), (True, "true"), (3, "3"), (1.5, "1.5"), ("x", "'x'"), ({}, "a table"),
        ([], "a list"), ("y" * 99, repr("y" * 60 + "…")),
        ("a\x1b[31m", "'a\\x1b[31m'"),
    ],
)  # fmt: skip
def test_values_are_shown_shortly_and_harmlessly(value, text):
    assert shown(value) == text


def test_a_number_that_python_refuses_to_write_out_is_shown_in_words():
    assert shown(10**9000) == "a very large number"


def test_paths_read_as_people_write_them():
    assert path_text(("stop", "command", 1)) == "stop.command[1]"
    assert path_text(()) == ""
