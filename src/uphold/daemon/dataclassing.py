"""Dataclasses that cost nothing until they are used (decision 0014).

`dataclasses` writes and compiles six methods for every class when it is imported: for the
supervisor's hundred and fifty classes that was half of its start and 1.5 MiB. Here a class
gets its fields and slots at once, and each method is written when it is called first; most
never are. It knows the options uphold uses, and leaves everything else to the real module.
"""

from __future__ import annotations

import abc
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FIELDS: Final = "__dataclass_fields__"
_KNOWN: Final = frozenset({"frozen", "slots", "kw_only"})
_NO_METADATA: Final = MappingProxyType[str, object]({})


class Sign:
    """Something that is only ever compared by identity."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


MISSING: Final = Sign("MISSING")
FIELD: Final = Sign("_FIELD")
CLASS_VARIABLE: Final = Sign("_FIELD_CLASSVAR")
INIT_VARIABLE: Final = Sign("_FIELD_INITVAR")


class Field:
    """One field, as the real module and others read it."""

    __slots__ = ("compare", "given", "init", "kw_only", "maker", "name", "repr", "sort", "type")

    hash = None
    metadata = _NO_METADATA

    def __init__(self, given: object, maker: object = MISSING) -> None:
        self.name = self.type = ""
        self.given = given
        self.maker = maker
        self.sort = FIELD
        self.init = self.repr = self.compare = True
        self.kw_only = False

    @property
    def default(self) -> object:
        """Its default, or the sign for none of whichever module is asked."""
        return _present(self.given)

    @property
    def default_factory(self) -> object:
        """What makes its default, or the sign for none."""
        return _present(self.maker)

    @property
    def _field_type(self) -> object:
        return _present(self.sort)


class Terms:
    """How a class was declared, as the real module asks it of a base class."""

    __slots__ = ("frozen",)

    def __init__(self, *, frozen: bool) -> None:
        self.frozen = frozen


_FROZEN: Final = Terms(frozen=True)
_OPEN: Final = Terms(frozen=False)


def names() -> dict[str, object]:
    """Give what stands in for the module's own names."""
    signs = (MISSING, FIELD, CLASS_VARIABLE, INIT_VARIABLE)
    return {
        "dataclass": dataclass,
        "field": field,
        "fields": fields,
        "is_dataclass": is_dataclass,
        "replace": replace,
        **{repr(sign): sign for sign in signs},
    }


def dataclass(cls: Any = None, /, **options: bool) -> Any:
    """Make a dataclass of a class; by the real module if more is wanted than is known here."""
    if cls is None:
        return lambda given: dataclass(given, **options)
    if not options.get("slots") or not _KNOWN.issuperset(options) or not _is_plain(cls):
        return _left_to_the_real(cls, options)
    frozen, kw_only = options.get("frozen", False), options.get("kw_only", False)
    return _made(cls, cls.__annotations__, frozen=frozen, kw_only=kw_only)


def field(*, default: object = MISSING, default_factory: object = MISSING, **terms: bool) -> Any:
    """Declare a field that is more than a name with a default."""
    described = Field(default, default_factory)
    for name, value in terms.items():  # one that nobody knows is refused, by the slots
        setattr(described, name, value)
    return described


def fields(thing: Any) -> tuple[Field, ...]:
    """List the fields of a dataclass or of a value of one."""
    return tuple(_own(getattr(thing, _FIELDS)))


def is_dataclass(thing: Any) -> bool:
    """Tell whether this is a dataclass, or a value of one."""
    return hasattr(thing if isinstance(thing, type) else type(thing), _FIELDS)


def replace(value: Any, /, **changes: Any) -> Any:
    """Give the same value with these fields changed."""
    for each in _own(getattr(value, _FIELDS)):
        if not each.init:
            if each.name in changes:
                raise ValueError(f"field {each.name} is declared with init=False")
        elif each.name not in changes:
            changes[each.name] = getattr(value, each.name)
    return value.__class__(**changes)


def _is_plain(cls: Any) -> bool:
    """Tell whether a class and its bases have plain fields only, written as text."""
    inherited = (each for base in cls.__mro__ for each in base.__dict__.get(_FIELDS, {}).values())
    return all(type(each) is Field for each in inherited) and all(
        isinstance(text, str) and "InitVar" not in text and "KW_ONLY" not in text
        for text in cls.__annotations__.values()
    )


def _left_to_the_real(cls: Any, options: dict[str, bool]) -> Any:
    module = _real()
    for name, given in tuple(cls.__dict__.items()):
        if isinstance(given, Field):
            terms = {key: getattr(given, key) for key in ("init", "repr", "compare")}
            if given.default_factory is not module.MISSING:
                terms["default_factory"] = given.default_factory
            setattr(cls, name, module.field(default=given.default, **terms))
    return module.dataclass(cls, **options)


def _made(cls: Any, annotations: dict[str, str], *, frozen: bool, kw_only: bool) -> Any:
    inherited: dict[str, Field] = {}
    for base in cls.__mro__[-1:0:-1]:
        inherited.update(base.__dict__.get(_FIELDS, {}))
    own = {
        name: _described(cls.__dict__.get(name, MISSING), name, text, kw_only=kw_only)
        for name, text in annotations.items()
    }
    every = inherited | own
    body = {key: value for key, value in cls.__dict__.items() if key not in _UNWANTED}
    for each in _own(every):
        body.pop(each.name, None)  # a slot may not have a default
    taken = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    body["__slots__"] = tuple(each.name for each in _own(every) if each.name not in taken)
    body[_FIELDS] = every
    body["__dataclass_params__"] = _FROZEN if frozen else _OPEN
    positional = (each.name for each in _own(every) if each.init and not each.kw_only)
    body.setdefault("__match_args__", tuple(positional))
    _give_methods(body, frozen=frozen)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return abc.update_abstractmethods(made)


