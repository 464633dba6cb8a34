"""Where chance comes from: the kernel, without the modules that `secrets` would bring along."""

from __future__ import annotations

import os


def new_nonce() -> str:
    """Make a name that nobody can guess and no two runs share."""
    return os.urandom(16).hex()


def any_number() -> int:
    """Pick a number that differs from time to time."""
    return int.from_bytes(os.urandom(4), "big")
