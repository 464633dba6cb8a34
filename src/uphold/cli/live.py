"""A table that stays up to date: redrawn when something happens, and once a second for the ages.

On a terminal the picture is repainted in place. Elsewhere it is printed again only when
something other than an age has changed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.declared import look_by_name
from uphold.cli.reaching import patience_of
from uphold.cli.rendering import table
from uphold.cli.screens import screen_of
from uphold.cli.seeing import ask, tell_silence
from uphold.cli.speaking import print_lines, print_records
from uphold.cli.times import now
from uphold.cli.usage import add_usage
from uphold.cli.verdicts import exit_code
from uphold.control.client import PATIENCE, Connection
from uphold.errors import NotRunning, UpholdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from uphold.cli.places import Place
    from uphold.cli.usage import Reading

_REFRESH: Final = 1.0
_SETTLE: Final = 0.05
"""Seconds of quiet after which a burst of news is over: it makes one picture, not a thousand."""
_MOST_GATHERED: Final = 1000

_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"


class Picture:
    """What is on the screen now, and how to replace it."""

    def __init__(self, *, wide: bool = False, as_json: bool = False) -> None:
        self._wide = wide
        self._as_json = as_json
        self._readings: dict[int, Reading] = {}
        self._shown: object = None

    def draw(self, document: dict[str, Any]) -> None:
        """Show this document instead of the last one."""
        self._readings = add_usage(document["workers"], self._readings)
        screen = screen_of()
        if screen.terminal and not self._as_json:
            lines = table(document, now(), screen, wide=self._wide)
            _repaint(lines, screen.height)
        elif (facts := _facts(document)) != self._shown:
            self._shown = facts
            if self._as_json:
                print_records([document])
            else:
                print_lines([*table(document, now(), wide=self._wide), ""])
        sys.stdout.flush()


def watch(place: Place, args: argparse.Namespace) -> int:
    """Keep showing the status until Ctrl-C or the end of the supervisor; the last word counts."""
    picture = Picture(wide=args.wide, as_json=args.json)
    terminal = screen_of().terminal and not args.json
    _write(_HIDE_CURSOR if terminal else "")
    try:
        asked = {"companions": args.all, "patience": patience_of(args)}
        follow(place, picture, names=args.names, **asked)
        document = look_by_name(place, args.names, **asked)
        picture.draw(document)
    except UpholdError as error:
        tell_silence(error)
        raise
    finally:
        _write(_SHOW_CURSOR if terminal else "")
    return exit_code(document, named=bool(args.names))


def follow(  # noqa: PLR0913 - what is asked, by name
    place: Place,
    picture: Picture,
    *,
    names: Sequence[str] = (),
    companions: bool = False,
    patience: float = PATIENCE,
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Redraw on news until the supervisor is gone or nobody wants it any more."""
    try:
        with (
            Connection(place.home, patience=patience) as news,
            Connection(place.home, patience=patience) as questions,
        ):
            news.call(
                "subscribe",
                {"from_seq": None, "names": None},
                patience=patience,
            )
            while wanted():
                picture.draw(ask(questions, names, companions=companions, patience=patience))
                if news.receive(_REFRESH) is not None:
                    _gather(news)
    except (EOFError, NotRunning):
        return
    except UpholdError as error:
        if error.code != "UPH_SUPERVISOR_GONE":
            raise


def _gather(news: Connection) -> None:
    """Take in what else has happened; under endless news a picture is due all the same."""
    for _ in range(_MOST_GATHERED):
        if news.receive(_SETTLE) is None:
            return


def _repaint(lines: Sequence[str], height: int | None) -> None:
    *table_lines, last = lines
    shown, summary = table_lines, last.split("\n")
    if height is not None and len(shown) + len(summary) >= height:
        # The sum and the supervisor's own health must stay in sight.
        shown = [*shown[: max(0, height - len(summary) - 2)], "..."]
        summary = summary[: max(1, height - len(shown) - 1)]
    shown = [*shown, *summary]
    painted = "\x1b[K\n".join(shown)
    _write(f"\x1b[H{painted}\x1b[K\n\x1b[J")


def _facts(document: dict[str, Any]) -> object:
    """Pick what is worth a new print: no ages, no usage."""
    supervisor = document["supervisor"]
    return (
        supervisor["ownership"],
        supervisor["status"],
        supervisor["health"],
        [
            (row["slot"], row["state"], row["health"], row["admin"], row["pid"], row["restarts"])
            for row in document["workers"]
        ],
    )


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
