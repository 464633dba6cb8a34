"""What people ordered on top of the file, as text for the journal."""

from __future__ import annotations

import msgspec

from uphold.core.overrides import PLAIN, Override


def encode_override(override: Override) -> str | None:
    """Write an override; None when there is nothing to remember."""
    return None if override == PLAIN else msgspec.json.encode(override).decode()


def decode_override(text: str) -> Override:
    """Read an override; one that cannot be read holds nothing back and is forgotten."""
    try:
        return msgspec.json.decode(text.encode(), type=Override)
    except msgspec.MsgspecError:
        return PLAIN
