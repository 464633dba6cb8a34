"""Priorities become dependencies: who has the next lower number is started first."""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple

from uphold.config.importing.reports import Book, Setting, approximated, lost, translated

_MOST_BEFORE: Final = 20
"""More dependencies than this help nobody; a few good ones are better chosen by hand."""


class Ranked(NamedTuple):
    """A worker, and where supervisord would put it in the order of starting."""

    rank: tuple[int, int]
    """The priority of its group (its own, without one), then its own."""
    name: str
    terms: dict[str, Any]
    priority: Setting | None
    """What is judged: the setting, or a stand-in that says that there was none."""


def put_in_order(ranked: list[Ranked], book: Book) -> None:
    """Let each worker come after those of the rank before it, and judge the priorities."""
    ordered = sorted(ranked, key=attrgetter("rank"))
    levels = [list(level) for _, level in groupby(ordered, key=attrgetter("rank"))]
    for before, level in pairwise(levels):
        # One that nobody starts would be waited for without end.
        first = [each.name for each in before if each.terms.get("autostart", True)]
        for each in level:
            if first and len(first) <= _MOST_BEFORE:
                each.terms["depends_on"] = dict.fromkeys(first, "started")
    for each in ranked:
        told = each.priority is not None and each.priority.value is not None
        if told or (each.priority is not None and "depends_on" in each.terms):
            _judge(each, len(levels), book)


def _judge(each: Ranked, levels: int, book: Book) -> None:
    assert each.priority is not None
    after = each.terms.get("depends_on")
    if levels == 1:
        outcome = translated("nothing to do: all have the same")
    elif after:
        outcome = approximated(
            f"depends_on {', '.join(after)} (the rank before it): it waits until they have started"
        )
    elif each.terms.get("autostart", True):
        outcome = approximated("those of the next rank come after it (depends_on)")
    else:
        outcome = lost("nothing can wait for a worker that does not start by itself")
    book.judge(each.priority, outcome, each.name)
