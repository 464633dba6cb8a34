"""`uphold db VERB`: what can be done with the shared database by hand.

The verbs are the modules of `uphold.cli.dbverbs`. Their options stand in one parser, so that the
options every verb shares may stand anywhere; an option of another verb is refused.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from uphold.cli import dbverbs
from uphold.cli.arguments import usage_error

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow: one of the verbs, with its options."""
    verbs = _verbs()
    listed = "; ".join(f"{name}: {module.SUMMARY}" for name, module in verbs.items())
    parser.add_argument("what", metavar="VERB", choices=list(verbs), help=listed)
    owners: dict[str, str] = {}
    for name, module in verbs.items():
        before = len(parser._actions)  # noqa: SLF001 - argparse has no public way to ask
        module.declare_arguments(parser)
        for action in parser._actions[before:]:  # noqa: SLF001
            owners[action.dest] = name
    parser.set_defaults(owners=owners)


def run(args: argparse.Namespace) -> int:
    """Do what the verb does."""
    for option, owner in args.owners.items():
        if owner != args.what and getattr(args, option) not in (None, False, "", []):
            written = f"--{option.replace('_', '-')}"
            raise usage_error(
                f"`uphold db {args.what}` does not know {written}.", f"`uphold db {owner}` does."
            )
    return int(_verbs()[args.what].run(args))


def _verbs() -> dict[str, Any]:
    names = sorted(each.name for each in iter_modules(dbverbs.__path__))
    return {name: import_module(f"{dbverbs.__name__}.{name}") for name in names}
