"""The full parser of a verb: it helps, explains mistakes and knows every way to write an option.

Most command lines do not need it (`uphold.cli.plain`), so `argparse` is loaded here only.
"""

from __future__ import annotations

import argparse
from typing import NoReturn

from uphold.cli.arguments import TAKES_A_VALUE, declare_arguments, usage_error
from uphold.cli.examples import shown
from uphold.cli.screens import screen_of
from uphold.cli.verbs import VERBS

# Our messages have no translations; looking for some would import `locale` and search the disk
# (3 ms with every command).
argparse._ = lambda text: text  # type: ignore[attr-defined]


class Help(argparse.RawDescriptionHelpFormatter):
    """Knows its width, because argparse would import `shutil` (5 ms) with every option to ask."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=screen_of().width or 100)


class Parser(argparse.ArgumentParser):
    """Reports mistakes like every other error instead of leaving the program."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise usage_error(f"{message[:1].lower()}{message[1:]}.", f"See `{self.prog} --help`.")


def parser_of(verb: str) -> Parser:
    """Build the parser of one verb."""
    parser = Parser(
        prog=f"uphold {verb}",
        description=f"{VERBS[verb][:1].upper()}{VERBS[verb][1:]}.",
        epilog=shown(verb),
        formatter_class=Help,
        allow_abbrev=False,
    )
    declare_arguments(verb, parser)
    return parser


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
