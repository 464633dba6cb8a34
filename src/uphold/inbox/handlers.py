"""The table of what a flag can ask for: names, order of work, parameters, and the wish of each.

These are uphold's own, registered as plug-ins are (`uphold.plugins`). No flag can do what is not
in the table, and nothing is added to it that the configuration does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Final

from uphold.core import orders
from uphold.core.orders import Wish
from uphold.plugins import FlagContent, Handler, Urgency

FEWEST_COMMITS: Final = 1
MOST_COMMITS: Final = 10


def _commits(value: object) -> str:
    # A bool is an int to Python, but nobody rolls back True commits.
    if type(value) is int and FEWEST_COMMITS <= value <= MOST_COMMITS:
        return ""
    return f"a whole number from {FEWEST_COMMITS} to {MOST_COMMITS}"


def _about_its_worker(kind: Callable[..., Wish], **more: object) -> Callable[[FlagContent], Wish]:
    return lambda flag: kind(names=(flag.worker_id,), **more)


def _roll_back(flag: FlagContent) -> Wish:
    commits = int(flag.params.get("commits_back", 1))
    return orders.RollBackCode(names=(flag.worker_id,), commits=commits)


UPDATE_CODE: Final = Handler(
    "update_code", Urgency.CODE, 10, wish=_about_its_worker(orders.UpdateCode)
)
UPDATE_CODE_DEPS: Final = Handler(
    "update_code_deps",
    Urgency.CODE,
    11,
    wish=_about_its_worker(orders.UpdateCode, dependencies=True),
)
ROLLBACK_CODE: Final = Handler(
    "rollback_code",
    Urgency.CODE,
    12,
    params=MappingProxyType({"commits_back": _commits}),
    wish=_roll_back,
)
PAUSE_WATCHER: Final = Handler(
    "pause_watcher",
    Urgency.OPERATIONAL,
    20,
    aliases=("pause",),
    wish=_about_its_worker(orders.PauseWorkers),
)
RESUME_WATCHER: Final = Handler(
    "resume_watcher",
    Urgency.OPERATIONAL,
    21,
    aliases=("resume",),
    wish=_about_its_worker(orders.ResumeWorkers),
)
RESTART_WATCHER: Final = Handler(
    "restart_watcher",
    Urgency.OPERATIONAL,
    22,
    aliases=("restart",),
    wish=_about_its_worker(orders.RestartSlowly),
)
DIAGNOSTICS: Final = Handler(
    "diagnostics", Urgency.DIAGNOSTICS, 30, wish=_about_its_worker(orders.Diagnose)
)
VERIFY_DB: Final = Handler(
    "verify_db", Urgency.DIAGNOSTICS, 31, wish=_about_its_worker(orders.VerifyDatabase)
)
HANDLERS: Final = (
    UPDATE_CODE,
    UPDATE_CODE_DEPS,
    ROLLBACK_CODE,
    PAUSE_WATCHER,
    RESUME_WATCHER,
    RESTART_WATCHER,
    DIAGNOSTICS,
    VERIFY_DB,
)
"""What uphold itself knows; handlers of others are rows added to these."""


def find_handler(name: str, table: tuple[Handler, ...] = HANDLERS) -> Handler | None:
    """Find a handler by its name or another name of it."""
    for handler in table:
        if name == handler.name or name in handler.aliases:
            return handler
    return None


def split_action(
    text: str, table: tuple[Handler, ...] = HANDLERS, others: Iterable[str] = ()
) -> tuple[str, str] | None:
    """Split `update_code_deps_web` into the action and what follows; the longest action wins.

    `others` are actions that are not in the table.
    """
    own = (word for handler in table for word in (handler.name, *handler.aliases))
    fitting = (each for each in (*own, *others) if text == each or text.startswith(f"{each}_"))
    best = max(fitting, key=len, default="")
    return (best, text[len(best) + 1 :]) if best else None
