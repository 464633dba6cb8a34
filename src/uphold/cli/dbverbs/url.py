"""`uphold db url`: where the shared database is, without user, password and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.cli.places import locate
from uphold.cli.speaking import print_document, print_lines
from uphold.cli.stores import configured_store
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "print where it is, without user and password"


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb: nothing."""


def run(args: argparse.Namespace) -> int:
    """Print the address; nobody is asked whether it is right."""
    from uphold.recorder.addresses import Address

    _, store = configured_store(locate(args))
    address = Address.parse(store.url)
    if args.json:
        print_document({"schema": 1, "url": address.shown, "dialect": address.dialect})
    else:
        print_lines([address.shown])
    return EXIT_DONE
