"""Strict JSON: everything Python's reader would let pass, and its figures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uphold.inbox.decoding import DEEPEST, LARGEST, Unacceptable, Unfinished, decode_strictly

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=8)
    ),
    max_leaves=20,
)


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict | list) + max(map(depth, inner), default=0)


@given(st.dictionaries(st.text(max_size=5), PLAIN, max_size=8))
def test_ordinary_objects_come_back_as_they_were(value):
    raw = json.dumps(value).encode()
    if depth(value) > DEEPEST:
        with pytest.raises(Unacceptable):
            decode_strictly(raw)
    else:
        assert decode_strictly(raw) == value


@given(st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_comes_is_an_object_or_refused(raw):
    try:
        found = decode_strictly(raw)
    except (Unfinished, Unacceptable) as cause:
        found = {"refused": str(cause)}
    assert isinstance(found, dict)


@pytest.mark.accepts("S11")
def test_the_limits_are_exact():
    assert decode_strictly(b"{}" + b" " * (LARGEST - 2)) == {}
    with pytest.raises(Unacceptable):
        decode_strictly(b"{}" + b" " * (LARGEST - 1))
    nested = b'{"a":' + b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1) + b"}"
    assert depth(decode_strictly(nested)) == DEEPEST
    with pytest.raises(Unacceptable):
        decode_strictly(b'{"a":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}")
    assert len(decode_strictly(json.dumps({str(n): n for n in range(64)}).encode())) == 64
    with pytest.raises(Unacceptable):
        decode_strictly(json.dumps({str(n): n for n in range(65)}).encode())
    assert decode_strictly(b'{"a": -999999999999999999}') == {"a": -(10**18) + 1}
    with pytest.raises(Unacceptable):
        decode_strictly(b'{"a": 1000000000000000000}')
