from __future__ import annotations

import pytest

from uphold.core.declaring import PLAIN, Override
from uphold.wire.overrides import decode_override, encode_override


def test_what_people_ordered_comes_back_as_it_was():
    held = Override(held=True, up=False, replicas=3, nudge=7, by="ann: memory looks odd")
    assert decode_override(encode_override(held)) == held


def test_nothing_ordered_needs_no_row():
    assert encode_override(PLAIN) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"held": "maybe"}', "\x00"])
def test_a_row_that_cannot_be_read_holds_nothing_back(text):
    assert decode_override(text) == PLAIN
