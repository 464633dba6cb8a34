from __future__ import annotations

import re
import shlex

import pytest

from uphold.cli.arguments import parse
from uphold.cli.examples import EXAMPLES, shown
from uphold.cli.parsers import parser_of
from uphold.cli.verbs import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_ends_with_examples(verb):
    assert "\nexamples:\n  uphold" in parser_of(verb).format_help().replace("source <(", "")


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_every_example_can_be_given_as_it_stands(line):
    command = re.split(r"[|>)]+ |[|>)]+$| \|\| ", line.removeprefix("source <("))[0].strip()
    program, *words = shlex.split(command)
    assert program == "uphold"
    assert parse(words).verb in line


def test_a_verb_whose_module_has_examples_has_none_here():
    assert shown("events") is None
