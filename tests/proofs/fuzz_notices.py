"""What workers say, with any content: a notice, a beat, or Refused with a word that is documented.

Whatever is believed keeps the limits: finite numbers, short texts that no terminal obeys.
"""

from __future__ import annotations

import re
from pathlib import Path

from uphold.core.notices import AHEAD, Notice, Refused
from uphold.wire.notices import decode_beat, decode_notice

NOW = 1_800_000_000.0
MANUAL = Path(__file__).parents[2] / "docs" / "notify.md"


class Notices:
    """Inputs are `notice` (a datagram) or `beat` (the content of a file)."""

    def __init__(self, _folder):
        self._words = set(re.findall(r"`([a-z0-9-]+)`", MANUAL.read_text(encoding="utf-8")))

    async def open(self):
        pass

    async def close(self):
        pass

    async def take(self, kind, data):
        said = decode_notice(data) if kind == "notice" else decode_beat(data, NOW, nonce="n")
        if isinstance(said, Refused):
            assert said.reason in self._words, f"{said.reason} is not in the manual"
            assert said.text.endswith("."), said
        elif isinstance(said, Notice):
            self._judge_notice(said)
        else:
            self._judge_beat(said)

    def _judge_notice(self, said):
        _judge_text(said.status or "", 200)
        assert said.extend is None or 0 <= said.extend <= 86400
        assert said.watchdog_usec is None or 0 <= said.watchdog_usec <= 86400 * 10**6
        assert said.main_pid is None or 0 < said.main_pid < 1 << 31
        if said.error is not None:
            _judge_text(said.error.code, 64)
            _judge_text(said.error.message, 500)
        if said.beat is not None:
            self._judge_beat(said.beat)

    def _judge_beat(self, beat):
        _judge_text(beat.status, 64)
        _judge_text(beat.error or "", 500)
        _judge_text(beat.summary, 255)
        for number in (beat.progress, beat.seq):
            assert number is None or 0 <= number <= 1e15
        assert beat.at is None or 946_684_800 <= beat.at <= NOW + AHEAD


def _judge_text(text, most):
    assert len(text) <= most
    assert text.isprintable(), text
