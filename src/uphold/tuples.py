"""`typing.NamedTuple` for modules that a command waits for: `typing` costs 3 ms to import.

Type checkers are shown the real one; see how `uphold.errors` takes it.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OF_THE_CLASS = frozenset({"__annotations__", "__dict__", "__module__", "__qualname__"})


class _Making(type):
    """Turns a class with annotated names into a named tuple with its methods."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        fields = body["__annotations__"]
        defaults = [body[field] for field in fields if field in body]
        make: Any = namedtuple  # noqa: PYI024 - that is what this is for
        made: Any = make(name, fields, defaults=defaults, module=body["__module__"])
        made.__qualname__ = body["__qualname__"]
        made.__annotations__ = fields
        for key, value in body.items():
            if key not in fields and key not in _OF_THE_CLASS:
                setattr(made, key, value)
        return made


class NamedTuple(metaclass=_Making):
    """The base of such classes; none of them keeps it."""
