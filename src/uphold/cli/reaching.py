"""How a command reaches the supervisor, and what it says when there is none."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

from uphold.control.client import PATIENCE, Connection
from uphold.errors import NotRunning

if TYPE_CHECKING:
    import argparse

    from uphold.cli.places import Place

_TRIES: Final = 30
_PAUSE: Final = 100
"""Milliseconds between two tries while a live supervisor has not opened its socket yet."""


def reach(place: Place, patience: float = PATIENCE) -> Connection:
    """Connect to the supervisor of a home; one that is just starting gets 3 s for its socket.

    `patience` limits how long one that is there may take to let us in.
    """
    try:
        return Connection(place.home, patience=patience)
    except NotRunning:
        if not _is_owned(place):
            raise
    for _ in range(_TRIES):
        select.poll().poll(_PAUSE)
        try:
            return Connection(place.home, patience=patience)
        except NotRunning:
            if not _is_owned(place):
                break
    return Connection(place.home, patience=patience)


def patience_of(args: argparse.Namespace) -> float:
    """Tell how long a question that needs no waiting may remain without an answer."""
    return PATIENCE if args.timeout is None else float(args.timeout)


def _is_owned(place: Place) -> bool:
    from uphold.cli.owners import owner_of

    return owner_of(place.home).standing == "running"
