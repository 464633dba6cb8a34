"""Whose flags are obeyed, where the owner of a file says who has written it (helper's side).

Users are looked up here, as that may take as long as a share does. Stands alone.
"""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Trusted:
    """The numbers of these users, of root and of ourselves."""

    def __init__(self, users: Sequence[str]) -> None:
        self._numbers = {0, os.geteuid()}
        self._unknown = tuple(users)
        """Names that stand for nobody: looked up again, as whoever knows them may be away."""

    def __contains__(self, number: object) -> bool:
        if number not in self._numbers and self._unknown:
            found = {user: _number(user) for user in self._unknown}
            self._numbers |= {each for each in found.values() if each is not None}
            self._unknown = tuple(user for user, each in found.items() if each is None)
        return number in self._numbers


def trusted_of(users: Sequence[str]) -> Trusted | None:
    """Tell whose flags count if these users are named; None if anybody is trusted."""
    return Trusted(users) if users else None


@lru_cache(maxsize=100)
def user_of(number: int) -> str:
    """Name a user for people; by the number if nobody knows a name."""
    import pwd  # noqa: PLC0415 - rarely asked, and there is none on Windows

    try:
        return f"user '{pwd.getpwuid(number).pw_name}'"
    except KeyError:
        return f"user {number}"


def _number(user: str) -> int | None:
    import pwd  # noqa: PLC0415 - as above

    if user.isascii() and user.isdigit():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None
