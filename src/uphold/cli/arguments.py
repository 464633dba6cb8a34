"""What may stand on the command line: the options every verb shares and the parser of one verb.

Only the module of the verb in question is imported, so that an answer comes at once.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from uphold.cli.screens import screen_of
from uphold.cli.verbs import VERBS
from uphold.errors import EXIT_USAGE, UpholdError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Our messages have no translations; looking for some would import `locale` and search the disk
# (3 ms with every command).
argparse._ = lambda text: text  # type: ignore[attr-defined]

TAKES_A_VALUE: Final = frozenset({"-c", "--config", "--home", "--timeout", "--label", "--reason"})
"""Options that may stand before the verb and have a value after them."""
_MODULES: Final = {"import": "importing", "verify-db": "verify_db"}
"""Verbs that no module can be called by."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Knows its width, because argparse would import `shutil` (5 ms) with every option to ask."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=screen_of().width or 100)


class Parser(argparse.ArgumentParser):
    """Reports mistakes like every other error instead of leaving the program."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise usage_error(f"{message[:1].lower()}{message[1:]}.", f"See `{self.prog} --help`.")


def usage_error(message: str, remedy: str = "See `uphold --help`.") -> UpholdError:
    """Make the error for a command line that cannot be understood."""
    return UpholdError(message, code="UPH_USAGE", remedy=remedy, exit_code=EXIT_USAGE)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; global options may stand before or after the verb."""
    before, verb, after = split_at_verb(argv)
    if verb is None:
        overview().parse_args(before)
        raise usage_error(
            "a verb is missing.", "See `uphold --help`; `uphold status` is a good start."
        )
    if verb not in VERBS:
        from uphold.core.names import nearest

        meant = nearest(verb, VERBS)
        raise usage_error(
            f"there is no verb '{verb}'.",
            f"Did you mean `uphold {meant}`?" if meant else "See `uphold --help`.",
        )
    return parser_of(verb).parse_args([*before, *after], argparse.Namespace(verb=verb))


def split_at_verb(argv: Sequence[str]) -> tuple[list[str], str | None, list[str]]:
    """Find the verb: the first word that is neither an option nor the value of one."""
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        index += 2 if argv[index] in TAKES_A_VALUE else 1
    if index >= len(argv):
        return list(argv), None, []
    return list(argv[:index]), argv[index], list(argv[index + 1 :])


def parser_of(verb: str) -> Parser:
    """Build the parser of one verb."""
    command = command_of(verb)
    parser = Parser(
        prog=f"uphold {verb}",
        description=f"{VERBS[verb][:1].upper()}{VERBS[verb][1:]}.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    command.declare_arguments(parser)
    shared = parser.add_argument_group("everywhere")
    shared.add_argument("-c", "--config", metavar="FILE", help="the configuration file")
    shared.add_argument("--home", metavar="DIR", help="the home directory of the supervisor")
    shared.add_argument("--json", action="store_true", help="print JSON")
    shared.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    shared.add_argument(
        "--timeout", type=seconds, metavar="TIME", help="how long to wait (5, 500ms, 2m)"
    )
    return parser


def command_of(verb: str) -> Any:
    """Import the module of a verb."""
    return import_module(f"uphold.cli.commands.{_MODULES.get(verb, verb)}")


def add_order_options(parser: argparse.ArgumentParser) -> None:
    """Add what every order may carry: a label, a reason, and whether to wait."""
    group = parser.add_argument_group("orders")
    group.add_argument("--label", type=label, metavar="TEXT", help="a short name for this order")
    group.add_argument("--reason", default="", metavar="TEXT", help="why, for the audit")
    group.add_argument(
        "--no-wait", action="store_true", help="return the job id without waiting for the result"
    )


def label(text: str) -> str:
    """Accept a label, or refuse it before anything happens."""
    from uphold.core.names import is_label

    if not is_label(text):
        raise argparse.ArgumentTypeError(
            "a label has 1 to 100 letters, digits, spaces, hyphens and underscores, nothing else"
        )
    return text


def seconds(text: str) -> float:
    """Read a time span: a plain number of seconds, or with a unit."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number = text.rstrip("dhms")
    unit = text[len(number) :] or "s"
    try:
        value = float(number) * units[unit]
    except (KeyError, ValueError):
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no time span; write 5, 500ms, 3s, 5m or 2h")
    return value


def count(text: str) -> int:
    """Read a number of things: zero or more."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def overview() -> Parser:
    """Build the parser that only knows how to help."""
    width = max(map(len, VERBS))
    listed = "\n".join(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items())
    parser = Parser(
        prog="uphold",
        usage="uphold [-c FILE] [--home DIR] VERB ...",
        description="Keep what you declared running, and prove it.",
        epilog=f"verbs:\n{listed}\n\n`uphold VERB --help` tells more about one.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    from uphold import __version__

    parser.add_argument("--version", action="version", version=f"uphold {__version__}")
    for option in sorted(TAKES_A_VALUE - {"-c"}):
        names = ("-c", option) if option == "--config" else (option,)
        parser.add_argument(*names, help=argparse.SUPPRESS)
    for option in ("--json", "--quiet", "-q", "--no-wait"):
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    return parser
