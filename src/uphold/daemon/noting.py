"""The one file that says how far an update or rollback has come, for whoever has to end it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uphold.core.specs import DeploySpec
from uphold.deploy.records import DeployRecord
from uphold.errors import HostFailure, Malformed
from uphold.host.files import write_atomically
from uphold.wire.codecs import decode, encode

UNREADABLE: Final = "UPH_DEPLOY_UNREADABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What lies on the disk while an update or rollback is under way."""

    record: DeployRecord
    names: tuple[str, ...]
    author: str
    label: str | None = None
    task_id: str | None = None
    terms: DeploySpec | None = None
    """What [deploy] said when it began; None if an earlier version wrote this."""


class Notes:
    """Keeps it: written before each step, gone when nothing is left to do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def writer(self, written: Written) -> Callable[[DeployRecord], None]:
        """Give what writes each step of one update down; it is on the disk when that returns."""

        def note(record: DeployRecord) -> None:
            write_atomically(self.path, encode(replace(written, record=record)))

        return note

    def read(self) -> Written | None:
        """Read what was not ended; None if there is nothing, HostFailure if nobody can say."""
        try:
            left = decode(Written, self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, Malformed) as cause:
            raise HostFailure(
                f"how far the last update or rollback came is unknown, as {self.path} cannot be "
                f"read: {cause}",
                code=UNREADABLE,
                remedy="See with git status that the checkout is whole, remove that file, and: "
                "uphold restart.",
            ) from cause
        return None if left.record.ended else left

    def forget(self) -> None:
        """Say that nothing is left to do."""
        self.path.unlink(missing_ok=True)

    def forget_if_ended(self) -> None:
        """Say so, unless there is."""
        with suppress(HostFailure):
            if self.read() is None:
                self.forget()
