"""`uphold status`: the verified state of everything, as a table, JSON or key=value lines."""

from __future__ import annotations

from uphold.cli.arguments import usage_error
from uphold.cli.places import locate
from uphold.cli.rendering import key_values, share_line, store_line, table
from uphold.cli.screens import screen_of
from uphold.cli.seeing import look
from uphold.cli.speaking import print_document, print_lines
from uphold.cli.times import now
from uphold.cli.usage import add_usage
from uphold.cli.verdicts import exit_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from uphold.cli.places import Place


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these workers")
    parser.add_argument("-a", "--all", action="store_true", help="uphold's own companions too")
    parser.add_argument("-w", "--wide", action="store_true", help="more columns")
    parser.add_argument("--kv", action="store_true", help="fixed key=value lines for scripts")
    parser.add_argument("--watch", action="store_true", help="keep the table up to date")


def run(args: argparse.Namespace) -> int:
    """Prove who owns the home, ask it (or look for ourselves), and print."""
    if args.kv and args.json:
        raise usage_error(
            "--kv and --json are two forms of the same answer.", "Leave out one of them."
        )
    place = locate(args)
    if args.watch:
        from uphold.cli.live import watch

        return watch(place, args)
    document = _look(place, args)
    if not args.quiet:
        _print(document, args)
    return exit_code(document, named=bool(args.names))


def _look(place: Place, args: argparse.Namespace) -> dict[str, Any]:
    if not args.names:
        return look(place, companions=args.all, patience=args.timeout)
    from uphold.cli.declared import look_by_name

    return look_by_name(place, args.names, companions=args.all, patience=args.timeout)


def _print(document: dict[str, Any], args: argparse.Namespace) -> None:
    if args.kv:
        print_lines(key_values(document))
        return
    add_usage(document["workers"])
    if args.json:
        print_document(document)
    else:
        print_lines(table(document, now(), screen_of(), wide=args.wide))
        if args.all:
            print_lines([*store_line(document), *share_line(document, now())])
