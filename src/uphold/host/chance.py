"""Where chance comes from: the kernel, without the modules that `secrets` would bring along."""

from __future__ import annotations

import os


def new_nonce() -> str:
    """Make a name that nobody can guess and no two runs share."""
    return os.urandom(16).hex()


def new_id() -> str:
    """Make a name for good, in the form of a UUID (version 4)."""
    number = int.from_bytes(os.urandom(16), "big")
    number = number & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def any_number() -> int:
    """Pick a number that differs from time to time."""
    return int.from_bytes(os.urandom(4), "big")
