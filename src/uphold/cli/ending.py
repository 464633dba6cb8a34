"""Stopping the supervisor: ask, then TERM, then KILL, each with its own wait, and prove the end.

Whoever had to be killed, or was dead already, leaves workers behind; a helper that takes
the lock stops those too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.cli.launching import stop_left_overs
from uphold.cli.offline import anything_alive
from uphold.cli.orders import author, result_line
from uphold.cli.owners import Watched, hold, owner_of, watch
from uphold.cli.speaking import notice, print_document, say, warn
from uphold.cli.times import now
from uphold.control.client import PATIENCE, Connection
from uphold.core.texts import printable, utc_text
from uphold.errors import UpholdError
from uphold.host.timing import PlainClock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from uphold.cli.places import Place

_MOST_NAMED: Final = 20
LAST_STOP: Final = "last_stop.json"
DEFAULT_GRACE: Final = 30.0
"""Seconds the longest chain may take when the supervisor could not say."""
MARGIN: Final = 5.0
"""Seconds each step has on top of what the workers need."""
TO_ANSWER: Final = 1.0
"""Seconds a supervisor has for saying yes, however short the patience: mostly it has heard."""


class Ending(NamedTuple):
    """What a stop came to."""

    was_running: bool
    pid: int | None = None
    forced: str | None = None
    """The signal it took, if asking was not enough."""
    results: tuple[dict[str, Any], ...] = ()
    """What became of workers that had to be stopped without their supervisor."""
    job_id: str | None = None
    kept: bool = False
    under_way: bool = False
    """It was asked to end, and nobody waited to see it."""

    @property
    def complete(self) -> bool:
        """True when nothing that should have ended is left."""
        return all(result.get("ok") for result in self.results)


class Patience:
    """How long this command may still wait; what the others need is none of its business."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self._clock = PlainClock()
        self._began = self._clock.mono()

    def of(self, seconds: float) -> float:
        """Give so many seconds, or what is left if that is less."""
        if self.limit is None:
            return seconds
        return max(0.0, min(seconds, self._began + self.limit - self._clock.mono()))

    def is_over(self) -> bool:
        """Tell whether nothing is left."""
        return self.limit is not None and self.of(1.0) <= 0.0


def stop_supervisor(
    args: argparse.Namespace, place: Place, *, keep_workers: bool, to_the_end: bool = False
) -> Ending:
    """Stop the supervisor of a home, and its workers unless they are to be kept.

    `--no-wait` and `--timeout` end the waiting, never anybody's grace; `to_the_end` is for
    whoever has to see the end whatever they say.
    """
    found = owner_of(place.home)
    if found.standing == "stopped" and not anything_alive(place.home):
        return Ending(was_running=False)
    owner = found.owner
    watched = None if owner is None or found.standing != "running" else watch(owner)
    if found.standing == "corrupt":
        watched = _whoever_answers(place.home)
    if watched is None:
        results = () if keep_workers else _take_over(args, place)
        pid = None if owner is None else owner.pid
        return Ending(was_running=False, pid=pid, results=results, kept=keep_workers)
    try:
        if args.no_wait and not to_the_end:
            return _ask_only(args, place, watched.pid, keep_workers=keep_workers)
        patience = Patience(None if to_the_end else args.timeout)
        job_id, forced = _end(args, place, watched, patience, keep_workers=keep_workers)
    finally:
        watched.close()
    results = ()
    if forced is not None:
        warn(args, f"supervisor {watched.pid} did not stop by itself; {forced} was needed.")
    # Only a supervisor that ended in order has said so in its lock; any other left workers.
    if not keep_workers and owner_of(place.home).standing != "stopped":
        results = _take_over(args, place)
    ending = Ending(
        was_running=True,
        pid=watched.pid,
        forced=forced,
        results=results,
        job_id=job_id,
        kept=keep_workers,
    )
    if forced is None and ending.complete:
        _forget_failure(place.home)
    else:
        _record(args, place.home, ending.pid, forced, failed=not ending.complete)
    return ending


