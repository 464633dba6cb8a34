"""A rollback: some commits are undone by commits of their own, newest first, by their ids.

The ids are chosen before anything is done: to revert whatever stands on top, again and again,
would only undo the undoing. Each step is written down before it is done. The rule for one that
was cut: it goes on where it was, as every commit in between is a state somebody may run.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from uphold.deploy.git import HISTORY, MOVED, moved
from uphold.deploy.holding import clear_left_locks, held
from uphold.deploy.records import INTERRUPTED, DeployRecord, End, Outcome, Step, Verb
from uphold.errors import HostFailure, NotPermitted, UpholdError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from uphold.deploy.git import Checkout
    from uphold.deploy.histories import Commit
    from uphold.deploy.records import Note

COUNT: Final = "UPH_DEPLOY_COMMITS_BACK"
MOST_BACK: Final = 10


class RollingBack:
    """Undoes the last commits of one checkout."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout

    def check(
        self, job: str, commits_back: object = 1, *, label: str | None = None
    ) -> DeployRecord:
        """Choose what is to be reverted; UpholdError if that cannot be done."""
        count = checked_count(commits_back)
        checkout = self._checkout
        with held(checkout) as folders:
            clear_left_locks(checkout, folders, index_too=False)
            before = checkout.commit()
            checkout.check_clean(folders)
            own = checkout.own_reverts()
            history = checkout.history(before, count + 1 + 2 * len(own))
            chosen = choose(history, own, count)
            if len(chosen) < count:
                raise _beyond(count, len(chosen))
            for commit, parent, *_ in chosen:
                checkout.check_way(commit, parent)
        ids = tuple(entry[0] for entry in chosen)
        return DeployRecord(
            job=job, verb=Verb.ROLLBACK, before=before, base=before, reverts=ids, label=label
        )

    def preview(self, record: DeployRecord) -> list[str]:
        """Show what is to be reverted, a line for each."""
        return [commit.line for commit in self._checkout.describe(record.reverts)]

    def apply(self, record: DeployRecord, note: Note) -> Outcome:
        """Do it, while the workers are stopped; the first that fails ends it."""
        try:
            with held(self._checkout) as folders:
                now = self._checkout.commit()
                if now != record.before:
                    raise moved(now, record.before)
                self._checkout.check_clean(folders)
                return self._revert(record, note)
        except (UpholdError, OSError) as cause:
            return self._ended(record, note, cause)

    def recover(self, record: DeployRecord, note: Note) -> Outcome:
        """End what another supervisor began, while the workers are stopped, by the rule above."""
        if record.ended or record.step is Step.APPLIED:
            return self._outcome(record)
        if record.step is Step.PREPARED:
            cause = NotPermitted("the rollback was interrupted before it began.", code=INTERRUPTED)
            return self._ended(record, note, cause)
        try:
            with held(self._checkout):
                return self._revert(self._found(record), note)
        except (UpholdError, OSError) as cause:
            return self._ended(record, note, cause)

    def return_to(self, record: DeployRecord, note: Note, *, why: str, code: str = "") -> Outcome:
        """End it where it stands, while the workers are stopped; what was cut is put in order."""
        if record.ended:
            return self._outcome(record)
        try:
            if record.step is Step.REVERTING:
                with held(self._checkout):
                    record = self._found(record)
        except (UpholdError, OSError) as cause:
            why, code = f"{why} {cause}", getattr(cause, "code", "") or code
        return self._ended(record, note, HostFailure(why, code=code))

    def _revert(self, record: DeployRecord, note: Note) -> Outcome:
        checkout, at = self._checkout, record
        try:
            for commit in checkout.describe(record.reverts[len(record.made) :]):
                note(at := replace(at, step=Step.REVERTING))
                checkout.check_way(commit.id, commit.parents[0])
                made = checkout.revert(commit)
                checkout.remember(commit.id, made)
                at = replace(at, made=(*at.made, made))
            note(at := replace(at, step=Step.APPLIED))
        except (UpholdError, OSError) as cause:
            return self._ended(at, note, cause)
        return self._outcome(at)

    def _found(self, record: DeployRecord) -> DeployRecord:
        """Bring the tree in order and find out how far it had come."""
        checkout = self._checkout
        now = checkout.commit()
        expected = record.made[-1] if record.made else record.before
        left = checkout.describe(record.reverts[len(record.made) :][:1])
        if now == expected:
            checkout.put_right(now, *((commit.id, commit.parents[0]) for commit in left))
            return record
        if left and self._is_revert_of(now, left[0], expected):
            checkout.put_right(now)
            checkout.remember(left[0].id, now)
            return replace(record, made=(*record.made, now))
        raise moved(now, record.before)

    def _is_revert_of(self, now: str, commit: Commit, parent: str) -> bool:
        (found,) = self._checkout.describe([now])
        said = f"This reverts commit {commit.id}"
        return found.parents[:1] == (parent,) and said in self._checkout.message(now)

    def _ended(self, record: DeployRecord, note: Note, cause: Exception) -> Outcome:
        """End it early; it stays open as long as the tree is not in order."""
        error, code = str(cause), getattr(cause, "code", "")
        if code != MOVED and not self._in_order(record):
            return self._outcome(replace(record, error=error, code=code), End.UNCLEAR)
        at = replace(record, step=Step.DONE, error=error, code=code)
        with suppress(UpholdError, OSError):
            note(at)
        return self._outcome(at, End.UNCLEAR if code == MOVED else None)

    def _in_order(self, record: DeployRecord) -> bool:
        if record.step is Step.PREPARED:
            return True  # nothing was done, so nothing is to be put in order
        try:
            return self._checkout.stands(record.made[-1] if record.made else record.before)
        except UpholdError:
            return False

    def _outcome(self, record: DeployRecord, end: End | None = None) -> Outcome:
        success = record.step in (Step.APPLIED, Step.DONE) and not record.error
        so_far = End.PARTIAL if record.made else End.OLD
        return Outcome(
            success=success,
            end=end or (End.NEW if success else so_far),
            record=record,
            error=record.error,
            code=record.code,
            details=self._details(record, success=success),
        )

    def _details(self, record: DeployRecord, *, success: bool) -> dict[str, Any]:
        checkout, count = self._checkout, len(record.made)
        told: dict[str, Any] = {
            "success": success,
            "commits_back": len(record.reverts),
            "commits_reverted": count,
            "reverted_commits": [],
            "before_commit": record.before,
            "final_commit": record.made[-1] if record.made else record.before,
        }
        with suppress(UpholdError, OSError):
            told["before_commit"] = checkout.short(record.before)
            told["final_commit"] = checkout.short(checkout.commit())
            lines = [commit.line for commit in checkout.describe(record.reverts)]
            told["commits_to_revert"] = lines
            told["reverted_commits"] = lines[:count]
            if record.error and count < len(lines):
                told["failed_commit"] = lines[count]
        if record.error:
            told["error"] = record.error
        if record.label is not None:
            told["label"] = record.label
        told["commands"] = list(checkout.git.transcript.commands)
        return told


def choose(
    history: Iterable[Sequence[str]], own: Mapping[str, str], count: int
) -> list[Sequence[str]]:
    """Choose the newest commits that still have an effect and a parent to go back to.

    `history` is along the first parents, newest first, each commit with its parents; `own` says
    what each of our own reverts reverted. These, and what they reverted, have no effect.
    """
    chosen: list[Sequence[str]] = []
    undone: set[str] = set()
    for entry in history:
        commit, *parents = entry
        if commit in own:
            undone.add(own[commit])
        elif commit not in undone and parents and len(chosen) < count:
            chosen.append(entry)
    return chosen


def checked_count(value: object) -> int:
    """Read how many commits are to be undone; NotPermitted unless it is a number from 1 to 10."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_BACK:
        return value
    raise NotPermitted(
        f"commits_back is a whole number from 1 to {MOST_BACK}, not {value!r:.40}.", code=COUNT
    )


def _beyond(count: int, there: int) -> NotPermitted:
    return NotPermitted(
        f"{count} commits cannot be undone: there are only {there} that can.",
        code=HISTORY,
        remedy="Ask for fewer; the first commit of a history stays.",
    )
