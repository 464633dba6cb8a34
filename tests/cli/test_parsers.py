"""The full parsers: help, the overview, and mistakes."""

from __future__ import annotations

import pytest

from uphold.cli.parsers import overview, parser_of
from uphold.cli.verbs import VERBS
from uphold.errors import UpholdError
from uphold.version import __version__


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_a_parser_that_helps(verb):
    text = parser_of(verb).format_help()
    assert f"uphold {verb}" in text
    assert "--config FILE" in text


def test_the_overview_lists_every_verb():
    text = overview().format_help()
    assert [verb for verb in VERBS if f"\n  {verb} " not in text] == []


def test_a_mistake_is_an_error_like_every_other():
    with pytest.raises(UpholdError, match=r"^unrecognized arguments: --nothing\.$") as caught:
        parser_of("status").parse_args(["--nothing"])
    assert (caught.value.code, caught.value.exit_code) == ("UPH_USAGE", 2)


@pytest.mark.parametrize("words", [("--version",), ("--version", "--json")])
def test_the_version_is_told_with_and_without_a_parser(uphold, words):
    result = uphold(*words)
    assert (result.code, result.out) == (0, f"uphold {__version__}\n")
