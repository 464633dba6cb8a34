"""Modules that others import at once and the supervisor needs seldom or never (decision 0014).

Each gets a stand-in with the few names that are touched while importing. Whoever touches
another name gets the real module then, so nothing is missing; it only comes late.
"""

from __future__ import annotations

import os
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from uphold.daemon import dataclassing

if TYPE_CHECKING:
    from collections.abc import Callable

_COROUTINE: Final = 0x80
"""The mark of a coroutine function among the flags of its code (inspect.CO_COROUTINE)."""


class Late(ModuleType):
    """Stands for a module until somebody needs more of it than is here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by the import machinery, which needs no answer
            raise AttributeError(name)
        return getattr(real(self.__name__), name)


class LateLogger:
    """Stands for a logger: asyncio has one, and speaks on it only when something is wrong."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    def debug(self, *_: object, **__: object) -> None:
        """Say nothing: nobody has asked for that much."""

    def __getattr__(self, name: str) -> Any:
        return getattr(real("logging").getLogger(self._name), name)


def spare() -> None:
    """Put the stand-ins where imports will find them; before anything else is imported."""
    # The supervisor speaks no TLS, and asyncio would import it: 4 MiB for nothing (decision 0002).
    sys.modules["ssl"] = None  # type: ignore[assignment]
    # msgspec takes it where it finds it, and does as well without.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    if sys.version_info < (3, 12):
        _hide_openssl("_sha256")
        _take_only_the_quick("datetime")
    else:
        _hide_openssl("_sha2")
    _take_only_the_quick("heapq")
    _stand_in("array")  # for descriptors sent through sockets; we send none
    _stand_in("asyncio.sslproto")
    _stand_in("dataclasses", **dataclassing.names())
    _stand_in(
        "inspect",
        iscoroutinefunction=_is_coroutine_function,
        isfunction=lambda thing: isinstance(thing, FunctionType),
        unwrap=_unwrapped,
    )
    # msgspec knows these types; we have no values of them.
    _stand_in("decimal", Decimal=type("Decimal", (), {}))
    unknown = type("SafeUUID", (), {"unknown": None})
    _stand_in("uuid", UUID=type("UUID", (), {}), SafeUUID=unknown, uuid4=_later("uuid", "uuid4"))
    _stand_in("linecache")
    _stand_in("msgspec.inspect")
    _stand_in("msgspec.toml")
    _stand_in("msgspec.yaml")
    _stand_in(
        "msgspec._json_schema",
        schema=_later("msgspec._json_schema", "schema"),
        schema_components=_later("msgspec._json_schema", "schema_components"),
    )
    _stand_in("traceback", extract_stack=_later("traceback", "extract_stack"))
    _stand_in("logging", DEBUG=10, getLogger=LateLogger, StreamHandler=LateLogger)
    _stand_in("platform", system=lambda: os.uname().sysname)
    _stand_in("subprocess", PIPE=-1, STDOUT=-2, DEVNULL=-3)
    _stand_in("urllib.parse", quote_from_bytes=_later("urllib.parse", "quote_from_bytes"))


def real(name: str) -> ModuleType:
    """Import what a stand-in stands for."""
    if isinstance(sys.modules.get(name), Late):
        sys.modules.pop(name, None)  # another thread may need it in the same moment
    return __import__(name, fromlist=("itself",))


def _hide_openssl(own_hashes: str) -> None:
    """Take Python's own SHA-256 if it has one: OpenSSL's library weighs 1 MiB, the rest 0.2."""
    try:
        own = __import__(own_hashes)
    except ImportError:
        return
    sys.modules["_hashlib"] = None  # type: ignore[assignment]
    _stand_in("hashlib", sha256=own.sha256)


def _take_only_the_quick(name: str) -> None:
    """Skip what a module defines in Python, only to put the one written in C over it."""
    try:
        quick = __import__(f"_{name}")
    except ImportError:
        return
    _stand_in(name, **{each: it for each, it in vars(quick).items() if each[0] != "_"})


def _stand_in(name: str, **names: object) -> None:
    if name not in sys.modules:
        late = Late(name)
        late.__dict__.update(names)
        sys.modules[name] = late


def _later(module: str, name: str) -> Callable[..., Any]:
    """Give a function that is fetched when it is called."""

    def called(*args: Any, **named: Any) -> Any:
        return getattr(real(module), name)(*args, **named)

    return called


def _is_coroutine_function(function: Any) -> bool:
    """Do what `inspect` does, for asyncio, which asks when it is given a signal handler."""
    while hasattr(function, "func"):  # a partial
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return bool(getattr(code, "co_flags", 0) & _COROUTINE)


def _unwrapped(function: Any) -> Any:
    """Do what `inspect` does, for asyncio, which describes its tasks with it."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
