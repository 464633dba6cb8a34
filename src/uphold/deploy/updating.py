"""An update: fetched while the workers run, applied when they are stopped, or put back.

Each step is written down before it is done. The rule for one that was cut: everything between
the first and the last step goes back to the recorded commit, as the old code is known to run;
before the first nothing has happened, and after the last the new code is whole.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from uphold.deploy.git import MOVED, moved
from uphold.deploy.holding import PATIENCE, clear_left_locks, held
from uphold.deploy.installing import INSTALL_FAILED, LIMIT
from uphold.deploy.records import INTERRUPTED, DeployRecord, End, Outcome, Step, Verb
from uphold.errors import HostFailure, NotPermitted, UpholdError

if TYPE_CHECKING:
    from uphold.deploy.git import Checkout, Folders
    from uphold.deploy.installing import Installer
    from uphold.deploy.records import Note

DIVERGED: Final = "UPH_DEPLOY_DIVERGED"
_MOST_LISTED: Final = 50
_PIP_TOO: Final = LIMIT + PATIENCE
"""Seconds: a pip that a killed supervisor left goes on installing for the code it found."""


class Updating:
    """Brings one checkout to what its remote has."""

    def __init__(self, checkout: Checkout, installer: Installer | None = None) -> None:
        """Without an installer there is no update with packages."""
        self._checkout = checkout
        self._installer = installer

    def check(self, job: str, *, packages: bool = False, label: str | None = None) -> DeployRecord:
        """Fetch, and find out whether an update can be made; UpholdError if not.

        Workers go on meanwhile: nothing they see is touched.
        """
        checkout = self._checkout
        with held(checkout) as folders:
            clear_left_locks(checkout, folders, index_too=False)
            before = checkout.commit()
            checkout.check_clean(folders)
            target = checkout.fetch()
            base = self._without_own_reverts(before, target)
            checkout.check_size(before, target)
            self._check_ways(before, base, target)
        if packages:
            self._check_requirements(target)
        verb = Verb.UPDATE_DEPS if packages else Verb.UPDATE
        return DeployRecord(
            job=job, verb=verb, before=before, base=base, target=target, label=label
        )

    def apply(self, record: DeployRecord, note: Note) -> Outcome:
        """Do it, while the workers are stopped; the old commit is put back if anything fails."""
        try:
            with held(self._checkout) as folders:
                self._check_again(record, folders)
                return self._apply(record, note)
        except (UpholdError, OSError) as cause:
            return self._not_begun(record, note, str(cause), getattr(cause, "code", ""))

    def return_to(self, record: DeployRecord, note: Note, *, why: str, code: str = "") -> Outcome:
        """Put the recorded commit back, while the workers are stopped: it did not go well."""
        if record.ended:
            return self._outcome(record)
        if record.step is Step.PREPARED:
            return self._not_begun(record, note, why, code)
        try:
            with held(self._checkout, _PIP_TOO if record.installed else PATIENCE):
                return self._return(record, note, why, code)
        except (UpholdError, OSError) as cause:
            return self._unclear(record, note, why, cause)

    def recover(self, record: DeployRecord, note: Note) -> Outcome:
        """End what another supervisor began, while the workers are stopped, by the rule above."""
        if record.ended:
            return self._outcome(record)
        why = record.error or f"the update was interrupted while it was {_doing(record)}."
        code = record.code or INTERRUPTED
        if record.step is Step.APPLIED and self._is_whole(record):
            return self._outcome(record)
        return self.return_to(record, note, why=why, code=code)

    def _is_whole(self, record: DeployRecord) -> bool:
        try:
            return self._checkout.stands(record.target)
        except UpholdError:
            return False

    def _check_again(self, record: DeployRecord, folders: Folders) -> None:
        """Make sure that all is as it was checked: people may have been here since."""
        now = self._checkout.commit()
        if now != record.before:
            raise moved(now, record.before)
        self._checkout.check_clean(folders)
        self._check_ways(record.before, record.base, record.target)

    def _check_ways(self, before: str, base: str, target: str) -> None:
        self._checkout.check_way(before, base)
        self._checkout.check_way(before, target)

    def _apply(self, record: DeployRecord, note: Note) -> Outcome:
        at = record
        try:
            if record.base != record.before:
                note(at := replace(at, step=Step.SETTING_ASIDE))
                self._checkout.reset(record.base)
            if record.target != record.base:
                note(at := replace(at, step=Step.MERGING))
                self._checkout.fast_forward(record.target)
            if not self._checkout.stands(record.target):
                raise HostFailure("the checkout is not what was fetched.", code=MOVED)
            if record.verb is Verb.UPDATE_DEPS:
                note(at := replace(at, step=Step.INSTALLING, installed=True))
                self._install()
            note(replace(at, step=Step.APPLIED))
        except (UpholdError, OSError) as cause:
            return self._return(at, note, str(cause), getattr(cause, "code", ""))
        return self._outcome(replace(at, step=Step.APPLIED))

    def _return(self, record: DeployRecord, note: Note, why: str, code: str) -> Outcome:
        at = replace(record, step=Step.RETURNING, error=why, code=code)
        with suppress(UpholdError, OSError):
            # Putting back comes first: should this not be written, the next start does it again.
            note(at)
        try:
            self._put_back(at)
        except (UpholdError, OSError) as cause:
            return self._unclear(at, note, why, cause)
        packages = self._old_packages(at)
        at = replace(at, step=Step.RETURNED)
        with suppress(UpholdError, OSError):
            note(at)
        return self._outcome(at, **packages)

    def _put_back(self, record: DeployRecord) -> None:
        before, checkout = record.before, self._checkout
        now = checkout.commit()
        if now not in {before, record.base, record.target}:
            raise moved(now, record.before)
        checkout.put_right(before, (before, record.base), (before, record.target))
        if not self._checkout.stands(before):
            raise HostFailure(f"the checkout does not stand at {before[:12]}.", code=MOVED)

    def _install(self) -> None:
        if self._installer is None:
            raise HostFailure("nobody is there to install packages.", code=INSTALL_FAILED)
        self._installer.install()

    def _old_packages(self, record: DeployRecord) -> dict[str, Any]:
        """Install what the old code asks for, if installing for the new one was begun."""
        if not record.installed or self._installer is None:
            return {}
        if not self._checkout.has_file(record.before, self._installer.requirements):
            return {"packages_restored": False, "packages_error": "the old code names none."}
        try:
            self._installer.install()
        except (UpholdError, OSError) as cause:
            return {"packages_restored": False, "packages_error": str(cause)}
        return {"packages_restored": True}

    def _without_own_reverts(self, before: str, target: str) -> str:
        """Find the commit below our own reverts; NotPermitted if there are others' commits."""
        checkout = self._checkout
        ahead = set(checkout.between(target, before))
        if not ahead:
            return before
        own = checkout.own_reverts()
        foreign = [commit for commit in ahead if commit not in own]
        base = before
        for commit, *parents in checkout.history(before, len(ahead) + 1):
            if commit in ahead and parents:
                base = parents[0]
        if foreign or checkout.between(target, base):
            raise self._diverged(foreign or sorted(ahead))
        return base

    def _diverged(self, foreign: list[str]) -> NotPermitted:
        checkout = self._checkout
        found = "; ".join(commit.line for commit in checkout.describe(foreign[:5]))
        where = f"{checkout.remote}/{checkout.branch}"
        return NotPermitted(
            f"the checkout has {len(foreign)} commits that {where} has not: {found}.",
            code=DIVERGED,
            remedy=f"Push them, or drop them (git reset --hard {where}); was history rewritten "
            "there?",
        )

    def _check_requirements(self, target: str) -> None:
        if self._installer is None:
            raise HostFailure("nobody is there to install packages.", code=INSTALL_FAILED)
        name = self._installer.requirements
        if not self._checkout.has_file(target, name):
            raise NotPermitted(
                f"there is no {name} in what is to be installed.",
                code=INSTALL_FAILED,
                remedy="Add it to the repository, or correct deploy.requirements.",
            )

    def _not_begun(self, record: DeployRecord, note: Note, why: str, code: str) -> Outcome:
        at = replace(record, step=Step.RETURNED, error=why, code=code)
        with suppress(UpholdError, OSError):
            note(at)
        return self._outcome(at)

    def _unclear(self, record: DeployRecord, note: Note, why: str, cause: Exception) -> Outcome:
        """Say that the recorded commit is not back; it is tried again unless somebody moved on."""
        text = f"{why} The commit {record.before[:12]} could not be put back: {cause}"
        if getattr(cause, "code", "") == MOVED:
            at = replace(record, step=Step.DONE, error=text, code=MOVED)
            with suppress(UpholdError, OSError):
                note(at)
        else:
            at = replace(record, step=Step.RETURNING, error=why)
        return self._outcome(at, error=text)

    def _outcome(self, record: DeployRecord, *, error: str = "", **more: Any) -> Outcome:
        """Tell how it ended; an `error` of its own says that what is checked out is unclear."""
        new = record.step in (Step.APPLIED, Step.DONE) and not record.error
        end = End.UNCLEAR if error else End.NEW if new else End.OLD
        return Outcome(
            success=new and not error,
            end=end,
            record=record,
            error=error or record.error,
            code=record.code,
            details={**self._details(record), **more},
        )

    def _details(self, record: DeployRecord) -> dict[str, Any]:
        checkout = self._checkout
        told: dict[str, Any] = {"before_commit": record.before, "target_commit": record.target}
        with suppress(UpholdError, OSError):
            after = checkout.commit()
            told["before_commit"] = checkout.short(record.before)
            told["target_commit"] = checkout.short(record.target)
            told["after_commit"] = checkout.short(after)
            came = checkout.describe(checkout.between(record.base, record.target)[:_MOST_LISTED])
            told["commits"] = [commit.line for commit in came]
            aside = checkout.describe(checkout.between(record.base, record.before)[:_MOST_LISTED])
            told["reverts_set_aside"] = [commit.line for commit in aside]
        told["packages"] = record.verb is Verb.UPDATE_DEPS
        if record.label is not None:
            told["label"] = record.label
        told["commands"] = list(checkout.git.transcript.commands)
        return told


def finished(record: DeployRecord) -> DeployRecord:
    """Say that nothing is left to do: the workers are well with the new code."""
    return replace(record, step=Step.DONE)


def _doing(record: DeployRecord) -> str:
    return record.step.value.replace("_", " ")
