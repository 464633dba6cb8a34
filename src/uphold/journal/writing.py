"""The journal the engine writes to: group commit, an answer for every batch.

What must reach the disk, or is large, is written by a thread: everything that waits when it
comes round is one transaction. A few facts that need not wait for the disk are written at once,
by whoever hands them in, if the thread has nothing to do (decision 0012). A batch that cannot be
written by itself is refused alone; when the disk says no, all of the group hear it.
"""

from __future__ import annotations

import asyncio
import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.errors import Malformed, StoreUnavailable
from uphold.journal.committing import Committer
from uphold.journal.connecting import is_busy, is_damage, unavailable
from uphold.journal.pruning import Keep
from uphold.journal.recalling import recall
from uphold.journal.rescuing import rescue, set_aside
from uphold.journal.rows import Owner, Rows, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from uphold.ports.journals import Batch, Memory

_LARGEST_GROUP: Final = 256
_LARGEST_ANSWER: Final = 1_000
_TRIES_WHILE_BUSY: Final = 100
_BETWEEN_TRIES: Final = 0.02
_A_MOMENT: Final = 0.01
_A_PAUSE: Final = 1.0
_FAR_TOO_MUCH: Final = 4
_FEW: Final = 16
"""Events that are written sooner than a thread is woken."""

_FAULTY_BATCH: Final = (
    Malformed,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
    ValueError,
    TypeError,
    OverflowError,
)
"""Errors that lie in what is written, not in the disk."""


class _Request(NamedTuple):
    answer: asyncio.Future[Any]
    batch: Batch | None = None
    work: Callable[[], object] | None = None
    last: bool = False


def open_journal(
    path: str | Path, *, boot_id: str, owner: Owner, now: float, keep: Keep | None = None
) -> tuple[SqliteJournal, str | None]:
    """Open the journal, or a fresh one in place of a damaged one; the second answer says so.

    A disk that is full or read-only does not hinder this: the journal can be recalled, and
    `append` raises StoreUnavailable until it can be written. Refused are only a journal
    that a newer uphold has changed.
    """
    path = Path(path).absolute()
    rescued = rescue(path, now)
    journal = SqliteJournal(path, boot_id=boot_id, owner=owner, now=now, keep=keep)
    try:
        journal.prepare()
    except sqlite3.DatabaseError as cause:
        if not is_damage(cause):
            raise unavailable(path, cause) from cause
        rescued = set_aside(path, now, str(cause))
        journal = SqliteJournal(path, boot_id=boot_id, owner=owner, now=now, keep=keep)
        journal.prepare()
    return journal, rescued


