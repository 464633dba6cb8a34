"""Signatures of flags: who sent one, and that nobody has changed it since.

HMAC-SHA-256 over everything the flag says, and the sender's name, written in one certain way.
Pure; keys come from the configuration and are shown nowhere.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from uphold.core.specs import SenderSpec

SIGNATURE: Final = "signature"
_SHAPE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,63}):([0-9a-f]{64})")
_PURPOSE: Final = b"uphold-flag-1\n"
"""Keeps a signature made for a flag from meaning anything elsewhere."""


class Doubt(NamedTuple):
    """Why a signature is not believed."""

    reason: str


def canonical_bytes(content: Mapping[str, Any], sender: str) -> bytes:
    """Write down what is signed: all of a flag but its signature, and who signs it."""
    said = {key: value for key, value in content.items() if key != SIGNATURE}
    said["sender"] = sender
    # Keys sorted, no spaces, plain ASCII: every language can write this the same way.
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _PURPOSE + text.encode("ascii")


def sign(content: Mapping[str, Any], sender: str, key: str) -> str:
    """Make the signature of a flag: `<sender>:<64 hexadecimal digits>`."""
    digest = hmac.digest(key.encode(), canonical_bytes(content, sender), "sha256")
    return f"{sender}:{digest.hex()}"


def sender_of(
    content: Mapping[str, Any], senders: Iterable[SenderSpec]
) -> SenderSpec | Doubt | None:
    """Tell who signed this; None if nobody claims to have, Doubt if a claim is not believed."""
    claim = content.get(SIGNATURE)
    if claim is None:
        return None
    match = _SHAPE.fullmatch(claim) if isinstance(claim, str) else None
    if match is None:
        return Doubt("its signature is not of the form <sender>:<64 hexadecimal digits>.")
    known = {sender.name: sender for sender in senders}
    sender = known.get(match[1])
    if sender is None:
        return Doubt(f"no sender is called '{match[1]}'.")
    right = sign(content, sender.name, sender.key)
    # On bytes: comparing texts is not constant in time, or fails, beyond ASCII.
    if not hmac.compare_digest(right.encode(), match[0].encode()):
        return Doubt(f"the signature of '{sender.name}' does not fit what the flag says.")
    return sender
