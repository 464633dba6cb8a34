"""The kinds of single values: each reads what the file gives, and knows its JSON Schema.

`read` returns the value as `core.specs` wants it, or notes what is wrong and returns UNREAD.
Strings that came from variables also count as numbers and true/false. Values made of several
others are in `shapes`.
"""
# The methods of every kind are explained once, in `Kind`.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from uphold.config import quantities
from uphold.config.places import Place
from uphold.config.variables import Substituted
from uphold.core.names import NAME_RULE, is_worker_name
from uphold.patterns import pattern

VARIABLE_SCHEMA: Final[dict[str, Any]] = {"$ref": "#/$defs/variable"}
_ACCOUNT: Final = pattern(r"[^\s:/\x00]{1,64}")
_NO: Final = frozenset({"", "false", "no", "off", "0"})
_HIGHEST_ID: Final = 2**32 - 2


class Kind(Protocol):
    """One kind of value."""

    def read(self, value: object, place: Place) -> object:
        """Return the value as wanted; UNREAD once its problem is noted."""
        ...

    def schema(self) -> dict[str, Any]:
        """Describe it as JSON Schema."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Any text that a program can be given."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, str):
            return place.must("text", value)
        if not value.strip():
            return place.wrong("must not be empty")
        return str(value) if "\0" not in value else place.wrong("must not contain a NUL character")

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class FilePath:
    """A path; relative ones are taken from the folder of the configuration file."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, str) and value.startswith("~"):
            return place.wrong("must not start with '~', which only shells know; write ${HOME}")
        return Text().read(value, place)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Name:
    """A name by the rule for workers; `dots` allows those of host names too."""

    dots: bool = False

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, str):
            return place.must("a name", value)
        if not is_worker_name(value.replace(".", "-") if self.dots else value):
            return place.must(f"a name ({NAME_RULE})", value)
        return str(value)

    def schema(self) -> dict[str, Any]:
        rest = "[A-Za-z0-9._-]" if self.dots else "[A-Za-z0-9_-]"
        return _or_variable({"type": "string", "pattern": f"^[A-Za-z0-9]{rest}{{0,63}}$"})


@dataclass(frozen=True, slots=True)
class Target:
    """A Python class, as `package.module:Class`."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, str) and value.count(":") == 1:
            module, _, path = value.partition(":")
            if all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
                return str(value)
        return place.must("a Python class such as 'package.module:Class'", value)

    def schema(self) -> dict[str, Any]:
        return _or_variable({"type": "string", "pattern": "^[^\\s:]+:[^\\s:]+$"})


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]
    make: type[str] = str

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, str) and value in self.options:
            return self.make(value)
        words = ", ".join(f"'{option}'" for option in self.options)
        return place.must(f"one of {words}", value)

    def schema(self) -> dict[str, Any]:
        return _or_variable({"enum": list(self.options)})


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, bool):
            return value
        if isinstance(value, Substituted) and value in ("true", "false"):
            return value == "true"
        return place.must("true or false", value)

    def schema(self) -> dict[str, Any]:
        return _or_variable({"type": "boolean"})


@dataclass(frozen=True, slots=True)
class Condition:
    """Whether something is there at all: true, false, or text that says it, as variables do."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, bool):
            return value
        if not isinstance(value, str):
            return place.must("true, false or text such as '${NAME:}'", value)
        return value.strip().lower() not in _NO

    def schema(self) -> dict[str, Any]:
        return {"type": ["boolean", "string"]}


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within a range; `unlimited` allows that word for None."""

    low: int
    high: int
    unlimited: bool = False

    def read(self, value: object, place: Place) -> object:
        if self.unlimited and value == "unlimited":
            return None
        found = _plain_number(value)
        if isinstance(found, int) and self.low <= found <= self.high:
            return found
        word = " or 'unlimited'" if self.unlimited else ""
        return place.must(f"a whole number from {self.low} to {self.high}{word}", value)

    def schema(self) -> dict[str, Any]:
        words = [{"const": "unlimited"}] if self.unlimited else []
        return _or_variable({"type": "integer", "minimum": self.low, "maximum": self.high}, *words)


@dataclass(frozen=True, slots=True)
class Fraction:
    """A number within a range."""

    low: float
    high: float

    def read(self, value: object, place: Place) -> object:
        found = _plain_number(value)
        # Comparisons are false for NaN, so it never passes.
        if found is not None and self.low <= found <= self.high:
            return float(found)
        return place.must(f"a number from {self.low:g} to {self.high:g}", value)

    def schema(self) -> dict[str, Any]:
        return _or_variable({"type": "number", "minimum": self.low, "maximum": self.high})


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time, in seconds within."""

    low: float
    high: float

    def read(self, value: object, place: Place) -> object:
        found = quantities.duration(value) if isinstance(value, str) else None
        if found is None:
            found = _plain_number(value)
        if found is not None and self.low <= found <= self.high:
            return float(found)
        low, high = (quantities.duration_text(limit) for limit in (self.low, self.high))
        return place.must(f"a duration such as '500ms', '30s' or '5m', from {low} to {high}", value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$"}
        return _or_variable({"type": "number", "minimum": self.low, "maximum": self.high}, text)


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of bytes."""

    low: int
    high: int

    def read(self, value: object, place: Place) -> object:
        found: object = quantities.size(value) if isinstance(value, str) else None
        if found is None:
            found = _plain_number(value)
        if isinstance(found, int) and self.low <= found <= self.high:
            return found
        rule = f"a size such as '200KB', '10MB' or '1GiB', from {self.low} to {self.high} bytes"
        return place.must(rule, value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?([kKmMgGtT]i?)?[bB]$"}
        return _or_variable({"type": "integer", "minimum": self.low, "maximum": self.high}, text)


@dataclass(frozen=True, slots=True)
class StopSignal:
    """A signal that can end a process, by name or number."""

    def read(self, value: object, place: Place) -> object:
        given = _plain_number(value) if not isinstance(value, str) else str(value)
        if isinstance(value, Substituted):
            given = quantities.number(value) or str(value)
        name = quantities.stop_signal(given) if isinstance(given, str | int) else None
        return name or place.must("a signal that can end a process, such as 'TERM' or 15", value)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "integer"]}


@dataclass(frozen=True, slots=True)
class Umask:
    """An octal umask. Numbers are refused: nobody could tell 22 from 022."""

    def read(self, value: object, place: Place) -> object:
        found = quantities.umask(value) if isinstance(value, str) else None
        return (
            place.must("octal digits in quotes, such as '022'", value) if found is None else found
        )

    def schema(self) -> dict[str, Any]:
        return _or_variable({"type": "string", "pattern": "^(0o)?[0-7]{1,4}$"})


@dataclass(frozen=True, slots=True)
class Account:
    """A user or group, by name or number. Whether it exists is seen when a worker starts."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, str) and _ACCOUNT.fullmatch(value):
            return str(value)
        number = _plain_number(value)
        if isinstance(number, int) and 0 <= number <= _HIGHEST_ID:
            return str(number)
        return place.must("a name or a number from 0 up", value)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "integer"], "minimum": 0}


def _plain_number(value: object) -> int | float | None:
    if isinstance(value, Substituted):
        return quantities.number(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _or_variable(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [*schemas, VARIABLE_SCHEMA]}