_UNWANTED: Final = ("__dict__", "__weakref__")


def _described(given: Any, name: str, text: str, *, kw_only: bool) -> Field:
    described = given if isinstance(given, Field) else Field(given)
    described.name = name
    described.type = text
    described.kw_only = described.kw_only or kw_only
    if text.startswith(("ClassVar", "typing.ClassVar")):
        described.sort = CLASS_VARIABLE
    return described


def _give_methods(body: dict[str, Any], *, frozen: bool) -> None:
    given_hash = body.get("__hash__", MISSING)
    if given_hash is MISSING or (given_hash is None and "__eq__" in body):
        body["__hash__"] = _FIRST["__hash__"] if frozen else None
    for name in ("__init__", "__repr__", "__eq__"):
        body.setdefault(name, _FIRST[name])
    if frozen:
        body["__setattr__"] = _refuse_to_set
        body["__delattr__"] = _refuse_to_delete
        body.setdefault("__getstate__", _state)
        body.setdefault("__setstate__", _restore)


def _first(name: str, write: Callable[[Any], tuple[list[str], dict[str, object]]]) -> Any:
    """Give the method all classes begin with: it makes the real one, and puts that in its place."""

    def first(self: Any, *args: Any, **named: Any) -> Any:
        owner = next(kind for kind in type(self).__mro__ if kind.__dict__.get(name) is first)
        lines, known = write(owner)
        exec("\n".join(lines), known)  # noqa: S102 - as dataclasses does, of our own names only
        method: Any = known.pop(name)
        method.__qualname__ = f"{owner.__qualname__}.{name}"
        method.__module__ = owner.__module__
        setattr(owner, name, method)
        return method(self, *args, **named)

    return first


def _write_init(owner: Any) -> tuple[list[str], dict[str, object]]:
    frozen = owner.__dataclass_params__.frozen
    known: dict[str, object] = {"_put": object.__setattr__, "_none": MISSING}
    positional, named, lines = ["self"], list[str](), list[str]()
    for each in _own(owner.__dict__[_FIELDS]):
        name, value = each.name, each.name
        if each.maker is not MISSING:
            known[f"_make_{name}"] = each.maker
            value = f"_make_{name}()"
            if each.init:
                value = f"{value} if {name} is _none else {name}"
        elif not each.init:
            continue
        if each.init:
            (named if each.kw_only else positional).append(_parameter(each, known))
        lines.append(f" _put(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(owner, "__post_init__"):
        lines.append(" self.__post_init__()")
    words = [*positional, *(("*", *named) if named else ())]
    return [f"def __init__({', '.join(words)}):", *(lines or [" pass"])], known


def _parameter(each: Field, known: dict[str, object]) -> str:
    if each.maker is not MISSING:
        return f"{each.name}=_none"
    if each.given is MISSING:
        return each.name
    known[f"_default_{each.name}"] = each.given
    return f"{each.name}=_default_{each.name}"


def _write_repr(owner: Any) -> tuple[list[str], dict[str, object]]:
    shown = (each.name for each in _own(owner.__dict__[_FIELDS]) if each.repr)
    parts = ", ".join(f"{name}={{self.{name}!r}}" for name in shown)
    return ["def __repr__(self):", f" return f'{{self.__class__.__qualname__}}({parts})'"], {}


def _write_eq(owner: Any) -> tuple[list[str], dict[str, object]]:
    same = f"{_values('self', owner)} == {_values('other', owner)}"
    return [
        "def __eq__(self, other):",
        f" return {same} if other.__class__ is self.__class__ else NotImplemented",
    ], {}


def _write_hash(owner: Any) -> tuple[list[str], dict[str, object]]:
    return ["def __hash__(self):", f" return hash({_values('self', owner)})"], {}


def _values(of: str, owner: Any) -> str:
    compared = (each.name for each in _own(owner.__dict__[_FIELDS]) if each.compare)
    return f"({''.join(f'{of}.{name},' for name in compared)})"


_FIRST: Final = {
    "__init__": _first("__init__", _write_init),
    "__repr__": _first("__repr__", _write_repr),
    "__eq__": _first("__eq__", _write_eq),
    "__hash__": _first("__hash__", _write_hash),
}


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(value: Any, name: str, what: str) -> None:
    kind = type(value)
    if _FIELDS in kind.__dict__ or name in kind.__dataclass_fields__:
        raise _real().FrozenInstanceError(f"cannot {what} field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _own(every: dict[str, Field]) -> Iterator[Field]:
    # A class may have been made by the real module, which marks its fields in its own way.
    return (each for each in every.values() if repr(_sort(each)) == repr(FIELD))


def _present(value: object) -> object:
    """Give the sign that the module now in force uses for the same."""
    return getattr(sys.modules["dataclasses"], repr(value)) if isinstance(value, Sign) else value


def _real() -> Any:
    from uphold.daemon.sparing import real  # noqa: PLC0415 - that imports this one

    return real("dataclasses")


def _sort(each: Any) -> object:
    return each.sort if type(each) is Field else each._field_type  # noqa: SLF001 - as they do
