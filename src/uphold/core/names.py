"""Names of workers and slots: what is allowed, and which one was probably meant."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

NAME_RULE: Final = (
    "letters, digits, hyphen and underscore, at most 64, starting with one of the first two"
)
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_LABEL: Final = r"[A-Za-z0-9 _-]{1,100}"
_SIMILAR_ENOUGH: Final = 0.6
_COMPARED: Final = 64
"""Letters of a name that are looked at when guessing; no name is longer."""
_EFFORT: Final = 100_000
"""Pairs of letters compared for one guess: thousands of short names, or some dozen long ones."""


def is_worker_name(text: str) -> bool:
    """Tell whether a worker may be called so. Dots are kept for slots, '@' for companions."""
    return re.fullmatch(_NAME, text) is not None


def is_label(text: str) -> bool:
    """Tell whether this may be the label of an order: one line, nothing that could forge a log."""
    return re.fullmatch(_LABEL, text) is not None


def slot_name(worker: str, index: int) -> str:
    """Name the slot with this number; the first carries the worker's name, so it never changes."""
    return worker if index == 1 else f"{worker}.{index}"


def slot_index(slot: str) -> int:
    """Tell which number a slot has within its worker."""
    _, dot, number = slot.rpartition(".")
    return int(number) if dot else 1


def worker_of(slot: str) -> str:
    """Tell whose slot this is."""
    return slot.partition(".")[0]


def is_companion(name: str) -> bool:
    """Tell whether uphold itself brought this worker along."""
    return name.startswith("@")


def nearest(text: str, known: Iterable[str]) -> str | None:
    """Find the known name that was probably meant, if any is close enough to say so."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - only ever needed on a mistake

    best, score = None, _SIMILAR_ENOUGH
    matcher = SequenceMatcher()
    matcher.set_seq2(text.lower()[:_COMPARED])
    effort = _EFFORT
    for name in sorted(known):
        matcher.set_seq1(name.lower()[:_COMPARED])
        # Upper bounds first: they are cheap, and most names are far off.
        if matcher.real_quick_ratio() <= score or matcher.quick_ratio() <= score:
            continue
        effort -= len(name[:_COMPARED]) * len(text[:_COMPARED])
        if effort < 0:
            break
        if (ratio := matcher.ratio()) > score:
            best, score = name, ratio
    return best
