from __future__ import annotations

import unicodedata

import pytest

from uphold.core.texts import printable


@pytest.mark.accepts("S21")
@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)])
def test_control_characters_are_shown_and_not_obeyed(code):
    shown = printable(f"a{chr(code)}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown.startswith("a\\")


@pytest.mark.accepts("S21")
def test_everything_invisible_or_turning_is_shown():
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            harmless_signs = code in range(0x600, 0x606) or code in {0x6DD, 0x70F, 0x890, 0x891}
            harmless_signs |= code in {0x8E2, 0x110BD, 0x110CD} or 0x13430 <= code <= 0x1345F
            harmless_signs |= 0x1BCA0 <= code <= 0x1BCA3
            assert harmless_signs or printable(chr(code)).startswith("\\"), hex(code)


@pytest.mark.accepts("S21", "B-73")
def test_a_newline_never_makes_a_new_record():
    assert printable("one\r\ntwo\x85three\u2028four") == "one\\r\\ntwo\\x85three\\u2028four"


@pytest.mark.parametrize(
    "text", ["plain", "größe", "日本語", "👍🏽", "naïve café", "", "a\\b", "שלום"]
)
def test_ordinary_text_of_any_language_stays_as_it_is(text):
    assert printable(text) == text


def test_what_comes_out_can_always_be_written_to_a_file():
    everything = "".join(map(chr, range(0x3000))) + "\udc80\ud800" + chr(0xE0041)
    assert printable(everything).encode().count(b"\n") == 0


@pytest.mark.accepts("S45")
def test_escaping_long_hostile_text_keeps_its_order():
    shown = printable("\x1b[31m" * 20_000)
    assert shown == "\\x1b[31m" * 20_000
