"""`uphold sql`: questions to ask the journal or the shared database, ready to be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.cli.arguments import usage_error
from uphold.cli.speaking import print_lines, print_records
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from uphold.journal.examples import Example

_EXAMPLES: Final = """examples:
  uphold sql                                     all of them, for the journal
  uphold sql --dialect postgresql status-page    one of them, for PostgreSQL
  uphold sql failed-jobs | sqlite3 'file:HOME/journal.db?mode=ro'
"""
_MEANT_FOR: Final = {
    "sqlite": "for the journal: sqlite3 'file:HOME/journal.db?mode=ro'",
    "mysql": "for MariaDB and MySQL; set the session to UTC first: SET time_zone = '+00:00';",
    "postgresql": "for PostgreSQL; set the session to UTC first: SET TIME ZONE 'UTC';",
}


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.epilog = _EXAMPLES
    parser.add_argument("question", metavar="NAME", nargs="?", help="only this one")
    parser.add_argument(
        "--dialect",
        choices=tuple(_MEANT_FOR),
        default="sqlite",
        metavar="NAME",
        help="sqlite (the journal, the default), mysql (MariaDB too) or postgresql",
    )


def run(args: argparse.Namespace) -> int:
    """Print the questions; nothing is opened and nobody is asked."""
    from uphold.journal.examples import examples

    known = examples(args.dialect)
    chosen = [each for each in known if args.question in (None, each.name)]
    if not chosen:
        raise _unknown(args.question, [each.name for each in known])
    if args.json:
        print_records(
            {"name": each.name, "says": each.says, "dialect": args.dialect, "sql": f"{each.asks};"}
            for each in chosen
        )
    else:
        print_lines(_lines(chosen, None if args.question else _MEANT_FOR[args.dialect]))
    return EXIT_DONE


def _lines(chosen: Sequence[Example], heading: str | None) -> Iterator[str]:
    if heading is not None:
        yield f"-- {heading}"
    for each in chosen:
        if heading is not None:
            yield ""
        yield f"-- {each.name}: {each.says}"
        yield from f"{each.asks};".splitlines()


def _unknown(name: str, known: Sequence[str]) -> Exception:
    from uphold.core.names import nearest

    meant = nearest(name, known)
    return usage_error(
        f"there is no question '{name}'.",
        f"Did you mean `uphold sql {meant}`?" if meant else f"There are {', '.join(known)}.",
    )
