"""The quick way to write runtime.json gives what the plain way gives."""

import json

from hypothesis import given
from hypothesis import strategies as st

from uphold.host.mirrors import ORDER, render
from uphold.wire.mirroring import render_quickly

TEXTS = st.text(st.characters(min_codepoint=0, max_codepoint=0x80), max_size=8)
WORKER = st.fixed_dictionaries(
    {
        "state": TEXTS,
        "pid": st.none() | st.integers(0, 2**31),
        "error": st.dictionaries(TEXTS, TEXTS),
    }
)
STATES = st.fixed_dictionaries(
    {"workers": st.dictionaries(TEXTS, WORKER, max_size=4), "pid": st.integers(0, 2**31)},
    optional={"overrides": st.dictionaries(TEXTS, TEXTS), "last_error": st.none() | TEXTS},
)


@given(STATES)
def test_both_ways_give_the_same_bytes(state):
    quick = render_quickly(state, ORDER)
    assert quick is None or quick == render(state)


def test_signs_beyond_ascii_are_left_to_the_plain_way():
    assert render_quickly({"last_error": "naïve"}, ORDER) is None
    assert render_quickly({"last_error": "half \ud800"}, ORDER) is None
    assert render_quickly({"last_error": "delete \x7f"}, ORDER) is None


def test_an_ordinary_state_is_written_the_quick_way():
    state = {"pid": 3, "workers": {"b": {"state": "running"}, "a": {"state": "stopped"}}}
    quick = render_quickly(state, ORDER)
    assert quick == render(state)
    assert list(json.loads(quick)["workers"]) == ["a", "b"]
