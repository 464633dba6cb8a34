"""`uphold export`: what another program needs to run this supervisor."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from uphold.cli.places import locate, require_config
from uphold.cli.speaking import print_document
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("what", choices=("systemd",), help="for whom: a systemd service")
    parser.add_argument("--user", action="store_true", help="for the service manager of your user")


def run(args: argparse.Namespace) -> int:
    """Print the unit; nothing is installed."""
    from uphold.cli.units import Unit, current_user, own_program
    from uphold.config.loading import load

    place = locate(args)
    config = require_config(place)
    settings = load(config, environ=os.environ)
    unit = Unit(
        program=own_program(),
        config=config,
        home=place.home,
        settings=settings,
        user=None if args.user else current_user(),
        for_user=args.user,
    )
    if args.json:
        print_document({"schema": 1, "name": unit.name, "unit": unit.text()})
    else:
        sys.stdout.write(unit.text())
    return EXIT_DONE
