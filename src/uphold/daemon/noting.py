"""The one file that says how far an update or rollback has come, for whoever has to end it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from uphold.deploy.records import DeployRecord
from uphold.errors import Malformed
from uphold.host.files import write_atomically
from uphold.wire.codecs import decode, encode

if TYPE_CHECKING:
    from uphold.ports.logs import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What lies on the disk while an update or rollback is under way."""

    record: DeployRecord
    names: tuple[str, ...]
    author: str
    label: str | None = None
    task_id: str | None = None


class Notes:
    """Keeps it: written before each step, gone when nothing is left to do."""

    def __init__(self, path: Path, log: Log) -> None:
        self.path = path
        self._log = log

    def writer(self, written: Written) -> Callable[[DeployRecord], None]:
        """Give what writes each step of one update down; it is on the disk when that returns."""

        def note(record: DeployRecord) -> None:
            write_atomically(self.path, encode(replace(written, record=record)))

        return note

    def read(self) -> Written | None:
        """Read what was not ended; None if there is nothing, or nothing that can be read."""
        try:
            left = decode(Written, self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, Malformed) as cause:
            self._log.write("ERROR", "deploy.unreadable", f"{self.path} cannot be read: {cause}")
            with suppress(OSError):  # kept for people; it must not be met at every start
                self.path.replace(self.path.with_suffix(".json.unreadable"))
            return None
        return None if left.record.ended else left

    def forget(self) -> None:
        """Say that nothing is left to do."""
        self.path.unlink(missing_ok=True)

    def forget_if_ended(self) -> None:
        """Say so, unless there is."""
        if self.read() is None:
            self.forget()
