"""What people ordered on top of the file, as text for the journal."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from uphold.core.declaring import MOST_REPLICAS
from uphold.core.overrides import PLAIN, Override


def encode_override(override: Override) -> str | None:
    """Write an override; None when there is nothing to remember."""
    return None if override == PLAIN else msgspec.json.encode(override).decode()


ABSENT: Final = msgspec.json.encode(Override(withheld=True)).decode()
"""What is remembered of a worker that is kept down and no longer in the file."""


def decode_override(text: str) -> Override:
    """Read an override; one that cannot be read holds nothing back and is forgotten.

    A number of slots that nobody could have ordered is left out alone: naming them all would
    take the memory of the machine, and what else was ordered still holds.
    """
    try:
        override = msgspec.json.decode(text.encode(), type=Override)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return PLAIN
    if override.replicas is not None and not 0 <= override.replicas <= MOST_REPLICAS:
        return replace(override, replicas=None)
    return override
