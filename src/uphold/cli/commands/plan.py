"""`uphold plan`: show what the configuration file would change, without changing it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.changes import change_lines, is_change
from uphold.cli.declared import recalled
from uphold.cli.places import Place, locate, require_config
from uphold.cli.reaching import patience_of, reach
from uphold.cli.screens import screen_of
from uphold.cli.speaking import print_document, say
from uphold.errors import EXIT_DONE, NotRunning

if TYPE_CHECKING:
    import argparse

    from uphold.core.statuses import Identity
    from uphold.ports.drivers import Trace

EXIT_CHANGES: Final = 2


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 2 if there is anything to change"
    )


def run(args: argparse.Namespace) -> int:
    """Ask the supervisor to compare the file with what runs; without one, foresee a start."""
    place = locate(args)
    try:
        with reach(place, patience_of(args)) as connection:
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
    from uphold.cli.foretelling import Sight, foretell
    from uphold.config.loading import load
    from uphold.host.clock import MachineClock
    from uphold.host.proctable import boot_id
    from uphold.wire.views import change_view

    settings = load(require_config(place), environ=os.environ)
    sight = Sight(
        boot_id=boot_id(),
        now=MachineClock().now(),
        lives=_lives,
        strays=_strays(place.home),
    )
    changes = foretell(settings.workers, recalled(place.home), sight)
    return {"schema": 1, "changes": [change_view(each) for each in changes]}


def _strays(home: str) -> list[Trace]:
    """Find what lives by the word of the slots' own files: the books may be lost, or behind."""
    from pathlib import Path

    from uphold.core.names import worker_of
    from uphold.core.specs import WorkerSpec
    from uphold.host.processes.slotlocks import read_record
    from uphold.ports.drivers import Trace

    found = []
    for path in sorted(Path(home, "slots").glob("*.lock")):
        record, slot = read_record(path), path.name.removesuffix(".lock")
        identity = None if record is None else record.identity
        if record is not None and identity is not None and _lives(identity):
            spec = WorkerSpec(name=worker_of(slot))
            trace = Trace(
                slot=slot,
                generation=record.generation,
                nonce=record.nonce,
                identity=identity,
                spec=spec,
            )
            found.append(trace)
    return found


def _lives(process: Identity) -> bool:
    from uphold.host.proctable import boot_id, lives

    return process.boot_id == boot_id() and lives(process.pid, process.start_ticks, process.inode)
