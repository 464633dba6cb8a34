"""What may stand on the command line: the options every verb shares, and who reads them.

Only the module of the verb in question is imported, so that an answer comes at once.
"""

from __future__ import annotations

import sys

from uphold.cli.verbs import VERBS
from uphold.errors import EXIT_USAGE, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any, Final

TAKES_A_VALUE: Final = frozenset({"-c", "--config", "--home", "--timeout", "--label", "--reason"})
"""Options that may stand before the verb and have a value after them."""
_MODULES: Final = {"import": "importing", "verify-db": "verify_db"}
"""Verbs that no module can be called by."""


def usage_error(message: str, remedy: str = "See `uphold --help`.") -> UpholdError:
    """Make the error for a command line that cannot be understood."""
    return UpholdError(message, code="UPH_USAGE", remedy=remedy, exit_code=EXIT_USAGE)


def refusal(message: str) -> Exception:
    """Make what the reader of a value raises when it does not like it."""
    import argparse

    return argparse.ArgumentTypeError(message)


def parse(argv: Sequence[str]) -> Any:
    """Read the command line; global options may stand before or after the verb."""
    before, verb, after = split_at_verb(argv)
    if verb in VERBS:
        return _parse_verb(verb, [*before, *after])
    if verb is not None:
        from uphold.core.names import nearest

        meant = nearest(verb, VERBS)
        raise usage_error(
            f"there is no verb '{verb}'.",
            f"Did you mean `uphold {meant}`?" if meant else "See `uphold --help`.",
        )
    if list(argv) == ["--version"]:
        from uphold import __version__

        sys.stdout.write(f"uphold {__version__}\n")
        raise SystemExit
    from uphold.cli.parsers import overview

    overview().parse_args(before)
    raise usage_error("a verb is missing.", "See `uphold --help`; `uphold status` is a good start.")


def _parse_verb(verb: str, words: Sequence[str]) -> Any:
    from uphold.cli.plain import NotPlain, Plain

    plain = Plain()
    found: Any
    try:
        declare_arguments(verb, plain)
        found = plain.parse(words)
    except NotPlain:
        from uphold.cli.parsers import parser_of

        found = parser_of(verb).parse_args(words)
    found.verb = verb
    return found


def split_at_verb(argv: Sequence[str]) -> tuple[list[str], str | None, list[str]]:
    """Find the verb: the first word that is neither an option nor the value of one."""
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        index += 2 if argv[index] in TAKES_A_VALUE else 1
    if index >= len(argv):
        return list(argv), None, []
    return list(argv[:index]), argv[index], list(argv[index + 1 :])


def declare_arguments(verb: str, parser: Any) -> None:
    """Declare what may follow a verb, to a parser or to something like one."""
    command_of(verb).declare_arguments(parser)
    shared = parser.add_argument_group("everywhere")
    shared.add_argument("-c", "--config", metavar="FILE", help="the configuration file")
    shared.add_argument("--home", metavar="DIR", help="the home directory of the supervisor")
    shared.add_argument("--json", action="store_true", help="print JSON")
    shared.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    shared.add_argument(
        "--timeout", type=seconds, metavar="TIME", help="how long to wait (5, 500ms, 2m)"
    )


def command_of(verb: str) -> Any:
    """Import the module of a verb."""
    name = f"uphold.cli.commands.{_MODULES.get(verb, verb)}"
    __import__(name)  # importlib, which does it more nicely, costs 0.6 ms
    return sys.modules[name]


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
        raise refusal(
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
        raise refusal(f"'{text}' is no time span; write 5, 500ms, 3s, 5m or 2h")
    return value


def count(text: str) -> int:
    """Read a number of things: zero or more."""
    if not (text.isascii() and text.isdigit()):
        raise refusal(f"'{text}' is not a whole number of 0 or more")
    return int(text)
