from __future__ import annotations

import pytest

from uphold.core.overrides import PLAIN, Override, file_says
from uphold.core.specs import WorkerSpec
from uphold.wire.overrides import decode_override, encode_override


def test_what_people_ordered_comes_back_as_it_was():
    said = file_says(WorkerSpec(name="web", command=("web",), replicas=2))
    held = Override(held=True, up=False, replicas=3, nudge=7, by="ann: memory looks odd", said=said)
    assert decode_override(encode_override(held)) == held


def test_a_row_of_an_earlier_version_is_read_as_it_was_meant():
    assert decode_override('{"up":false,"by":"ann"}') == Override(up=False, by="ann")


def test_nothing_ordered_needs_no_row():
    assert encode_override(PLAIN) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"held": "maybe"}', "\x00", "\ud800", '{"said":' * 5000]
)
def test_a_row_that_cannot_be_read_holds_nothing_back(text):
    assert decode_override(text) == PLAIN


@pytest.mark.accepts("T18")
@pytest.mark.parametrize("replicas", [-1, 1001, 10**9, 10**30])
def test_a_number_of_slots_that_nobody_could_have_ordered_is_left_out_alone(replicas):
    read = decode_override(f'{{"replicas": {replicas}, "quarantined": true}}')
    assert read == Override(quarantined=True)
