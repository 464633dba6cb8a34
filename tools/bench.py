"""Measures uphold beside supervisord and a floor of bare `posix_spawn`, and prints one table.

Timings belong here and never into tests. Run it on a quiet machine: `make bench`, and
`make bench WRITE=1` to keep the figures in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from benching import pages
from benching.contenders import BIN, Contender, Floor, Supervisord, Uphold
from benching.measuring import QUICK, Effort, Sample, flood, life, trickle
from benching.tables import (
    GROWING,
    GROWTH_HEADER,
    HEADER,
    ROWS,
    Figures,
    cells,
    growth,
    medians,
    plain,
)

CONTENDERS: tuple[type[Contender], ...] = (Floor, Supervisord, Uphold)
NAMES = tuple(kind.name for kind in CONTENDERS)
LIVES = {"start", "restart", "revive", "memory", "idle", "status", "ask", "stop", "reload"}
GROWTH_SIZE = 2000


def main() -> int:
    """Measure, print, and write the page if asked to."""
    args = arguments()
    effort = QUICK if args.quick else Effort()
    machine = pages.machine()
    print(machine, flush=True)
    figures = measure(args, effort)
    found = medians(figures)
    lines, growing = list(cells(found)), list(growth(found))
    print(plain(HEADER, lines))
    if growing:
        print(f"\n{plain(GROWTH_HEADER, growing)}")
    if args.write:
        pages.write(
            lines,
            growing,
            machine=machine,
            supervisord=version(Supervisord.program("supervisord"), "--version"),
            uphold=version(BIN / "uphold", "--version").removeprefix("uphold "),
            install=how_installed(),
            flood=effort.flood,
            rounds=effort.rounds,
            kills=effort.kills,
            asks=effort.asks,
        )
    return 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, help="numbers of workers")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, up to N = 100")
    keys = [row.key for row in ROWS]
    parser.add_argument("--only", action="append", metavar="ROW", choices=keys, help=f"{keys}")
    parser.add_argument("--who", action="append", choices=NAMES, help="only these contenders")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    args = parser.parse_args()
    if not args.sizes:
        args.sizes = [10, 100] if args.quick else [10, 100, 1000, GROWTH_SIZE]
    if "per-worker" in (args.only or ()):
        args.only.append("memory")
    return args


def measure(args: argparse.Namespace, effort: Effort) -> Figures:
    """Take all figures that are wanted."""
    figures: Figures = {}
    wanted = set(args.only or (row.key for row in ROWS))
    chosen = [kind for kind in CONTENDERS if present(kind) and kind.name in (args.who or NAMES)]
    for kind, size, samples in plans(args.sizes, chosen, effort, wanted):
        note(f"{kind.name}{f', {size:,} workers' if size else ''} ...")
        for key, value in samples:
            if key in wanted:
                figures.setdefault((key, size), {}).setdefault(kind.name, []).append(value)
    note("")
    return figures


def plans(
    sizes: list[int], chosen: list[type[Contender]], effort: Effort, wanted: set[str]
) -> Iterator[tuple[type[Contender], int, Iterator[Sample]]]:
    """List what is to be measured: everybody takes a turn before anybody takes the next.

    A machine that is shared changes its speed within minutes. So what is compared is taken side by
    side, and each median is of several minutes.
    """
    turns = range(effort.rounds)
    for size, turn, kind in product(sizes, turns, chosen):
        asked = wanted & (GROWING if size >= GROWTH_SIZE else LIVES)
        if asked and not (size >= GROWTH_SIZE and kind is Supervisord):
            yield kind, size, life(kind, size, turn, effort, asked)
    for _, kind in product(turns, chosen):
        if wanted & {"flood", "flood-cpu"}:
            yield kind, 0, flood(kind, effort)
        if "trickle" in wanted:
            yield kind, 0, trickle(kind, effort)


def present(kind: type[Contender]) -> bool:
    """Tell whether a contender is installed; one that is not is left out."""
    if kind is not Supervisord or Supervisord.program("supervisord").exists():
        return True
    print("supervisord is not installed: `make bench` installs it.", file=sys.stderr)
    return False


def how_installed() -> str:
    """Say whether uphold lies in this interpreter's own folders, as users have it."""
    copied = Path(sysconfig.get_path("purelib"), "uphold").is_dir()
    return "installed as users install it" if copied else "run from its checkout (editable)"


def version(*command: object) -> str:
    """Ask a program for its version."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def note(text: str) -> None:
    """Say what is being measured, to whoever watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
