"""Asking plug-ins: which handlers they are, and what a flag for them wishes.

Their code runs in a process of its own for each question (`advising`), with a limit: one that
raises, hangs, fills the memory, or takes the interpreter down with it costs its own flag, and those
behind that flag no more than the limit.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.core import orders
from uphold.core.texts import printable
from uphold.errors import EXIT_USAGE, Malformed, UpholdError
from uphold.inbox.handlers import FEWEST_COMMITS, HANDLERS, MOST_COMMITS, find_handler
from uphold.patterns import pattern
from uphold.plugins import FAILED, UNUSABLE, Handler, Urgency, fault_of_row
from uphold.wire.codecs import decode, encode
from uphold.wire.wishes import names_in, read_wish

if TYPE_CHECKING:
    from uphold.core.orders import Wish
    from uphold.inbox.flags import Flag
    from uphold.ports.clocks import Clock

LIMIT: Final = 10.0
"""Seconds a plug-in gets for one answer."""
AGAIN: Final = 60.0
"""Seconds after which those who could not be used are asked again: somebody may install them."""
_AT_ONCE: Final = 8
"""Plug-ins that are asked side by side: a busy machine must not make all of them late."""
_LONGEST: Final = 500
"""Characters of a plug-in's own words that are repeated."""
_HANGS: Final = "hangs"
_NUMBERS: Final = pattern(r"0x[0-9a-fA-F]+|[0-9]+")

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Puts a question to a process of plug-ins; whatever goes wrong is an answer too."""


class Survey(NamedTuple):
    """What became of the handlers that a configuration names."""

    rows: tuple[Handler, ...] = ()
    """Those that can be used, in the order of the configuration."""
    unusable: Mapping[str, str] = MappingProxyType({})
    """The others, and why."""


def ask(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask in a new process. Takes a moment: call it on a thread, never on the loop."""
    from uphold.host.commands import run  # noqa: PLC0415 - only where there are plug-ins

    words = [sys.executable, "-I", "-m", "uphold.inbox.advising"]
    done = run(words, cwd="/", limit=LIMIT, input=encode({**question, "limit": LIMIT}))
    if done.timed_out:
        return {"failed": f"it did not answer within {LIMIT:g} s.", _HANGS: True}
    try:
        return decode(dict, done.stdout)
    except Malformed:
        last = done.stderr.strip().rpartition("\n")[2]
        why = done.error.replace(f"'{words[0]}'", "its process") or "its answer cannot be read."
        return {"failed": f"{why} {last}".strip()}


def survey(names: Iterable[str], ask: Ask = ask) -> Survey:
    """Find out which of these handlers can be used, one after the other."""
    return admit({name: describe(name, ask) for name in names})


def describe(name: str, ask: Ask = ask) -> Handler | str:
    """Give the row of one handler, or why there is none."""
    if (own := find_handler(name)) is not None:
        return f"'{own.name}' is a handler of uphold itself, and always there."
    answer = ask({"handler": name})
    try:
        row = _row(answer)
    except (KeyError, ValueError, TypeError):
        return _words(answer.get("unusable") or answer.get("failed") or "its answer is no row.")
    # Looked at there too, but by a process in which a plug-in can do what it likes.
    fault = fault_of_row(name, row)
    return _words(f"its answer is no row: {fault}.") if fault else row


def admit(found: Mapping[str, Handler | str]) -> Survey:
    """Take those who clash with nobody: neither with uphold's own nor with one before them."""
    rows: list[Handler] = []
    unusable: dict[str, str] = {}
    for name, row in found.items():
        if isinstance(row, str):
            unusable[name] = row
            continue
        for word in (row.name, *row.aliases):
            taken = find_handler(word, (*HANDLERS, *rows))
            if taken is not None:
                unusable[name] = f"'{word}' is taken by the handler {taken.name}."
                break
        else:
            rows.append(row)
    return Survey(tuple(rows), unusable)


def wish_in(answer: Mapping[str, Any], flag: Flag, allowed: Collection[str]) -> Wish:
    """Read what a plug-in makes of a flag; UpholdError if that comes to nothing.

    `allowed` are the workers that a flag may address here, and so the ones it may be about.
    """
    refused = answer.get("refused")
    if isinstance(refused, dict):
        code, text = _words(refused.get("code")), _words(refused.get("message"))
        raise UpholdError(text, code=code, exit_code=EXIT_USAGE)
    if "unusable" in answer:
        raise _unusable(flag.handler)
    try:
        wish = read_wish(answer["wish"])
    except (KeyError, AttributeError):
        fault = _words(answer.get("failed") or "it gave no answer.")
    except Malformed as problem:
        fault = f"{problem.message}."
    else:
        fault = _fault(wish, allowed)
        if not fault:
            return wish
    raise UpholdError(f"the plug-in of {flag.handler} failed: {fault}", code=FAILED)


