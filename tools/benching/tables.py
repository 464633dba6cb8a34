"""The rows of the table, what each must reach, and how figures are set beside each other."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Figures = dict[tuple[str, int], dict[str, list[float]]]
"""Samples by row and number of workers, then by contender."""

COLUMNS = ("floor", "supervisord", "uphold")


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure must reach, in words and as a question."""

    text: str
    reached: Callable[[float, dict[str, float]], bool]
    scales: bool = True
    """False: it is relative to the same run, so the speed of the machine is in it already."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured quantity."""

    key: str
    what: str
    unit: str
    targets: dict[int, Target]
    """By number of workers; 0 stands for every other number."""
    digits: int = 2
    floors: dict[int, float] = field(default_factory=dict)
    """What the floor took where the targets were set, by number of workers (0: any)."""

    def target(self, size: int) -> Target | None:
        """Find what must be reached with this many workers."""
        return self.targets.get(size, self.targets.get(0))

    def scale(self, size: int, beside: dict[str, float], interpreter: float) -> float:
        """Tell how many times dearer this is here than where the targets were set.

        By the row's own floor where there is one, else by what an interpreter takes to begin.
        """
        then = self.floors.get(size, self.floors.get(0))
        return beside["floor"] / then if then and beside.get("floor") else interpreter


def at_most(limit: float) -> Target:
    """Make a target that is a plain limit."""
    return Target(f"≤ {limit:g}", lambda value, _: value <= limit)


def at_least(limit: float) -> Target:
    """Make a target that is a plain minimum."""
    return Target(f"≥ {limit:g}", lambda value, _: value >= limit)


def times(factor: float, other: str) -> Target:
    """Make a target that is relative to another contender of the same run."""
    return Target(
        f"≤ {factor:g} × {other}",
        lambda value, beside: other in beside and value <= factor * beside[other],
        scales=False,
    )


def either(one: Target, other: Target) -> Target:
    """Make a target that is reached by reaching one of two."""
    return Target(
        f"{one.text} or {other.text}",
        lambda value, beside: one.reached(value, beside) or other.reached(value, beside),
        scales=one.scales and other.scales,
    )


BARE_PYTHON = 9.0
"""Milliseconds that an interpreter took to begin and end where the targets were set."""
NO_TIMES = frozenset({"per-worker"})
"""What does not depend on how fast a machine is."""

ROWS = (
    Row(
        "start",
        "start N, all alive and reported",
        "s",
        {10: at_most(0.25), 1000: either(at_most(1.0), times(2.2, "floor"))},
    ),
    Row("restart", "one killed → replacement alive", "ms", {0: at_most(2.8)}, 1, {0: 1.3}),
    Row("revive", "all N killed at once → all back", "s", {1000: at_most(1.3)}, 2, {1000: 0.5}),
    Row(
        "memory",
        "memory of its own processes (PSS)",
        "MiB",
        {10: times(1.25, "supervisord"), 1000: times(1.0, "supervisord")},
        1,
    ),
    Row("per-worker", "memory for each worker more", "KiB", {0: at_most(7)}, 1),
    Row("idle", "idle, CPU in 30 s", "s", {0: at_most(0.02)}, 3),
    Row(
        "status",
        "status on the command line",
        "ms",
        {10: at_most(40), 1000: at_most(80)},
        0,
        {0: BARE_PYTHON},
    ),
    Row("ask", "status over the socket", "ms", {0: at_most(2)}, 1),
    Row("flood", "log: one flood, rotated", "MB/s", {0: at_least(650)}, 0, {0: 690}),
    Row("flood-cpu", "log: the same, CPU for each MB", "ms", {0: at_most(1.0)}, 2, {0: 0.8}),
    Row(
        "trickle",
        "log: 100 workers, 1,000 lines/s, CPU in 10 s",
        "s",
        {0: at_most(0.3)},
        2,
        {0: 0.2},
    ),
    Row("stop", "stop N", "s", {1000: at_most(0.4)}, 2, {1000: 0.066}),
    Row("reload", "reload, one added and one changed", "s", {0: at_most(0.3)}),
)
GROWING = {"start", "revive", "memory", "status", "stop"}
"""What is looked at for steps between 1,000 and 2,000 workers."""
MOST_GROWTH = 2.4
"""Twice the workers may cost twice as much, and a little for the noise."""
BEYOND_FLOOR = 1.1
"""Where the machine itself takes more than that for twice as many, so may we, and hardly more."""


