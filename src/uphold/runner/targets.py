"""From "app.indexer:Indexer" to the class; what is wrong on the way is said with its place."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from uphold.runner.describing import describe, place_of, shown
from uphold.sdk.workers import Worker, is_abstract


class TargetWrong(Exception):  # noqa: N818 - a state of affairs, not an "error" by name
    """The target cannot be hosted; the message says why and where."""


def load(target: str) -> type[Worker]:
    """Import what a target names, and see that it is a worker."""
    module_name, colon, path = target.partition(":")
    if not colon or not all(part.isidentifier() for part in f"{module_name}.{path}".split(".")):
        raise TargetWrong(f"the target must be 'package.module:Class'; it is {target!r}.")
    found = _found(_imported(module_name), path)
    if not isinstance(found, type) or not issubclass(found, Worker):
        what = "a class" if isinstance(found, type) else f"a {type(found).__name__}"
        raise TargetWrong(
            f"{target} is {what} and not an uphold.Worker; "
            f"write 'class {path.rpartition('.')[2]}(uphold.Worker)'."
        )
    if is_abstract(found):
        raise TargetWrong(
            f"{target} is abstract, for others to complete; name a class that completes it."
        )
    return found


def _imported(name: str) -> Any:
    try:
        # Not `import_module`: its frame would be taken for the place of a mistake.
        __import__(name)
        return sys.modules[name]
    except ModuleNotFoundError as cause:
        raise TargetWrong(_not_there(name, cause)) from cause
    except (Exception, SystemExit) as cause:
        # The whole story goes to the log; the message has room for the place only.
        traceback.print_exc()
        raise TargetWrong(f"the module {name} cannot be imported: {describe(cause)}.") from cause


def _not_there(name: str, cause: ModuleNotFoundError) -> str:
    missing = cause.name or ""
    place = place_of(cause)
    if place is not None:
        return f"the module {name} cannot be imported: there is no module {missing!r} ({place})."
    if missing == name or name.startswith(f"{missing}."):
        more = str(cause).partition(";")[2]  # such as: 'app' is not a package
        here = os.getcwd()  # noqa: PTH109 - text is enough
        return (
            f"there is no module {missing!r}{more and ','}{more}; it was looked for in {here} "
            "and where Python keeps its modules."
        )
    return f"the module {name} cannot be imported: {cause}."


def _found(module: Any, path: str) -> Any:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise TargetWrong(_lacking(module, found, part))
        found = getattr(found, part)
    return found


def _lacking(module: Any, found: Any, part: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    file = shown(getattr(module, "__file__", None) or "built in")
    near = get_close_matches(part, list(vars(found)), 1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"there is no '{part}' in the module {module.__name__} ({file}).{hint}"
