"""Which values must never be shown.

A value is a secret when its name says so, or when it was handed in from outside (a variable,
an env_file) into a place where secrets go and does not look harmless. Words, paths, numbers and
addresses without a password are harmless: blotting out `production` or `/srv/app` everywhere
would make every output useless and protect nobody.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from uphold.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST: Final = 6
"""Shorter text appears by chance too often to be blotted out."""
_TELLING: Final = pattern(
    r"token|passw|passphrase|secret|credential|apikey|private"
    r"|(?:^|[_.-])(?:key|keys|pass|pwd|pw|pat|dsn|cookie|bearer|authorization|salt)(?:$|[_.-])",
    re.IGNORECASE,
)
_NAMES_A_PLACE: Final = pattern(r"(?:[_.-](?:file|path|dir|url_file)|ttl|_name)$", re.IGNORECASE)
_HARMLESS: Final = pattern(
    r"true|false|yes|no|on|off|none|null"
    r"|[-+]?[0-9][0-9.,_:]*[A-Za-z]{0,3}"  # numbers, times, sizes, durations, addresses
    # Words, host names, versions, zones: letters, then few digits. Keys mix them wildly.
    r"|[A-Za-z]{0,24}[0-9]{0,4}(?:[ ._:/@,-][A-Za-z]{0,24}[0-9]{0,4})*"
    r"|(?:~|\.{1,2})?/.*"  # paths
    r"|[A-Za-z][A-Za-z0-9+.-]*://[^@?]*",  # addresses without user or query
    re.IGNORECASE | re.DOTALL,
)
_HARMLESS_ANYWHERE: Final = pattern(r"true|false|[0-9]{1,7}", re.IGNORECASE)
_PASSWORD_IN_URL: Final = pattern(r"://[^/?#@\s:]*:([^/?#@\s]+)@")
_OPTION: Final = pattern(r"--?([A-Za-z][A-Za-z0-9_-]*)(?:=(.*))?", re.DOTALL)


class Secrets:
    """Collects the values of one configuration that must not be shown."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: set[str] = set()

    def named(self, name: str, value: str) -> None:
        """Take a value whose name may tell; addresses give up their password in any case."""
        if is_telling(name) and not _HARMLESS_ANYWHERE.fullmatch(value):
            self._take(value)
        self._passwords(value)

    def handed_in(self, name: str, value: str) -> None:
        """Take a value that came from outside into a place where secrets go."""
        if not _HARMLESS.fullmatch(value):
            self._take(value)
        self.named(name, value)

    def in_command(self, words: Iterable[str]) -> None:
        """Take what follows an option such as `--token`."""
        option = ""
        for word in words:
            match = _OPTION.fullmatch(word) if word.startswith("-") else None
            if match and match[2] is not None:
                self.named(match[1], match[2])
            elif match is None:
                self.named(option, word)
            option = match[1] if match and match[2] is None else ""

    def in_address(self, url: str) -> None:
        """Take the password of a database's address: as it is written, and as it is meant."""
        from urllib.parse import unquote  # noqa: PLC0415 - only for those who have a database

        user, at, _ = url.partition("://")[2].rpartition("@")
        password = user.partition(":")[2] if at else ""
        for form in {password, unquote(password)}:
            self._take(form)
        self.named("url", url)

    def all(self) -> tuple[str, ...]:
        """List them, longest first, so that none is hidden only in part."""
        return tuple(sorted(self._found, key=lambda value: (-len(value), value)))

    def _passwords(self, value: str) -> None:
        if "://" in value:
            for password in _PASSWORD_IN_URL.findall(value):
                self._take(password)

    def _take(self, value: str) -> None:
        if len(value) >= SHORTEST:
            self._found.add(value)


def is_telling(name: str) -> bool:
    """Tell whether a name says that its value is secret."""
    return bool(name) and bool(_TELLING.search(name)) and not _NAMES_A_PLACE.search(name)