def tell_stopped(args: argparse.Namespace, ending: Ending) -> None:
    """Print what a stop came to, and whether it took force."""
    if args.json:
        state = "stopping" if ending.under_way else "stopped"
        results = [
            {"name": "supervisor", "ok": True, "state": state, "error": None},
            *ending.results,
        ]
        print_document(
            {"schema": 1, "job_id": ending.job_id, "results": results}
            | {"was_running": ending.was_running, "forced": ending.forced}
        )
        return
    say(args, _summary(ending), *_result_lines(ending.results))


def _result_lines(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name each worker, or of very many only those that did not end."""
    failed = [result for result in results if not result["ok"]]
    if len(results) <= _MOST_NAMED:
        return [result_line(result) for result in results]
    return [f"{len(results) - len(failed)} of {len(results)} stopped", *map(result_line, failed)]


def _summary(ending: Ending) -> str:
    if ending.under_way:
        accepted = f", accepted as {printable(ending.job_id)}" if ending.job_id else ""
        return f"supervisor {ending.pid} is stopping{accepted}; see `uphold status`."
    if not ending.was_running:
        if ending.pid is None:
            return "nothing to stop: no supervisor is running."
        told = f"no supervisor is running (pid {ending.pid} is dead)"
        if not ending.results:
            return f"{told}; none of its workers was stopped."
        return f"{told}; its workers were stopped without it:"
    workers = "its workers run on" if ending.kept else "nothing of it is left"
    force = f" by {ending.forced}" if ending.forced else ""
    if not ending.complete:
        workers = "not all of its workers could be stopped"
    return f"supervisor {ending.pid} stopped{force}; {workers}."


def _end(
    args: argparse.Namespace,
    place: Place,
    watched: Watched,
    patience: Patience,
    *,
    keep_workers: bool,
) -> tuple[str | None, str | None]:
    """Escalate until it is gone; tell the job and the signal it took."""
    notify = notice(args, f"waiting for supervisor {watched.pid} to stop ...")

    def gone_within(seconds: float) -> bool:
        if watched.wait_gone(patience.of(seconds), notify):
            return True
        if patience.is_over():
            raise _out_of_patience(watched.pid, job_id, patience)
        return False

    to_answer = max(TO_ANSWER, patience.of(PATIENCE))
    answer, trouble = _ask(args, place, to_answer, keep_workers=keep_workers)
    job_id = answer.get("job_id") if answer else None
    if trouble is not None:
        warn(args, f"the supervisor could not be asked: {trouble.message}")
    grace = float(answer.get("grace") or 0.0) if answer else DEFAULT_GRACE
    # Nobody is ended before the workers had their time, however short ours is.
    if gone_within(grace + MARGIN if answer is not None else 0.0):
        return job_id, None
    # A TERM ends the workers too, if the file says so; a supervisor that is to leave them
    # behind is killed instead, which disturbs nobody.
    if not keep_workers:
        watched.signal("SIGTERM")
        if gone_within(MARGIN if answer is not None else grace + MARGIN):
            return job_id, "SIGTERM"
    watched.signal("SIGKILL")
    if watched.wait_gone(MARGIN, notify):
        return job_id, "SIGKILL"
    _record(args, place.home, watched.pid, "SIGKILL", failed=True)
    raise UpholdError(
        f"supervisor {watched.pid} is still alive after SIGKILL.",
        code="UPH_SUPERVISOR_STOP_FAILED",
        remedy=f"It hangs inside the kernel; see /proc/{watched.pid}/stack, then stop again. "
        "Its lock and its state were left as they are.",
    )


def _whoever_answers(home: str) -> Watched | None:
    """Hold the supervisor that answers in a home whose lock does not say who owns it."""
    held = None
    try:
        with Connection(home) as connection:
            held = hold(connection.peer())
            # Asked when it is held: as long as it speaks, its number is nobody else's.
            connection.call("ping")
    except UpholdError as error:
        if held is not None:
            held.close()
        if error.code in _REFUSALS:
            raise
        return None
    return held


def _out_of_patience(pid: int, job_id: str | None, patience: Patience) -> UpholdError:
    within = f"within {patience.limit:g} s"
    told = f"{job_id} has not come true {within}; it goes on." if job_id else ""
    return UpholdError(
        told or f"supervisor {pid} has not stopped {within}.",
        code="UPH_ORDER_TIMEOUT",
        remedy="See how far it is: uphold status. Without --timeout `uphold stop` waits on, "
        "and uses force where nothing else helps.",
    )


def _ask_only(args: argparse.Namespace, place: Place, pid: int, *, keep_workers: bool) -> Ending:
    """Ask it to stop and leave it at that; nobody is there to use force later."""
    to_answer = PATIENCE if args.timeout is None else max(TO_ANSWER, args.timeout)
    answer, trouble = _ask(args, place, to_answer, keep_workers=keep_workers)
    if trouble is not None:
        raise trouble
    job_id = answer.get("job_id") if answer else None
    return Ending(was_running=True, pid=pid, job_id=job_id, kept=keep_workers, under_way=True)


def _ask(
    args: argparse.Namespace, place: Place, patience: float, *, keep_workers: bool
) -> tuple[dict[str, Any] | None, UpholdError | None]:
    """Ask it to stop; if it cannot be asked, the second answer says why."""
    params = {
        "keep_workers": keep_workers,
        "label": args.label,
        "reason": args.reason,
        "author": author(),
    }
    try:
        with Connection(place.home, patience=patience) as connection:
            answer: dict[str, Any] = connection.call("shutdown", params, patience=patience)
    except UpholdError as error:
        if error.code in _REFUSALS:
            raise
        if error.code in _UNDER_WAY:
            return {"grace": DEFAULT_GRACE}, None
        return None, error
    return answer, None


_UNDER_WAY: Final = frozenset({"UPH_SUPERVISOR_GONE", "UPH_SUPERVISOR_STOPPING"})
"""It may have gone because it was asked, or somebody asked before us: the wait will tell."""
_REFUSALS: Final = frozenset({"UPH_HOME_DENIED", "UPH_ORDER_REFUSED", "UPH_USAGE"})


def _take_over(args: argparse.Namespace, place: Place) -> tuple[dict[str, Any], ...]:
    told = stop_left_overs(
        place.home, author=author(), label=args.label or "", reason=args.reason or ""
    )
    results = tuple(dict(each) for each in told.get("results") or ())
    if results:
        warn(args, "without their supervisor, the recorded workers were stopped from here.")
    return results


def _record(
    args: argparse.Namespace, home: str, pid: int | None, forced: str | None, *, failed: bool
) -> None:
    """Leave a note beside the supervisor's own files, which only it may write."""
    import json

    message = (
        f"stop failed: process {pid} or something it left is still alive"
        if failed
        else f"supervisor {pid} was stopped by {forced}"
    )
    note = {
        "schema": 1,
        "at": utc_text(now()),
        "pid": pid,
        "forced": forced,
        "failed": failed,
        "error": {"code": "UPH_SUPERVISOR_STOP_FAILED", "message": message} if failed else None,
        "message": message,
        "author": author(),
    }
    try:
        _write_note(home, json.dumps(note))
    except OSError as cause:  # a full disk does not undo what was done
        warn(args, f"this could not be noted in {home}/{LAST_STOP}: {cause.strerror}.")


def _write_note(home: str, text: str) -> None:
    temporary = f"{home}/.{LAST_STOP}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, f"{home}/{LAST_STOP}")  # noqa: PTH104 - strings throughout
    except OSError:
        _remove(temporary)
        raise


def _forget_failure(home: str) -> None:
    _remove(f"{home}/{LAST_STOP}")


def _remove(path: str) -> None:
    """Remove a file; one that is not there, or lies on a read-only disk, is left alone."""
    try:
        os.unlink(path)  # noqa: PTH108 - strings throughout
    except OSError:
        return
