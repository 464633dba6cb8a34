"""Reaching a share through helpers, each request with a time limit.

A helper that does not answer in time is given up; at most three may hang before no more are
started until one has ended. Whether the share can be reached is known from what was last asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from uphold.core.names import is_worker_name
from uphold.core.specs import Instant
from uphold.errors import HostFailure
from uphold.inbox.helpers import UNREACHABLE, Helper, start_helper

if TYPE_CHECKING:
    from uphold.core.specs import InboxSpec
    from uphold.ports.clocks import Clock

PATIENCE: Final = 9.0
"""Seconds that one answer may take: with a poll every 5 s, trouble is known within 15."""
MOST_STUCK: Final = 3
MOST_WAITING: Final = 1_000
NOT_MOUNTED: Final = "UPH_SHARE_NOT_MOUNTED"
FAILED: Final = "UPH_SHARE_FAILED"
_CODES: Final = {"unmounted": NOT_MOUNTED, "unreachable": UNREACHABLE}
_AWAY: Final = frozenset(_CODES.values())
_PARTING: Final = 1.0
"""Seconds that a helper has to end by itself."""
_YOUNG: Final = 1.0
"""Seconds a helper has lived at least that is replaced at once when it ends; others can wait."""


Begin: TypeAlias = Callable[
    [str, Mapping[str, Any], Callable[[bool], None]], Coroutine[Any, Any, Helper]
]
"""Starts a helper for a share, with its settings; it tells when a look is worth while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a share can be reached, as far as is known."""

    reachable: bool
    since: float
    """Wall time of the last change."""
    code: str = ""
    why: str = ""


class Reach:
    """The way to one share."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        spec: InboxSpec,
        *,
        owner: str,
        clock: Clock,
        tell: Callable[[Standing], None] | None = None,
        stir: Callable[[], None] | None = None,
        children: set[int] | None = None,
        patience: float = PATIENCE,
        begin: Begin | None = None,
    ) -> None:
        """`owner` marks what this supervisor has claimed; `tell` hears of changes of standing.

        `stir` is called when a look is worth while: something has come to an inbox that was asked
        to be watched, or nobody watches it any more.
        `children` is kept up to date: numbers of processes whose end nobody else may take.
        `begin` starts a helper, by default as a process of its own.
        """
        assert is_worker_name(owner), "it becomes the first part of names in processing/"
        self._spec = spec
        self._owner = owner
        self._clock = clock
        self._tell = tell
        self._stir = stir
        self._children: set[int] = set() if children is None else children
        self._patience = patience
        self._begin = begin or start_helper
        self._mark: dict[str, Any] | None = None
        self._helper: Helper | None = None
        self._stuck: list[Helper] = []
        self._starting = asyncio.Lock()
        self._asked = 0
        self._standing: Standing | None = None
        self._closed = False

    @property
    def standing(self) -> Standing | None:
        """Whether it can be reached; None if nothing was asked yet."""
        return self._standing

    @property
    def helped(self) -> bool:
        """Tell whether a helper is there, which could tell of news."""
        return self._helper is not None and self._helper.usable

    @property
    def stuck(self) -> int:
        """How many helpers hang."""
        self._forget_ended()
        return len(self._stuck)

    async def close(self) -> None:
        """Let the helper end; one that hangs is left to the kernel."""
        self._closed = True
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.hang_up()
            try:
                async with asyncio.timeout(_PARTING):
                    await helper.ended()
            except TimeoutError:
                self._stuck.append(helper)
        for left in self._stuck:
            left.abandon(_closed())
            left.let_go()
        self._stuck.clear()
        await asyncio.sleep(0)  # so that whoever waits for the ends of helpers has heard of them

    async def ask(self, what: str, **given: Any) -> Any:
        """Have something done on the share; HostFailure with a code if that is impossible."""
        if self._asked >= MOST_WAITING:
            raise HostFailure(
                f"{self._asked} requests wait for the share {self._spec.share} already.",
                code=UNREACHABLE,
            )
        self._asked += 1
        try:
            helper = await self._running()
            answer = await self._answer(helper, {"do": what, **given})
            result = self._result(answer)
        except HostFailure as cause:
            if cause.code in _AWAY:
                self._note(cause)
            elif cause.code == FAILED:  # trouble with one file: somebody has answered
                self._note(None)
            raise
        finally:
            self._asked -= 1
        self._note(None)
        return result

    async def ask_each(
        self, what: str, each: Sequence[Mapping[str, Any]]
    ) -> list[Any | HostFailure]:
        """Have the same done to several things at once; what failed is given in its place.

        A slow share answers for some of them only, and is asked for the rest again. Should that
        fail, what was done before is given nevertheless.
        """
        results: list[Any | HostFailure] = []
        while len(results) < len(each):
            try:
                answers = await self.ask(what, each=each[len(results) :])
            except HostFailure as cause:
                if not results:
                    raise
                results += [cause] * (len(each) - len(results))
                break
            results += [got["ok"] if "ok" in got else self._failure(got) for got in answers]
        for result in results:
            if isinstance(result, HostFailure) and result.code in _AWAY:
                self._note(result)
        return results

    async def _answer(self, helper: Helper, request: dict[str, Any]) -> dict[str, Any]:
        until = Instant(self._clock.now().mono + self._patience)
        cancel = self._clock.alarm(until, lambda: self._give_up(helper))
        try:
            return await helper.ask(request)
        finally:
            cancel()

    def _result(self, answer: dict[str, Any]) -> Any:
        if "no" not in answer:
            self._mark = answer["mark"]
            return answer["ok"]
        raise self._failure(answer)

    def _failure(self, answer: Mapping[str, Any]) -> HostFailure:
        return HostFailure(
            f"the share {self._spec.share}: {answer['text']}.",
            code=_CODES.get(answer["no"], FAILED),
            remedy="Is it mounted, and may this user read and write there?",
        )

    async def _running(self) -> Helper:
        async with self._starting:
            if self._closed:
                raise _closed()
            if self._helper is not None:
                if self._helper.usable:
                    return self._helper
                self._stuck.append(self._helper)
                self._helper = None
            self._forget_ended()
            if len(self._stuck) >= MOST_STUCK:
                raise HostFailure(
                    f"the share {self._spec.share} hangs: {MOST_STUCK} helpers wait for it.",
                    code=UNREACHABLE,
                    remedy="They are let go when its server answers; until then nobody asks it.",
                )
            began = self._clock.now().mono
            helper = await self._begin(
                self._spec.share, self._settings(), lambda lost: self._stirred(began, lost=lost)
            )
            self._children.add(helper.pid)
            helper.when_over(lambda: self._children.discard(helper.pid))
            self._helper = helper
            return helper

    def _stirred(self, began: float, *, lost: bool) -> None:
        """Hand on that a look is worth while, also to have a new helper watch."""
        young = self._clock.now().mono - began < _YOUNG
        if self._stir is not None and not self._closed and not (lost and young):
            self._stir()

    def _settings(self) -> dict[str, Any]:
        return {
            "layout": asdict(self._spec.layout),
            "paths": self._spec.paths,
            "pattern": self._spec.pattern,
            "owner": self._owner,
            "trusted": self._spec.owners,
            "mark": self._mark,
        }

    def _give_up(self, helper: Helper) -> None:
        """Stop waiting for a helper; everything that was asked of it has failed."""
        if self._helper is helper:
            self._helper = None
            self._stuck.append(helper)
        helper.abandon(
            HostFailure(
                f"the share {self._spec.share} did not answer within {self._patience:g} s.",
                code=UNREACHABLE,
                remedy="Is its server up, and the network?",
            )
        )

    def _forget_ended(self) -> None:
        self._stuck = [helper for helper in self._stuck if not helper.over()]

    def _note(self, failure: HostFailure | None) -> None:
        """Remember how the share stands, and tell of it if that has changed."""
        reachable = failure is None
        before = self._standing
        if self._closed:
            return
        if before is not None and before.reachable == reachable:
            if failure is not None:
                self._standing = replace(before, code=failure.code, why=failure.message)
            return
        self._standing = Standing(
            reachable=reachable,
            since=self._clock.now().wall,
            code="" if failure is None else failure.code,
            why="" if failure is None else failure.message,
        )
        if self._tell is not None:
            self._tell(self._standing)


def _closed() -> HostFailure:
    return HostFailure("the share is no longer used.", code=UNREACHABLE)
