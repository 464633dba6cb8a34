"""Plug-ins: what they give, and how they are found, by entry point in a group for each kind.

Finding one runs the code of others, so only processes that may fail by it do that: the supervisor
asks one (`inbox.consulting`, decision 0018). So far there is one group, of handlers for flags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from uphold.errors import UpholdError
from uphold.patterns import pattern

if TYPE_CHECKING:
    from uphold.core.orders import Refusal, Wish

HANDLERS: Final = "uphold.handlers"
"""The group of entry points that give a `Handler`."""
UNUSABLE: Final = "UPH_PLUGIN_UNUSABLE"
FAILED: Final = "UPH_PLUGIN_FAILED"
LARGEST_NUMBER: Final = 999
MOST_NAMES: Final = 32
"""Aliases, and parameters, of one handler."""
_NAME: Final = pattern(r"[a-z][a-z0-9_]{0,63}")

Check = Callable[[object], str]
"""Looks at the value of one parameter: an empty text if it is right, else what it must be."""


class FlagContent(Protocol):
    """What a handler may know of a flag."""

    @property
    def task_id(self) -> str:
        """Give the id that its sender looks for in the receipt."""

    @property
    def handler(self) -> str:
        """Give the handler's own name, whatever the file called it."""

    @property
    def worker_id(self) -> str:
        """Name the worker it is for: one that is declared here."""

    @property
    def label(self) -> str | None:
        """Give the note that it carries."""

    @property
    def params(self) -> Mapping[str, Any]:
        """Give its parameters, each found right by the handler's own check."""

    @property
    def sender(self) -> str | None:
        """Name who signed it; None if nobody did."""


class Urgency(IntEnum):
    """The classes of handlers, in the order in which they are worked through."""

    EMERGENCY = 0
    """Kept free by uphold itself: whatever is put here comes before everything else."""
    CODE = 1
    OPERATIONAL = 2
    DIAGNOSTICS = 3


class Handler(NamedTuple):
    """One thing that a flag can ask for: its row in the table, and the wish it stands for."""

    name: str
    urgency: Urgency
    number: int
    """Its place among all others; smaller comes first."""
    aliases: tuple[str, ...] = ()
    params: Mapping[str, Check] = MappingProxyType({})
    """What it takes, all of it optional; anything else is refused."""
    wish: Callable[[FlagContent], Wish | Refusal] | None = None
    """Says what a flag wishes; the same for the same flag, and without doing anything. None where
    only the row is known: the plug-in is asked in a process of its own."""


def find(group: str, name: str) -> object:
    """Load what an installed package offers under this name; UpholdError says why it cannot be."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - heavy, and seldom needed

    offers = list(entry_points(group=group, name=name))
    if not offers:
        raise _unusable(f"no installed package offers a '{name}' in the group {group}.")
    if len(offers) > 1:
        packages = ", ".join(sorted({each.dist.name if each.dist else "?" for each in offers}))
        raise _unusable(f"'{name}' is offered more than once in the group {group}, by {packages}.")
    try:
        return offers[0].load()
    except BaseException as cause:  # a module may even try to end the program
        raise _unusable(f"{offers[0].value} cannot be loaded: {told(cause)}.") from cause


def fault_of_handler(name: str, thing: object) -> str:
    """Say what is wrong with what is offered as a handler of this name; empty if nothing is."""
    if not isinstance(thing, Handler):
        return f"it must be an uphold.plugins.Handler, and is a {type(thing).__name__}"
    fault = fault_of_row(name, thing)
    return fault or ("" if callable(thing.wish) else "its wish must be a function of a flag")


def fault_of_row(name: str, row: Any) -> str:
    """Say what is wrong with a handler's row, whoever filled its fields; empty if nothing is."""
    if row.name != name:
        return f"its entry point is called '{name}' and the handler itself {row.name!r}"
    if not isinstance(row.aliases, tuple):
        return f"its aliases must be a tuple, not {row.aliases!r}"
    if not isinstance(row.params, Mapping) or not all(map(callable, row.params.values())):
        return "its params must be names with a function each that looks at the value"
    for each in (name, *row.aliases, *row.params):
        if not (isinstance(each, str) and _NAME.fullmatch(each)):
            return f"{each!r} is no name: small letters, digits and '_', at most 64"
    if max(len(row.aliases), len(row.params)) > MOST_NAMES:
        return f"it may have {MOST_NAMES} aliases, and as many params, and has more"
    if not isinstance(row.urgency, Urgency):
        return f"its urgency must be one of uphold.plugins.Urgency, not {row.urgency!r}"
    if type(row.number) is not int or not 0 <= row.number <= LARGEST_NUMBER:
        return f"its number must be from 0 to {LARGEST_NUMBER}, not {row.number!r}"
    return ""


def told(cause: BaseException) -> str:
    """Put what somebody else's code raised into a few words."""
    return f"{type(cause).__name__}: {cause}"[:300].rstrip(": .")


def _unusable(reason: str) -> UpholdError:
    return UpholdError(reason, code=UNUSABLE)