class SqliteJournal:
    """The supervisor's durable memory in one SQLite file."""

    def __init__(
        self, path: Path, *, boot_id: str, owner: Owner, now: float, keep: Keep | None = None
    ) -> None:
        self.path = path.absolute()
        self.fresh = not self.path.exists()
        """True when there was no journal: what else is known must be gathered elsewhere."""
        self._boot_id = boot_id
        self._keep = keep
        """None: whoever opened it is no supervisor, and nothing is forgotten unasked."""
        self._committer = Committer(self.path, owner=owner, boot_id=boot_id, now=now)
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pause = threading.Event()
        """Never set: waiting for it passes time on the thread."""
        self._asked = 0
        """Requests the thread has not answered; while there are any, the connection is its own."""
        self._pruning = False
        self._checkpointing = False
        self._closed = False

    @property
    def supervisor_id(self) -> str:
        """The id of the supervisor whose journal this is; empty while it cannot be written."""
        return self._committer.owner.id

    def prepare(self) -> None:
        """Bring the file up to date if the disk lets us; `append` tries again otherwise."""
        try:
            self._committer.prepare()
        except StoreUnavailable:
            raise
        except (sqlite3.OperationalError, OSError):
            return

    def settle(self, keep: Keep) -> None:
        """Keep so much of the past from now on."""
        self._keep = keep

    def recall(self) -> Memory:
        """Read what the last supervisor knew. Called once, before anything runs."""
        return recall(self.path, self._boot_id)

    async def append(self, batch: Batch) -> None:
        """Write a batch: StoreUnavailable if the disk says no, Malformed if the batch is wrong.

        In both cases nothing of it was written. The same batch again changes nothing. A
        caller that is cancelled meanwhile does not stop the writing.
        """
        if not self._write_here(batch):
            await self._ask(batch=batch)
        self._consider_checkpoint()
        if self._keep is not None and not self._closed:
            self._consider_pruning(self._keep)

    def _consider_checkpoint(self) -> None:
        """Shorten the log in a pause: it waits for the disk, and whoever writes waits for it."""
        if self._committer.overdue >= _FAR_TOO_MUCH:
            self._checkpoint()
        elif self._committer.overdue and not self._checkpointing:
            self._checkpointing = True
            asyncio.get_running_loop().call_later(_A_PAUSE, self._checkpoint)

    def _checkpoint(self) -> None:
        self._checkpointing = False
        if self._committer.overdue and not self._closed:
            self._ask(work=self._committer.checkpoint)

    async def events(
        self, *, after: int = 0, limit: int = 100, worker: str | None = None
    ) -> Sequence[Mapping[str, object]]:
        """Read recorded events as envelopes, oldest first; at most 1,000 at once."""
        number = max(0, min(limit, _LARGEST_ANSWER))
        found: list[dict[str, object]] = await self._ask(
            work=lambda: self._committer.events(after, number, worker)
        )
        return found

    async def prune(self, now: float) -> int:
        """Remove some of what is too old, between two transactions; 0 when nothing is left."""
        removed: int = await self._ask(
            work=lambda: self._committer.prune(now, self._keep or Keep())
        )
        return removed

    def _consider_pruning(self, keep: Keep) -> None:
        """Let go of what is too much: in pauses while that keeps up, at once when it does not."""
        surplus = self._committer.surplus(keep)
        if surplus >= _FAR_TOO_MUCH:
            self._ask(work=lambda: self._committer.prune_much(keep))
        elif surplus and not self._pruning:
            self._pruning = True
            self._prune_later()

    def _prune_later(self) -> None:
        # Whatever is written now goes first.
        asyncio.get_running_loop().call_later(_A_MOMENT, self._prune_some)

    def _prune_some(self) -> None:
        keep = self._keep
        if self._closed or keep is None:
            self._pruning = False
            return
        answer = self._ask(work=lambda: self._committer.prune_some(keep))
        answer.add_done_callback(self._pruned)

    def _pruned(self, answer: asyncio.Future[Any]) -> None:
        self._pruning = not answer.cancelled() and answer.exception() is None and answer.result()
        if self._pruning:
            self._prune_later()

    async def close(self) -> None:
        """Write what is queued, note that nothing is missing, and let go of the file."""
        if self._closed:
            return
        answer = self._ask(work=self._committer.close, last=True)
        self._closed = True
        await answer
        if self._thread is not None:
            self._thread.join()

    def _write_here(self, batch: Batch) -> bool:
        """Write a few facts at once; False if that is the thread's to do."""
        if self._asked or self._closed or batch.durable or len(batch.events) > _FEW:
            return False
        rows = rows_of(batch, boot_id=self._boot_id, owner=self._committer.owner)
        try:
            self._committer.write([rows], durable=False)
        except _FAULTY_BATCH as cause:
            raise _malformed(cause) from cause
        except Exception as cause:
            if is_busy(cause):
                return False
            raise unavailable(self.path, cause) from cause
        return True

    def _ask(
        self,
        *,
        batch: Batch | None = None,
        work: Callable[[], object] | None = None,
        last: bool = False,
    ) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._closed:
            answer.set_exception(
                StoreUnavailable(f"the journal {self.path} is closed: uphold is shutting down.")
            )
            return answer
        self._asked += 1
        self._requests.put(_Request(answer, batch, work, last))
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="journal", daemon=True)
            self._thread.start()
        return answer

    def _serve(self) -> None:
        """Answer requests in their order until the last one."""
        while True:
            waiting = self._gather()
            appends: list[_Request] = []
            for request in waiting:
                if request.batch is not None:
                    appends.append(request)
                    continue
                self._append_all(appends)
                appends = []
                self._work(request)
            self._append_all(appends)
            if waiting[-1].last:
                return

    def _gather(self) -> list[_Request]:
        """Take everything that waits, in order."""
        waiting = [self._requests.get()]
        while len(waiting) < _LARGEST_GROUP and not waiting[-1].last:
            try:
                waiting.append(self._requests.get_nowait())
            except Empty:
                break
        return waiting

    def _work(self, request: _Request) -> None:
        assert request.work is not None
        try:
            result = request.work()
        except Exception as cause:  # noqa: BLE001 - the thread outlives any failure, and tells it
            self._answer([(request, unavailable(self.path, cause))])
        else:
            self._answer([(request, result)])

    def _settle(self, answers: list[tuple[_Request, object]]) -> None:
        """Give the outcomes, on the loop."""
        self._asked -= len(answers)
        for request, outcome in answers:
            if request.answer.done():
                continue
            if isinstance(outcome, BaseException):
                request.answer.set_exception(outcome)
            else:
                request.answer.set_result(outcome)

    def _answer(self, answers: list[tuple[_Request, object]]) -> None:
        """Hand the outcomes to the loop, all at once. A loop that is gone needs none."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Request, object]]] = {}
        for answer in answers:
            by_loop.setdefault(answer[0].answer.get_loop(), []).append(answer)
        for loop, mine in by_loop.items():
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._settle, mine)

    def _append_all(self, requests: list[_Request]) -> None:
        answers: list[tuple[_Request, object]] = []
        ready: list[tuple[_Request, Rows]] = []
        for request in requests:
            assert request.batch is not None
            try:
                rows = rows_of(request.batch, boot_id=self._boot_id, owner=self._committer.owner)
            except Malformed as problem:
                answers.append((request, problem))
            else:
                ready.append((request, rows))
        if ready:
            answers += self._commit(ready)
        self._answer(answers)

    def _commit(self, ready: list[tuple[_Request, Rows]]) -> list[tuple[_Request, object]]:
        durable = any(request.batch is not None and request.batch.durable for request, _ in ready)
        try:
            self._write_patiently([rows for _, rows in ready], durable=durable)
        except _FAULTY_BATCH as cause:
            if len(ready) > 1:  # one of them is wrong: each for itself, in the same order
                return [answer for each in ready for answer in self._commit([each])]
            return [(ready[0][0], _malformed(cause))]
        except Exception as cause:  # noqa: BLE001 - the thread outlives any failure, and tells it
            return [(request, unavailable(self.path, cause)) for request, _ in ready]
        return [(request, None) for request, _ in ready]

    def _write_patiently(self, group: list[Rows], *, durable: bool) -> None:
        """Write a group; somebody who reads the file with other tools may hold it for a moment."""
        for _ in range(_TRIES_WHILE_BUSY):
            try:
                return self._committer.write(group, durable=durable)
            except sqlite3.OperationalError as cause:
                if not is_busy(cause):
                    raise
            self._pause.wait(_BETWEEN_TRIES)
        return self._committer.write(group, durable=durable)


def _malformed(cause: Exception) -> Malformed:
    if isinstance(cause, Malformed):
        return cause
    return Malformed(f"a batch for the journal cannot be written: {cause}.")