class Consultants:
    """The plug-ins of one inbox, as a supervisor asks them."""

    def __init__(self, names: tuple[str, ...], clock: Clock, ask: Ask = ask) -> None:
        self.names = names
        self.survey = Survey()
        self._clock = clock
        self._ask = ask
        self._found: dict[str, Handler | str] = {}
        self._next = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        """One for all who look, and it outlives whoever began it: nobody works with half of it."""
        self._news: dict[str, str] = {}

    async def look(self) -> Mapping[str, str]:
        """Ask those who are not known to be usable, now and then; give what is wrong since now.

        Answers are waited for only while somebody was never asked: after that one that hangs is
        as unusable as it was, and what became of it is known at a later look.
        """
        if self._asking is None and self._waiting() and self._clock.now().mono >= self._next:
            self._asking = asyncio.create_task(self._ask_around(), name="plug-ins")
        asking = self._asking
        if asking is not None and not self._found.keys() >= set(self.names):
            await asyncio.wait((asking,))
            if not asking.cancelled():
                asking.result()
        news, self._news = self._news, {}
        return news

    def close(self) -> None:
        """Wait for nobody any more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _ask_around(self) -> None:
        seats = asyncio.Semaphore(_AT_ONCE)

        async def answer(name: str) -> Handler | str:
            async with seats:
                found: Handler | str = await _apart(describe, name, self._ask)
                return found

        try:
            names = self._waiting()
            self._found.update(zip(names, await asyncio.gather(*map(answer, names)), strict=True))
        finally:
            self._asking = None
        self._next = self._clock.now().mono + AGAIN
        known = self.survey.unusable
        self.survey = admit({name: self._found[name] for name in self.names})
        for name, why in self.survey.unusable.items():
            if name not in known or _gist(known[name]) != _gist(why):
                self._news[name] = why

    def _waiting(self) -> list[str]:
        return [name for name in self.names if not isinstance(self._found.get(name), Handler)]

    async def wish(self, flag: Flag, allowed: Collection[str]) -> Wish | None:
        """Say what a flag wishes; None if its handler is none of these, UpholdError as `wish_in`.

        One that hangs is not asked again for a while: its flags must not keep others waiting.
        """
        if flag.handler not in self.names:
            return None
        if flag.handler in self.survey.unusable:
            raise _unusable(flag.handler)
        about = {key: getattr(flag, key) for key in _TOLD} | {"params": dict(flag.params)}
        question = {"handler": flag.handler, "flag": about}
        answer = await _apart(self._ask, question)
        if answer.get(_HANGS):
            self._give_up(flag.handler, str(answer["failed"]))
        return wish_in(answer, flag, allowed)

    def _give_up(self, name: str, why: str) -> None:
        self._next = self._clock.now().mono + AGAIN
        self._found[name] = why
        self.survey = admit({each: self._found[each] for each in self.names if each in self._found})


_TOLD: Final = ("task_id", "handler", "worker_id", "label", "sender")


async def _apart(function: Callable[..., Any], *args: object) -> Any:
    """Call something on a thread that nobody waits for when the supervisor ends.

    What it started ends by itself in time (`advising`).
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def hand_over(came_to: object, mistake: Exception | None = None) -> None:
        if answer.done():
            return
        if mistake is None:
            answer.set_result(came_to)
        else:
            answer.set_exception(mistake)

    def work() -> None:
        given: tuple[object, ...]
        try:
            given = (function(*args),)
        except Exception as mistake:  # noqa: BLE001 - whoever waits must hear of it
            given = (None, mistake)
        with suppress(RuntimeError):  # the loop is closed: nobody asks any more
            loop.call_soon_threadsafe(hand_over, *given)

    Thread(target=work, name="plug-in", daemon=True).start()
    return await answer


def _fault(wish: Wish, allowed: Collection[str]) -> str:
    names = names_in(wish)
    for name in names:
        if name not in allowed:
            return f"it wished for '{_words(name)}', whom no flag can be for here."
    if not names:
        return "its wish names no worker."
    if isinstance(wish, orders.SignalWorkers):
        from signal import Signals  # noqa: PLC0415 - the names only, when somebody sends one

        if f"SIG{wish.signal.removeprefix('SIG')}" not in Signals.__members__:
            return f"there is no signal '{_words(wish.signal)}'."
    if isinstance(wish, orders.RollBackCode) and not FEWEST_COMMITS <= wish.commits <= MOST_COMMITS:
        return f"it wished for {wish.commits} commits; {FEWEST_COMMITS} to {MOST_COMMITS} can be."
    return ""


def _gist(why: str) -> str:
    """Take out of a reason what is another one each time: addresses, process ids, times."""
    return _NUMBERS.sub("", why)


def _row(answer: Mapping[str, Any]) -> Handler:
    """Put an answer into the shape of a row; KeyError, ValueError or TypeError if it has none."""
    kinds = {key: type(answer[key]) for key in _ROW}
    if kinds != _ROW or len(answer) != len(_ROW):
        raise TypeError
    return Handler(
        name=answer["name"],
        urgency=Urgency(answer["urgency"]),
        number=answer["number"],
        aliases=tuple(answer["aliases"]),
        params=dict.fromkeys(answer["params"], _looked_at_there),
    )


_ROW: Final = {"name": str, "urgency": int, "number": int, "aliases": list, "params": list}


def _looked_at_there(_value: object) -> str:
    """Let a value pass: the check that knows it is the plug-in's own."""
    return ""


def _unusable(handler: str) -> UpholdError:
    # Not why: whoever reads the share need not know what is installed here, and how.
    text = f"the plug-in of {handler} cannot be used here; `uphold doctor` says why."
    return UpholdError(text, code=UNUSABLE)


def _words(text: object) -> str:
    """Repeat what a plug-in said as one line of plain text."""
    return printable(str(text)[:_LONGEST])
