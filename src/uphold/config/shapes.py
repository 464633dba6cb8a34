"""The kinds of values made of several others: commands, lists and tables.

`Table` is the shape of everything with named keys; the keys themselves are in `keys`.
"""
# The methods of every kind are explained once, in `Kind`.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uphold.config.kinds import VARIABLE_SCHEMA, Kind, Name, Whole
from uphold.config.places import UNREAD, Place
from uphold.core.names import is_worker_name
from uphold.core.specs import Need
from uphold.patterns import pattern

_VARIABLE_NAME: Final = pattern(r"[^=\x00\s]{1,200}")
_PASSED_NAME: Final = pattern(r"[A-Za-z_][A-Za-z0-9_]*\*?")
OWN_VARIABLES: Final = frozenset(
    {"UPHOLD_NONCE", "UPHOLD_WORKER", "UPHOLD_SLOT", "UPHOLD_TEAM", "UPHOLD_BEAT_FILE"}
)
"""Set by uphold for every worker; a declared value would only be overwritten."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: text as written (split later, when `shell` is known), or a tuple of words."""

    may_be_empty: bool = False

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, str):
            return self._text(value, place)
        if not isinstance(value, list):
            return place.must("text or a list of words", value)
        # A place is made for what may be wrong only: lists may be long.
        words = [
            item if type(item) is str and "\0" not in item else _word(item, place.inside(number))
            for number, item in enumerate(value)
        ]
        if any(word is UNREAD for word in words):
            return UNREAD
        if not words:
            return () if self.may_be_empty else place.wrong("must not be empty")
        return tuple(words) if words[0] else place.wrong("must start with a program")

    def _text(self, value: str, place: Place) -> object:
        if "\0" in value:
            return place.wrong("must not contain a NUL character")
        if not value.strip():
            return () if self.may_be_empty else place.wrong("must not be empty")
        return value

    def schema(self) -> dict[str, Any]:
        least = 0 if self.may_be_empty else 1
        words = {"type": "array", "items": {"type": "string"}, "minItems": least}
        return {"anyOf": [{"type": "string", "minLength": least}, words]}


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """A list of exit codes."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, list) or not value:
            return place.must("a list of exit codes such as [0]", value)
        code = Whole(0, 255)
        codes = [
            item if type(item) is int and 0 <= item <= 255 else code.read(item, place.inside(at))
            for at, item in enumerate(value)
        ]
        if any(found is UNREAD for found in codes):
            return UNREAD
        return tuple(dict.fromkeys(codes))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": Whole(0, 255).schema(), "minItems": 1}


@dataclass(frozen=True, slots=True)
class PassedNames:
    """Names of environment variables to hand on; `PREFIX_*` stands for all that start so."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, list):
            return place.must("a list of variable names such as ['LANG', 'AWS_*']", value)
        right = True
        for number, item in enumerate(value):
            if item is UNREAD:
                right = False
            elif not isinstance(item, str) or not _PASSED_NAME.fullmatch(item):
                place.inside(number).must("a variable name, or the start of one and '*'", item)
                right = False
        return tuple(str(item) for item in value) if right else UNREAD

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of free names with text (numbers and true/false are taken as text)."""

    variables: bool = False
    """True: the names are environment variables."""

    def read(self, value: object, place: Place) -> object:
        if value is None:
            return {}
        if not isinstance(value, dict):
            return place.must("a table of names and text", value)
        found: dict[str, str] = {}
        for name, item in value.items():
            text = (
                item if self._is_plain(name, item) else self._item(name, item, place.inside(name))
            )
            if isinstance(text, str):
                found[name] = text
        return found

    def _is_plain(self, name: str, item: object) -> bool:
        """Tell, without making a place, that nothing is to be said of this one."""
        if type(item) is not str or "\0" in item or (self.variables and name in OWN_VARIABLES):
            return False
        return _VARIABLE_NAME.fullmatch(name) is not None

    def _item(self, name: str, item: object, place: Place) -> object:
        if not _VARIABLE_NAME.fullmatch(name):
            return place.wrong("is not a possible name: spaces, '=' and NUL are not allowed")
        if self.variables and name in OWN_VARIABLES:
            return place.wrong("is set by uphold itself; choose another name")
        if isinstance(item, bool):
            return "true" if item else "false"
        if isinstance(item, int):
            return _digits(item, place)
        if not isinstance(item, str):
            # The value is not shown: this is where people keep their secrets.
            return UNREAD if item is UNREAD else place.wrong("must be text; put it in quotes")
        return str(item) if "\0" not in item else place.wrong("must not contain a NUL character")

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": {"type": ["string", "integer", "boolean"]},
        }


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker comes after: a table of workers and conditions, or a list of workers."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, list):
            return self._names(value, place)
        if not isinstance(value, dict):
            return place.must("a table such as { db = 'started' }, or a list of workers", value)
        found = [(name, self._need(item, place.inside(name))) for name, item in value.items()]
        # Those that are right go on, so that an unknown worker among them is named too.
        return tuple((name, need) for name, need in found if need is not UNREAD)

    def _names(self, value: list[object], place: Place) -> object:
        name = Name()
        names = [
            item
            if type(item) is str and is_worker_name(item)
            else name.read(item, place.inside(at))
            for at, item in enumerate(value)
        ]
        if any(found is UNREAD for found in names):
            return UNREAD
        return tuple((found, Need.STARTED) for found in dict.fromkeys(names))

    def _need(self, value: object, place: Place) -> object:
        if isinstance(value, str) and value in tuple(Need):
            return Need(value)
        if value is UNREAD:
            return value
        return place.must("'started', 'healthy' or 'completed'", value)

    def schema(self) -> dict[str, Any]:
        need = {"enum": [need.value for need in Need]}
        return {
            "anyOf": [
                {"type": "object", "additionalProperties": {"anyOf": [need, VARIABLE_SCHEMA]}},
                {"type": "array", "items": {"type": "string"}},
            ]
        }


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table: its name, what it takes, its default as written, and what it means."""

    name: str
    kind: Kind
    default: Any
    means: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table with known keys; reading gives a dict of those that are there and right."""

    keys: tuple[Key, ...]
    build: Any = None
    """Makes the finished value from the keys, where `core.specs` has a type for it."""
    later: frozenset[str] = frozenset()
    """Keys that are understood and come with a later version."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """What people coming from other supervisors call a key, and what it is called here."""
    by_name: dict[str, Kind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {key.name: key.kind for key in self.keys})

    def read(self, value: object, place: Place) -> object:
        if value is None:
            # In YAML a key with nothing below it; in TOML the same is an empty table.
            return {}
        if not isinstance(value, dict):
            return place.must("a table", value)
        found: dict[str, object] = {}
        for name, item in value.items():
            kind = self.by_name.get(name)
            if kind is not None:
                read = item if item is UNREAD else kind.read(item, place.inside(name))
                if read is not UNREAD:
                    found[name] = read
            elif name in self.later:
                place.inside(name).later()
            else:
                place.unknown(name, (*self.by_name, *self.later), self.meant.get(name))
        return found

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {key.name: _described(key) for key in self.keys},
        }


def _described(key: Key) -> dict[str, Any]:
    described = {"description": key.means, **key.kind.schema()}
    return described if key.default is None else {**described, "default": key.default}


def _word(item: object, place: Place) -> object:
    if item is UNREAD:
        return UNREAD
    if isinstance(item, int) and not isinstance(item, bool):
        return _digits(item, place)
    if not isinstance(item, str):
        return place.must("text", item)
    return str(item) if "\0" not in item else place.wrong("must not contain a NUL character")


def _digits(number: int, place: Place) -> object:
    try:
        return str(number)
    except ValueError:
        return place.wrong("is far too large a number")
