"""Everything that can be done to one checkout, so that no mistake of ours leaves a mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final

from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.installing import Installer
from uphold.deploy.records import DeployRecord, End, Note, Outcome, Verb
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating

if TYPE_CHECKING:
    from uphold.core.specs import DeploySpec

MISTAKE: Final = "UPH_INTERNAL"


@dataclass(frozen=True, slots=True)
class Work:
    """The two things that can be done to a checkout, and on which terms.

    What changes it is called while the workers are stopped, and raises nothing. After a mistake
    of our own what is known to run is put back. If that is a mistake too, the outcome is unclear
    and its record stays open: nobody may run from what is there, until it is tried again.
    """

    spec: DeploySpec
    updating: Updating
    rolling_back: RollingBack

    def apply(self, record: DeployRecord, note: Note) -> Outcome:
        """Do what was checked."""
        return self._safely(self._way(record).apply, record, note)

    def recover(self, record: DeployRecord, note: Note) -> Outcome:
        """End what another supervisor began."""
        return self._safely(self._way(record).recover, record, note)

    def return_to(self, record: DeployRecord, note: Note, *, why: str, code: str) -> Outcome:
        """Put back what was there before."""
        back = partial(self._way(record).return_to, why=why, code=code)
        return self._safely(back, record, note)

    def kept_down(self) -> dict[str, Any]:
        """Say that nobody runs from an unclear checkout, and what to do about it."""
        return {
            "kept_down": True,
            "remedy": "The workers stay down, as their code may be a mixture; see: "
            f"git -C {self.spec.repo} status. The next start (uphold restart) and the next "
            "update or rollback try again to put it right.",
        }

    def _way(self, record: DeployRecord) -> Updating | RollingBack:
        return self.rolling_back if record.verb is Verb.ROLLBACK else self.updating

    def _safely(
        self, change: Callable[[DeployRecord, Note], Outcome], record: DeployRecord, note: Note
    ) -> Outcome:
        last = record

        def noted(at: DeployRecord) -> None:
            nonlocal last
            note(at)
            last = at

        try:
            return change(record, noted)
        except Exception as mistake:  # noqa: BLE001 - whatever it is, the code must be whole
            why, trace = _said(mistake)
        try:
            came = self._way(last).return_to(last, noted, why=why, code=MISTAKE)
        except Exception as mistake:  # noqa: BLE001 - then nobody knows what is there
            again, more = _said(mistake)
            trace += more
            came = _unclear(last, f"{why} What was there could not be put back: {again}")
        came.details["trace"] = trace
        return came


def work_on(spec: DeploySpec) -> Work:
    """Put together what a checkout is changed with."""
    git = Git(spec.repo)
    checkout = Checkout(git, remote=spec.remote, branch=spec.branch)
    strict = spec.pip == "strict"
    installer = Installer(git, python=spec.python, requirements=spec.requirements, strict=strict)
    return Work(spec, Updating(checkout, installer), RollingBack(checkout))


def _said(mistake: Exception) -> tuple[str, str]:
    return f"a mistake of uphold: {mistake!r}.", "".join(format_exception(mistake))


def _unclear(record: DeployRecord, error: str) -> Outcome:
    return Outcome(
        success=False,
        end=End.UNCLEAR,
        record=record,
        error=error,
        code=MISTAKE,
        details={"before_commit": record.before[:12]},
    )
