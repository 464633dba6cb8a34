"""What is read without `argparse` means what it means with it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uphold.cli import times
from uphold.cli.arguments import declare_arguments
from uphold.cli.parsers import parser_of
from uphold.cli.plain import NotPlain, Plain
from uphold.cli.verbs import VERBS
from uphold.errors import UpholdError

WORDS = st.lists(
    st.sampled_from(
        [
            *("-c", "--config", "--home", "--json", "-q", "--quiet", "--timeout", "--label", "-h"),
            *("-a", "--all", "-w", "--wide", "--kv", "--watch", "-f", "--follow", "-n", "-n5"),
            *("--type", "--state", "--since", "--until", "--reason", "--no-wait", "--force", "--"),
            *("api", "web=3", "HUP", "5", "2m", "-1", "-", "", "x y", "queued,failed", "bash"),
            *("2026-01-31T12:00:00Z", "--config=a", "--jso", "-wa", "systemd", "create", "nothing"),
        ]
    ),
    max_size=6,
)


def read_plainly(verb: str, words: list[str]) -> dict[str, object] | None:
    plain = Plain()
    try:
        declare_arguments(verb, plain)
        return vars(plain.parse(words))
    except NotPlain:
        return None


@given(verb=st.sampled_from(sorted(VERBS)), words=WORDS)
@settings(max_examples=600, deadline=None)
def test_it_reads_as_the_full_parser_does_or_not_at_all(verb, words):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(times, "now", lambda: 1_800_000_000.0)  # "2m" ago is the same for both
        found = read_plainly(verb, words)
        if found is not None:
            assert found == vars(parser_of(verb).parse_args(words))


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("status", []),
        ("status", ["-c", "uphold.toml", "--json", "api", "web"]),
        ("status", ["api", "--wide", "-a"]),
        ("why", ["api"]),
        ("events", ["-n", "10", "--since", "2026-01-31T12:00:00Z"]),
        ("logs", ["api", "-f"]),
        ("start", []),
        ("restart", ["api", "--label", "night 1", "--timeout", "5"]),
        ("signal", ["api", "HUP"]),
        ("scale", ["api=3"]),
    ],
)
def test_usual_lines_need_no_parser(verb, words):
    found = read_plainly(verb, words)
    assert found == vars(parser_of(verb).parse_args(words))


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--wid"],
        ["--config=a"],
        ["-wa"],
        ["--", "api"],
        ["-c"],
        ["-c", "--json"],
        ["--timeout", "soon"],
        ["api", "--json", "web"],
    ],
)
def test_what_is_not_plain_is_left_to_the_full_parser(words):
    assert read_plainly("status", words) is None


def test_the_rest_of_a_line_comes_as_the_full_parser_gives_it(uphold):
    assert uphold("status", "--home=/nowhere/at/all").code == 3
    assert "unrecognized arguments: web" in uphold("status", "api", "--json", "web", "-q").out


def test_a_declaration_that_is_not_known_is_left_to_the_full_parser():
    for about in ({"nargs": 2}, {"action": "count"}, {"required": True}):
        with pytest.raises(NotPlain):
            Plain().add_argument("--x", **about)
    for declare in (lambda: Plain().add_mutually_exclusive_group(), lambda: Plain().set_defaults()):
        with pytest.raises(NotPlain):
            declare()
    twice = Plain()
    twice.add_argument("one", nargs="?")
    twice.add_argument("more", nargs="*")
    with pytest.raises(NotPlain):
        twice.parse(["a"])


def test_a_mistake_is_still_explained(uphold):
    result = uphold("status", "--timeout", "soon")
    assert "'soon' is no time span" in result.err
    with pytest.raises(UpholdError, match="unrecognized"):
        parser_of("status").parse_args(["--wid"])
