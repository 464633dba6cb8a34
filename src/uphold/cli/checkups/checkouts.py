"""The checkout that workers run from: whether an update could be made. Nothing is fetched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from uphold.cli.checkups.findings import Finding, Level, look, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uphold.core.specs import DeploySpec, Settings
    from uphold.deploy.git import Checkout


def checkout_of(settings: Settings) -> Iterator[Finding]:
    """Look at git, the checkout, its branch and edits, its remote, and what is to be installed."""
    spec = settings.deploy
    if spec is None:
        return
    from uphold.deploy.git import Checkout
    from uphold.deploy.guarding import Git

    checkout = Checkout(Git(spec.repo), remote=spec.remote, branch=spec.branch)
    there = look("checkout", lambda: _tree(checkout))
    yield from there
    if any(each.level is Level.FAIL for each in there):
        return  # without a checkout there is nothing else to be seen
    yield from look("checkout edits", lambda: _edits(checkout))
    yield from look("checkout branch", lambda: _branch(checkout))
    yield from look("checkout remote", lambda: _remote(checkout))
    yield from _requirements(spec)
    yield from _workers(spec)


def _tree(checkout: Checkout) -> Iterator[Finding]:
    checkout.folders()
    yield ok("checkout", f"{checkout.git.repo} is one of git.")


def _edits(checkout: Checkout) -> Iterator[Finding]:
    checkout.check_clean(checkout.folders())
    yield ok("checkout edits", "no tracked file is changed.")


def _branch(checkout: Checkout) -> Iterator[Finding]:
    yield ok("checkout branch", f"{checkout.branch}, at {checkout.commit()[:12]}.")


def _remote(checkout: Checkout) -> Iterator[Finding]:
    checkout.address()
    yield ok("checkout remote", f"'{checkout.remote}' has an address that is allowed.")


def _requirements(spec: DeploySpec) -> Iterator[Finding]:
    path = os.path.join(spec.repo, spec.requirements)  # noqa: PTH118 - text is enough
    if os.path.isfile(path):  # noqa: PTH113
        yield ok("requirements", f"{path}.")
    else:
        yield warn(
            "requirements",
            f"there is no {path}: an update with packages will be refused.",
            "Commit one, or correct deploy.requirements; updates without packages work.",
        )


def _workers(spec: DeploySpec) -> Iterator[Finding]:
    if not spec.workers:
        yield warn(
            "checkout workers",
            "deploy.workers names nobody: updates change files below workers that run.",
            "Name those who run from the checkout; they are stopped first and watched afterwards.",
        )
