from __future__ import annotations

import pytest

from uphold.config.importing.expansions import expand, uses
from uphold.config.importing.wording import written

KNOWN = {"here": "/srv", "process_num": 3, "program_name": "web"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("%(here)s/x", "/srv/x"),
        ("%(program_name)s_%(process_num)02d", "web_03"),
        ("100%%", "100%"),
        ("%(ENV_OWN)s", "mine"),
        ("%(ENV_HOME)s/${x}", "${HOME}/$${x}"),
        ("plain", "plain"),
    ],
)
def test_what_is_known_is_put_in_and_the_environment_becomes_variables(text, expanded):
    assert written(expand(text, KNOWN, {"OWN": "mine"})) == expanded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%(nobody)s", "is not known"),
        ("%s", "is no expansion"),
        ("50%", "is no expansion"),
        ("%(here)d", "does not suit"),
        ("%(process_num)0999999999d", "is no expansion"),
        ("%(ENV_A-B)s", "is not known"),
    ],
)
def test_what_cannot_be_expanded_is_named(text, words):
    with pytest.raises(ValueError, match=words):
        expand(text, KNOWN, {})


def test_what_a_value_asks_for_is_seen():
    assert uses("a%(process_num)02d", "process_num")
    assert not uses("a", "process_num")
