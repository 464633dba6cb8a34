from __future__ import annotations

from decimal import Decimal

import pytest

from uphold.sdk.words import BAD, GOOD, checked_progress, checked_status, one_line


@pytest.mark.parametrize("status", [*GOOD, *BAD])
def test_every_word_for_a_status_passes(status):
    assert checked_status(status) == status


def test_progress_becomes_a_plain_number():
    assert checked_progress(None) is None
    assert checked_progress(3) == 3
    found = checked_progress(Decimal("2.5"))
    assert (type(found), found) == (float, 2.5)


def test_a_text_becomes_one_short_printable_line():
    assert one_line("a\n b\t\x07c", 50) == "a b ?c"
    assert one_line("x" * 300, 255) == "x" * 254 + "…"
    assert len(one_line("😀" * 300, 255).encode()) <= 765
