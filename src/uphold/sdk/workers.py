"""`Worker`: the contract of a worker written in Python.

A class that does not keep it is refused when it is declared, with its place and what it lacks:
the earliest moment, and the one at which somebody looks at the code.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Iterator
from typing import Any

from uphold.sdk.healths import Health

_ABSTRACT = "__uphold_abstract__"
_PARTS = {
    "setup": "async def setup(self)",
    "run": "async def run(self, stopping)",
    "health": "def health(self) -> uphold.Health",
}


class Worker:
    """A worker that uphold hosts in a process of its own.

    `setup`, `run` and `teardown` may be `async def`, or plain `def`, which then runs in a
    thread, so that the heart goes on beating. `health` is asked in between, and answers at
    once. A class for others to complete is declared with `abstract=True`.
    """

    def __init_subclass__(cls, *, abstract: bool = False, **others: Any) -> None:
        super().__init_subclass__(**others)
        setattr(cls, _ABSTRACT, abstract)
        if abstract:
            return
        wrong = list(shortcomings(cls))
        if wrong:
            raise TypeError(
                f"the class {cls.__qualname__} ({_place(cls)}) is not a whole uphold.Worker: "
                f"{', '.join(wrong)}. If others are to complete it, declare it with "
                f"'class {cls.__name__}(…, abstract=True)'."
            )

    def setup(self) -> Awaitable[None] | None:
        """Get everything that is needed; when it returns, the worker is ready."""
        raise NotImplementedError

    def run(self, stopping: Any) -> Awaitable[None] | None:
        """Work until the work is done, or `stopping` says to stop (`Stopping`).

        A plain `def` gets a `BlockingStopping`, whose `wait` blocks.
        """
        raise NotImplementedError

    def health(self) -> Health:
        """Say how it goes, at once."""
        raise NotImplementedError

    def teardown(self) -> Awaitable[None] | None:
        """Give back what `setup` took; called after `run`, however that ended."""
        return None


def shortcomings(cls: type[Worker]) -> Iterator[str]:
    """Name what a class lacks to be a worker."""
    for name, example in _PARTS.items():
        part = inspect.getattr_static(cls, name)
        if part is getattr(Worker, name):
            yield f"it has no {name} (write '{example}')"
        elif not callable(part) and not isinstance(part, staticmethod | classmethod):
            yield f"its {name} is no method (write '{example}')"
        else:
            yield from _misshapen(cls, name, example)


def is_abstract(cls: type[Worker]) -> bool:
    """Tell whether a class is declared for others to complete."""
    return cls is Worker or bool(vars(cls).get(_ABSTRACT)) or inspect.isabstract(cls)


def is_async(function: Any) -> bool:
    """Tell whether calling this gives something to await, also behind a decorator."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def _misshapen(cls: type[Worker], name: str, example: str) -> Iterator[str]:
    function = getattr(cls, name)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        yield f"its {name} yields (write '{example}')"
    elif name == "health" and is_async(function):
        yield f"its health is async, and must answer at once (write '{example}')"
    elif name == "run" and not _takes_stopping(function):
        yield f"its run does not take the stop signal (write '{example}')"


def _takes_stopping(function: Any) -> bool:
    try:
        inspect.signature(function).bind("self", "stopping")
    except TypeError:
        return False
    except ValueError:  # a function without a readable signature may take anything
        return True
    return True


def _place(cls: type) -> str:
    """Say where a class is being declared."""
    frame = sys._getframe(1)  # noqa: SLF001 - the class statement has no other trace
    while frame.f_back is not None and frame.f_globals.get("__name__") != cls.__module__:
        frame = frame.f_back
    if frame.f_globals.get("__name__") != cls.__module__:
        return cls.__module__
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
