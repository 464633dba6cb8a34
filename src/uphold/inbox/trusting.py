"""Whose flags are obeyed, where the owner of a file says who has written it (helper's side).

Users are looked up here, as that may take as long as a share does. Stands alone.
"""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def numbers_of(users: Sequence[str]) -> frozenset[int] | None:
    """Give the numbers of these users, of root and of ourselves; None if anybody is trusted.

    One that nobody knows here is left out, so that nobody is trusted for that name.
    """
    if not users:
        return None
    return frozenset({0, os.geteuid(), *(found for each in users for found in _number(each))})


@lru_cache(maxsize=100)
def user_of(number: int) -> str:
    """Name a user for people; by the number if nobody knows a name."""
    import pwd  # noqa: PLC0415 - rarely asked, and there is none on Windows

    try:
        return f"user '{pwd.getpwuid(number).pw_name}'"
    except KeyError:
        return f"user {number}"


def _number(user: str) -> tuple[int, ...]:
    import pwd  # noqa: PLC0415 - as above

    if user.isascii() and user.isdigit():
        return (int(user),)
    try:
        return (pwd.getpwnam(user).pw_uid,)
    except KeyError:
        return ()
