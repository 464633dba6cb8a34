"""The one exit for everything that is shown: secrets leave out, control characters escape.

Secrets are found by the name they stand under and by their known values. Every pattern here
takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from uphold.core.texts import printable
from uphold.patterns import pattern

__all__ = ["HIDDEN", "Redactor", "is_secret_name", "printable"]

HIDDEN: Final = "[redacted]"

_SHORTEST: Final = 6
"""Shorter values would blot out ordinary words."""
_SHORTEST_LINE: Final = 16
"""Lines of a secret with many lines (a key) are secrets by themselves from this length on."""
_DEEPEST: Final = 64

_WORDS: Final = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS: Final = frozenset(
    {"passwords", "passphrase", "secrets", "authorization", "credential", "credentials"}
    | {"dsn", "cookie", "bearer"}
)
_SECRET_ENDINGS: Final = ("password", "passwd", "secret", "token", "apikey")
_KEY_OWNERS: Final = frozenset(
    {"api", "access", "private", "secret", "signing", "encryption", "ssh", "auth", "master"}
)

_NAMED: Final = pattern(
    r"""(?ix)
    (?P<name>
        (?: pass(?:words?|wd|phrase) | secrets? | credentials? | authorization
          | api[_-]?key | private[_-]?key | access[_-]?key | secret[_-]?key
          | (?<![a-z]) (?: token | dsn | cookie ) | _pwd )
        (?![a-z]) [\w.\-]{0,32}+ ["']?+
    )
    (?P<sign> \s{0,2}+ (?: [:=] | => ) \s{0,2}+ )
    (?P<value>
        (?: (?: bearer | basic | digest | token ) [ ]{1,2}+ )?+
        (?: "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | [^\s,;&"'<>)}\]]++ )
    )
    """
)
_BEARER: Final = pattern(r"(?i)\b(bearer[ ]{1,2}+)[a-z0-9._~+/=-]{8,}+")
_SHAPES: Final = pattern(
    r"""(?x)
      (?<![A-Za-z0-9]) (?: gh[opsu] | github_pat | glpat | xox[abprs] | sk | rk | pk )
        [_-] [A-Za-z0-9_-]{16,}+
    | (?<![A-Za-z0-9]) A[KS]IA [0-9A-Z]{16}+
    | (?<![A-Za-z0-9]) eyJ [\w-]{8,}+ \. [\w-]{8,}+ (?: \. [\w-]*+ )?+
    """
)
_TELLTALES: Final = (
    *("pass", "secret", "credential", "authorization", "key", "token", "dsn", "cookie", "_pwd"),
    "bearer",
)
"""One of these is in every text in which `_NAMED` or `_BEARER` finds anything."""
_SHORTEST_SHAPE: Final = 19
"""Of these nothing shorter is found, and none holds a space: most texts need no closer look."""
_PEM: Final = pattern(
    r"(?s)-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
)
_URL: Final = pattern(
    r"""(?ix)
    (?P<scheme> \b [a-z] [a-z0-9+.\-]{1,20}+ :// )
    (?P<user>
        [^\s/?\#"'<>]* @
      | [^\s/?\#:"'<>@]*+ : (?! \d{1,5} (?: [/?\#\s] | $ ) ) [^\s"'<>@]*+ @
    )?+
    (?P<place> [^\s"'<>?\#]*+ )
    (?P<query> \? [^\s"'<>\#]*+ )?+
    """
)
_QUERY_VALUE: Final = pattern(r"=[^&;]*+")


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under this name is probably a secret.

    Whole words count: `API_KEY`, `dbPassword` and `auth-token` are, `max_tokens`, `keyboard`
    and `PWD` (the working folder) are not.
    """
    words = [word.lower() for word in _WORDS.findall(name[:256])]
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    return any(
        second == "pwd" or (second in ("key", "keys") and first in _KEY_OWNERS)
        for first, second in pairwise(words)
    )


class Redactor:
    """Takes secrets out of whatever is about to be shown."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(sorted({form for each in secrets for form in _forms(each)}))

    def text(self, text: str) -> str:
        """Take secrets out of a text: known values, named values, users and queries of URLs."""
        text = self._without_known(text)
        if "-----BEGIN " in text:
            text = _PEM.sub(HIDDEN, text)
        if "://" in text:
            text = _URL.sub(_bare_url, text)
        if _may_tell(text):
            if ":" in text or "=" in text:
                text = _NAMED.sub(_without_value, text)
            text = _BEARER.sub(rf"\1{HIDDEN}", text)
        return _SHAPES.sub(HIDDEN, text) if _has_long_word(text) else text

    def texts(self, texts: Sequence[str]) -> Sequence[str]:
        """Take secrets out of each of these texts; a thousand plain ones cost one look."""
        return texts if self._is_plain("\n".join(texts)) else [self.text(each) for each in texts]

    def _is_plain(self, text: str) -> bool:
        """Tell that neither this text nor any part of it would be changed."""
        return not (
            "-----BEGIN " in text
            or "://" in text
            or _may_tell(text)
            or _has_long_word(text)
            or any(each in text for each in self._secrets)
        )

    def value(self, value: Any) -> Any:
        """Take secrets out of JSON-like content; what is given stays as it was."""
        return self._value(value, _DEEPEST)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float):
            return HIDDEN if str(value) in self._secrets else value
        if not depth:
            return HIDDEN if value is not None else None
        if isinstance(value, Mapping):
            return self._mapping(value, depth - 1)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth - 1)
        return value

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        shown: dict[Any, Any] = {}
        # {"name": "DB_PASSWORD", "value": "…"} is how environments are often listed.
        named = isinstance(value.get("name"), str) and is_secret_name(value["name"])
        for key, each in value.items():
            if isinstance(key, str) and (is_secret_name(key) or (named and key == "value")):
                shown[self._without_known(key)] = _hidden(each)
            else:
                name = self._without_known(key) if isinstance(key, str) else key
                shown[name] = self._value(each, depth)
        return shown

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        pair = len(value) == 2
        shown: list[Any] = []
        before: Any = None
        for each in value:
            # ["DB_PASSWORD", "…"] and ["--password", "…"] name the next entry.
            names = isinstance(before, str) and (pair or before.startswith("-"))
            if names and isinstance(each, str) and "=" not in before and is_secret_name(before):
                shown.append(_hidden(each))
            else:
                shown.append(self._value(each, depth))
            before = each
        return shown

    def _without_known(self, text: str) -> str:
        """Blot out known values, also where they overlap."""
        spans = sorted(span for each in self._secrets for span in _places(each, text))
        if not spans:
            return text
        kept, reached = [], 0
        for start, end in spans:
            if start >= reached:
                kept += [text[reached:start], HIDDEN]
            reached = max(reached, end)
        return "".join([*kept, text[reached:]])


def _forms(secret: str) -> Iterator[str]:
    """Give the ways in which a secret may appear: as it is, quoted for JSON, quoted for a URL."""
    from urllib.parse import quote, quote_plus  # noqa: PLC0415 - 300 KiB, for who has secrets

    lines = [line.strip() for line in secret.splitlines()]
    for each in (secret, *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        if len(each) < _SHORTEST:
            continue
        yield each
        yield json.dumps(each)[1:-1]
        yield json.dumps(each, ensure_ascii=False)[1:-1]
        yield quote(each, safe="", errors="replace")
        yield quote_plus(each, errors="replace")


def _may_tell(text: str) -> bool:
    """Tell whether a text may name a secret: most do not, and a pattern takes 50 µs."""
    if not text.isascii():
        return True  # some letters that are not ASCII count as ones that are
    low = text.lower()
    return any(word in low for word in _TELLTALES)


def _has_long_word(text: str) -> bool:
    return len(max(text.split(), key=len, default="")) >= _SHORTEST_SHAPE


def _places(secret: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(secret)
    while at >= 0:
        yield at, at + len(secret)
        at = text.find(secret, at + 1)


def _hidden(value: object) -> object:
    """Hide a value under a secret name; that there is none may be seen, and so may a switch."""
    return value if value is None or value == "" or isinstance(value, bool) else HIDDEN


def _without_value(match: re.Match[str]) -> str:
    value = match["value"]
    if value in ("null", "None", "true", "false", '""', "''", HIDDEN) or HIDDEN.startswith(value):
        return match[0]
    mark = value[-1] if value[-1] in "\"'" and len(value) > 1 else ""
    return f"{match['name']}{match['sign']}{mark}{HIDDEN}{mark}"


def _bare_url(match: re.Match[str]) -> str:
    query = match["query"] or ""
    return f"{match['scheme']}{match['place']}{_QUERY_VALUE.sub(f'={HIDDEN}', query)}"
