"""What is written down of an update or a rollback, so that the next supervisor can end it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

INTERRUPTED: Final = "UPH_DEPLOY_INTERRUPTED"


class Verb(StrEnum):
    """What was asked for."""

    UPDATE = "update"
    UPDATE_DEPS = "update_deps"
    ROLLBACK = "rollback"


class Step(StrEnum):
    """What was about to be done when the record was written."""

    PREPARED = "prepared"
    """Nothing yet: it was looked at and, for an update, fetched."""
    SETTING_ASIDE = "setting_aside"
    """Our own reverts leave the branch."""
    MERGING = "merging"
    """The branch goes forward."""
    INSTALLING = "installing"
    """Packages are installed."""
    REVERTING = "reverting"
    """Commits are being reverted, one after the other."""
    APPLIED = "applied"
    """The new code is there, whole; workers are to be started and looked at."""
    RETURNING = "returning"
    """The recorded commit is being put back."""
    DONE = "done"
    """Ended, and nothing is left to do: with the new code, or with some of the reverts."""
    RETURNED = "returned"
    """Ended, and nothing is left to do: with the code that was there before."""


_ENDED: Final = frozenset({Step.DONE, Step.RETURNED})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployRecord:
    """One update or rollback: where it began, where it goes, how far it is."""

    job: str
    verb: Verb
    before: str
    """The commit that was checked out when it began."""
    target: str = ""
    """The commit an update goes to."""
    base: str = ""
    """The commit that is left when our own reverts are set aside; `before` if there are none."""
    reverts: tuple[str, ...] = ()
    """The commits a rollback reverts, newest first."""
    made: tuple[str, ...] = ()
    """The reverts that were made of them so far, in the same order."""
    installed: bool = False
    """Whether installing packages was begun."""
    step: Step = Step.PREPARED
    label: str | None = None
    """What the operator called it."""
    error: str = ""
    """Why it is being returned, or what ended it early."""
    code: str = ""

    @property
    def ended(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.step in _ENDED

    @property
    def changes_code(self) -> bool:
        """Tell whether workers must be stopped for it."""
        return self.verb is not Verb.UPDATE or self.target != self.before


Note: TypeAlias = Callable[[DeployRecord], None]
"""Writes a record down; it is on the disk when this returns."""


class End(StrEnum):
    """What is checked out now."""

    OLD = "old"
    NEW = "new"
    PARTIAL = "partial"
    """A rollback that came to a stop: some of the commits are reverted."""
    UNCLEAR = "unclear"
    """Neither: the recorded commit could not be put back. It is tried again at the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it ended."""

    success: bool
    end: End
    record: DeployRecord
    error: str = ""
    code: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def runnable(self) -> bool:
        """Tell whether workers may be started from what is checked out: it is no mixture.

        Where somebody has moved the branch it is theirs, and whole as far as we know.
        """
        return self.end is not End.UNCLEAR or self.record.ended

    def as_result(self) -> dict[str, Any]:
        """Give it as the result of a handler."""
        return {"success": self.success, "error": self.error or None, "details": self.details}
