"""What the file and the orders on record say, where no supervisor is there to be asked."""

from __future__ import annotations

import os

from uphold.cli.owners import owner_of
from uphold.cli.seeing import look
from uphold.core.names import nearest, worker_of
from uphold.errors import NoSuchWorker, StoreUnavailable, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from uphold.cli.places import Place
    from uphold.core.declaring import Entry
    from uphold.ports.journals import Memory


def look_by_name(
    place: Place,
    names: Sequence[str],
    *,
    companions: bool = False,
    patience: float | None = None,
) -> dict[str, Any]:
    """Look at these workers; without a supervisor, one that only the file names is known too."""
    try:
        return look(place, names, companions=companions, patience=patience)
    except NoSuchWorker:
        if owner_of(place.home).standing == "running":
            raise
    document = look(place, companions=True)
    entries = entries_of(place)
    recorded: list[dict[str, Any]] = document["workers"]
    document["workers"] = [
        row for name in dict.fromkeys(names) for row in _named(name, recorded, entries)
    ]
    return document


def entries_of(place: Place) -> dict[str, Entry]:
    """Give what the file declares, with what people ordered on top; nothing if it is no good."""
    from uphold.config.loading import load
    from uphold.core.declaring import Entry
    from uphold.core.overrides import PLAIN, after_absence
    from uphold.wire.overrides import decode_override

    if place.config is None:
        return {}
    try:
        specs = load(place.config, environ=os.environ).workers
    except UpholdError:
        return {}
    overrides = recalled(place.home).overrides
    ordered = {name: decode_override(text) for name, text in overrides.items()}
    return {
        spec.name: Entry(spec=spec, override=after_absence(ordered.get(spec.name, PLAIN), spec))
        for spec in specs
    }


def recalled(home: str) -> Memory:
    """Read what the next supervisor will know: what ran, and what people ordered.

    Where the journal is lost, the mirror tells what was ordered.
    """
    from pathlib import Path

    from uphold.host.proctable import boot_id
    from uphold.journal.recalling import NOTHING, recall

    try:
        memory = recall(Path(home, "journal.db"), boot_id())
    except StoreUnavailable:
        memory = NOTHING
    if memory is not NOTHING or not os.path.lexists(f"{home}/runtime.json"):
        return memory
    from uphold.daemon.equipping import remembered_orders
    from uphold.engine.recovering import with_remembered
    from uphold.host.homes import Home

    return with_remembered(memory, remembered_orders(Home(Path(home))))


def at_rest(entry: Entry) -> list[dict[str, Any]]:
    """Describe the slots of a worker of which nothing is recorded."""
    from uphold.cli.times import now
    from uphold.core.absorbing import Observed
    from uphold.core.events import Moment
    from uphold.core.specs import Instant
    from uphold.wire.views import worker_rows

    moment = Moment(mono=Instant(0.0), wall=now())
    return list(worker_rows(entry.spec.name, entry, Observed(), moment))


def _named(
    name: str, recorded: Sequence[Mapping[str, Any]], entries: Mapping[str, Entry]
) -> list[Mapping[str, Any]]:
    """Find the rows that a name means: a worker, or one of its slots."""
    found = [row for row in recorded if name in (row["name"], row["slot"])]
    entry = entries.get(worker_of(name))
    if not found and entry is not None:
        found = [row for row in at_rest(entry) if name in (row["name"], row["slot"])]
    if found:
        return found
    meant = nearest(name, {*entries, *(str(row["name"]) for row in recorded)})
    raise NoSuchWorker(
        f"there is no worker '{name}': neither the file nor the records know one.",
        remedy=f"Did you mean '{meant}'?" if meant else "`uphold plan` lists those of the file.",
    )
