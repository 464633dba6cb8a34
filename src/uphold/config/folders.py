"""What can be said about a share, a checkout, and those who may send orders through files."""
# The methods of every kind are explained once, in `kinds.Kind`.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from uphold.config.kinds import VARIABLE_SCHEMA, Account, Name
from uphold.config.places import UNREAD
from uphold.core.names import is_worker_name
from uphold.core.specs import SenderSpec
from uphold.patterns import pattern

if TYPE_CHECKING:
    from uphold.config.places import Place

_REF: Final = pattern(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")
_PATTERN: Final = pattern(r"[A-Za-z0-9_*?.-]{1,100}\.flag")
_HANDLER: Final = pattern(r"[a-z][a-z0-9_]{0,63}")
SHORTEST_KEY: Final = 16
"""Characters of a key below which it could be guessed."""


@dataclass(frozen=True, slots=True)
class Below:
    """A path below another folder: never absolute, never upwards."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, str) or not value or "\0" in value:
            return place.must("a path below the share", value)
        if value.startswith(("/", "~")) or ".." in value.split("/") or "\\" in value:
            return place.must("a path below the share, without '..' and not absolute", value)
        return str(value).rstrip("/")

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class BelowList:
    """A list of such paths."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, list):
            return place.must("a list of paths below the share", value)
        found = [Below().read(item, place.inside(at)) for at, item in enumerate(value)]
        return UNREAD if any(item is UNREAD for item in found) else tuple(found)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class FlagPattern:
    """Which files of an inbox are ours; everything else there is never touched."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, str) and _PATTERN.fullmatch(value):
            return str(value)
        return place.must("a pattern of file names such as 'supervisor_*.flag'", value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_PATTERN.pattern}$"}


@dataclass(frozen=True, slots=True)
class GitName:
    """The name of a remote or a branch: nothing that git could take for an option or a range."""

    def read(self, value: object, place: Place) -> object:
        wrong = ("..", "//", "@{", "/.", "./")
        if (
            isinstance(value, str)
            and _REF.fullmatch(value)
            and not any(part in value for part in wrong)
            and not value.endswith((".", "/", ".lock"))
        ):
            return str(value)
        return place.must("the name of a git remote or branch such as 'main'", value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_REF.pattern}$"}


@dataclass(frozen=True, slots=True)
class WorkerNames:
    """A list of workers."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, list):
            return place.must("a list of workers", value)
        name = Name()
        found = [
            item if isinstance(item, str) and is_worker_name(item) else name.read(item, inside)
            for item, inside in ((item, place.inside(at)) for at, item in enumerate(value))
        ]
        if any(item is UNREAD for item in found):
            return UNREAD
        return tuple(dict.fromkeys(map(str, found)))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class HandlerNames:
    """A list of handlers that plug-ins offer."""

    def read(self, value: object, place: Place) -> object:
        if isinstance(value, list) and all(
            isinstance(each, str) and _HANDLER.fullmatch(each) for each in value
        ):
            return tuple(dict.fromkeys(map(str, value)))
        return place.must("a list of handlers such as 'drain'", value)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": f"^{_HANDLER.pattern}$"}}


@dataclass(frozen=True, slots=True)
class Accounts:
    """A list of users, by name or number."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, list):
            return place.must("a list of users", value)
        found = [Account().read(item, place.inside(at)) for at, item in enumerate(value)]
        return UNREAD if any(item is UNREAD for item in found) else tuple(found)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": Account().schema()}


@dataclass(frozen=True, slots=True)
class Senders:
    """A table of senders, each with a key and the handlers it may use."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, dict):
            return place.must("a table of senders", value)
        found = [self._sender(name, item, place.inside(name)) for name, item in value.items()]
        return UNREAD if any(item is UNREAD for item in found) else tuple(found)

    def _sender(self, name: str, item: object, place: Place) -> object:
        if not is_worker_name(name):
            return place.wrong("is no possible name of a sender")
        if not isinstance(item, dict) or not item.keys() <= {"key", "may"} or "key" not in item:
            # The value is not shown: a key may stand in it.
            return place.wrong("must be a table with a key, and perhaps a list `may` of handlers")
        key, may = item["key"], item.get("may")
        if key is UNREAD or may is UNREAD:
            return UNREAD
        if not isinstance(key, str) or len(key) < SHORTEST_KEY:
            return place.wrong(f"needs a key of at least {SHORTEST_KEY} characters")
        if may is not None and not (
            isinstance(may, list)
            and all(isinstance(each, str) and _HANDLER.fullmatch(each) for each in may)
        ):
            return place.inside("may").wrong("must be a list of handlers such as 'pause_watcher'")
        allowed = None if may is None else tuple(map(str, may))
        return SenderSpec(name=name, key=str(key), may=allowed)

    def schema(self) -> dict[str, Any]:
        sender = {
            "type": "object",
            "additionalProperties": False,
            "required": ["key"],
            "properties": {
                "key": {"anyOf": [{"type": "string", "minLength": SHORTEST_KEY}, VARIABLE_SCHEMA]},
                "may": {"type": "array", "items": {"type": "string"}},
            },
        }
        return {"type": "object", "additionalProperties": sender}
