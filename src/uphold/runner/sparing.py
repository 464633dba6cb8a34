"""asyncio without TLS until a worker uses the network: 4 MB that many never need.

asyncio imports `ssl` at once. While it does, a stand-in takes that place; then the stand-in is
taken away again, so that a worker's own `import ssl` gets the real module. What asyncio kept
of the stand-in fetches the real one as soon as anything is asked of it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_LATE = ("ssl", "asyncio.sslproto")


class Late(ModuleType):
    """Stands for a module until somebody needs it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by the import machinery, which needs no answer
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_asyncio() -> None:
    """Import asyncio, with stand-ins for what is heavy and seldom used."""
    if "asyncio" in sys.modules:
        return
    late = {name: Late(name) for name in _LATE if name not in sys.modules}
    sys.modules.update(late)
    try:
        import_module("asyncio")
    finally:
        for name, stand_in in late.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