def medians(figures: Figures) -> dict[tuple[str, int], dict[str, float]]:
    """Reduce samples to their medians, and derive what follows from them."""
    found = {
        at: {name: statistics.median(samples) for name, samples in by.items() if samples}
        for at, by in figures.items()
    }
    sizes = sorted(size for row, size in found if row == "memory" and size <= 1000)
    if len(sizes) > 1:
        few, many = sizes[0], sizes[-1]
        found["per-worker", many] = {
            name: (found["memory", many][name] - value) * 1024 / (many - few)
            for name, value in found["memory", few].items()
            if name in found["memory", many]
        }
    return found


HEADER = ("what", "N", *COLUMNS, "× floor", "× supervisord", "target", "verdict")


def cells(found: dict[tuple[str, int], dict[str, float]]) -> Iterator[tuple[str, ...]]:
    """Write each row: the three figures, two ratios, the target and whether it is reached."""
    bare = {size: by["floor"] for (key, size), by in found.items() if key == "status"}
    least = min(bare.values(), default=BARE_PYTHON)
    for row in ROWS:
        for (key, size), beside in sorted(found.items()):
            if key == row.key:
                # Taken in the same minutes, where there is one: the machine's speed changes.
                yield _cells(row, size, beside, bare.get(size, least) / BARE_PYTHON)


def _cells(row: Row, size: int, beside: dict[str, float], interpreter: float) -> tuple[str, ...]:
    ours = beside.get("uphold")
    target = row.target(size)
    scale = 1.0 if row.key in NO_TIMES else row.scale(size, beside, interpreter)
    return (
        f"{row.what} ({row.unit})",
        f"{size:,}" if size else "",
        *(_number(beside.get(name), row.digits) for name in COLUMNS),
        *(_ratio(ours, beside.get(name)) for name in COLUMNS[:2]),
        "" if target is None else target.text,
        "" if target is None or ours is None else _verdict(target, ours, beside, scale),
    )


def _verdict(target: Target, ours: float, beside: dict[str, float], scale: float) -> str:
    """Judge by the plain figure, then by what it would be at the speed the targets assume."""
    if target.reached(ours, beside):
        return "reached"
    slower = scale < 1.0 if target.text.startswith("≥") else scale > 1.0
    if slower and target.scales and target.reached(ours / scale, beside):
        return f"reached, scaled (machine × {max(scale, 1 / scale):.1f})"
    return "MISSED"


GROWTH_HEADER = ("what", "N = 1,000", "N = 2,000", "ratio", "floor's ratio", "verdict")


def growth(found: dict[tuple[str, int], dict[str, float]]) -> Iterator[tuple[str, ...]]:
    """Compare 2,000 workers with 1,000: a step would show."""
    for row in ROWS:
        ones, twos = (found.get((row.key, size), {}) for size in (1000, 2000))
        one, two = ones.get("uphold"), twos.get("uphold")
        if row.key in GROWING and one and two:
            floor = twos["floor"] / ones["floor"] if ones.get("floor") and "floor" in twos else 0.0
            yield (
                f"{row.what} ({row.unit})",
                _number(one, row.digits),
                _number(two, row.digits),
                f"{two / one:.1f}",
                f"{floor:.1f}" if floor else "–",
                verdict(reached=two / one <= max(MOST_GROWTH, BEYOND_FLOOR * floor)),
            )


def verdict(*, reached: bool) -> str:
    """Say it in one word."""
    return "reached" if reached else "MISSED"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _ratio(ours: float | None, theirs: float | None) -> str:
    if ours is None or not theirs:
        return "–"
    ratio = ours / theirs
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def plain(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """Set a table for a terminal."""
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(len(header))]

    def set_line(line: tuple[str, ...]) -> str:
        padded = [
            cell.ljust(width) if i in (0, len(line) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return "\n".join(map(set_line, (header, *lines)))


def markdown(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """Set a table for a page."""
    ruler = ("---", *("---:" for _ in header[1:-1]), "---")
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ruler, *lines))
