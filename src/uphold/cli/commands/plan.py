"""`uphold plan`: show what the configuration file would change, without changing it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.changes import change_lines, is_change
from uphold.cli.places import Place, locate, require_config
from uphold.cli.reaching import patience_of, reach
from uphold.cli.records import journal_of
from uphold.cli.screens import screen_of
from uphold.cli.speaking import print_document, say
from uphold.errors import EXIT_DONE, NotRunning, StoreUnavailable

if TYPE_CHECKING:
    import argparse

    from uphold.core.overrides import Override

EXIT_CHANGES: Final = 2


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 2 if there is anything to change"
    )


def run(args: argparse.Namespace) -> int:
    """Ask the supervisor to read the file again and compare; without one, see what would start."""
    place = locate(args)
    try:
        with reach(place) as connection:
            document = connection.call("plan", patience=patience_of(args))
    except NotRunning:
        document = _from_nothing(place)
    changes = document["changes"]
    if args.json:
        print_document(document)
    else:
        say(args, *change_lines(changes, screen_of(), unchanged=True))
    return EXIT_CHANGES if args.exit_code and any(map(is_change, changes)) else EXIT_DONE


def _from_nothing(place: Place) -> dict[str, Any]:
    from uphold.config.loading import load
    from uphold.core.changes import preview
    from uphold.wire.views import change_view

    settings = load(require_config(place), environ=os.environ)
    changes = preview({}, settings.workers, _orders_in_force(place))
    return {"schema": 1, "changes": [change_view(each) for each in changes]}


def _orders_in_force(place: Place) -> dict[str, Override]:
    """Read what people ordered, for the next supervisor to honour."""
    from json import dumps

    from uphold.wire.overrides import decode_override

    try:
        with journal_of(place.home) as journal:
            ordered = journal.overrides()
    except StoreUnavailable:
        return {}
    return {name: decode_override(dumps(each)) for name, each in ordered.items()}
