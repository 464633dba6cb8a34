"""A queue in a folder: one file per job, claimed by renaming it.

    new/        waiting, the oldest first
    held/NAME/  claimed by the worker of that name
    dead/       given up, with the reason

A rename is atomic, so that of several workers exactly one gets a job. Every claim counts as an
attempt before the work begins: a job that kills its worker is given up like any other.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Job:
    """One job, held by us."""

    path: Path
    content: dict[str, Any]

    @property
    def id(self) -> str:
        """Name it, the same from the inbox to the answer."""
        return self.path.stem


class FileQueue:
    """One queue, seen by one worker."""

    def __init__(self, folder: Path, holder: str) -> None:
        self._new = folder / "new"
        self._held = folder / "held" / holder
        self._dead = folder / "dead"
        for each in (self._new, self._held, self._dead):
            each.mkdir(parents=True, exist_ok=True)

    def put(self, content: dict[str, Any], job_id: str | None = None) -> str:
        """Add a job; with the same id twice, there is still one."""
        job_id = job_id or f"{time.time_ns()}-{uuid.uuid4().hex[:8]}"
        _write(self._new / f"{job_id}.json", content)
        return job_id

    def claim(self) -> Job | None:
        """Take the oldest job; None if there is none. What is no job is given up at once."""
        for path in sorted(self._new.glob("[!.]*.json")):
            held = self._held / path.name
            try:
                path.rename(held)
            except FileNotFoundError:
                continue  # somebody else was faster
            job = self._opened(held)
            if job is not None:
                return job
        return None

    def finish(self, job: Job) -> None:
        """Forget a job that is done."""
        job.path.unlink(missing_ok=True)

    def put_back(self, job: Job) -> None:
        """Let somebody else do it, as if it had never been claimed."""
        content = {**job.content, "attempts": job.content["attempts"] - 1}
        self._return(job, content)

    def fail(self, job: Job, reason: str) -> bool:
        """Note a failed attempt; True if it was the last and the job is given up."""
        content = {**job.content, "error": reason}
        if job.content["attempts"] < MOST_ATTEMPTS:
            self._return(job, content)
            return False
        _write(self._dead / job.path.name, content)
        job.path.unlink()
        return True

    def recover(self) -> int:
        """Return what an earlier life of this worker held when it was killed; say how many."""
        left = [job for path in sorted(self._held.glob("[!.]*.json")) if (job := _read(path))]
        for job in left:
            self.fail(job, "the worker was killed while it worked on this")
        return len(left)

    def count(self) -> int:
        """Say how many jobs wait."""
        return sum(1 for _ in self._new.glob("[!.]*.json"))

    def _opened(self, held: Path) -> Job | None:
        job = _read(held)
        if job is None:
            held.rename(self._dead / held.name)
            print(f"{held.name} is no job; it lies in {self._dead} now")
            return None
        job.content["attempts"] = job.content.get("attempts", 0) + 1
        _write(held, job.content)
        return job

    def _return(self, job: Job, content: dict[str, Any]) -> None:
        # First the content, then the move: a kill in between leaves it held, for `recover`.
        _write(job.path, content)
        job.path.rename(self._new / job.path.name)


def _read(path: Path) -> Job | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("attempts", 0), int):
        return None
    return Job(path, content)


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a file so that nobody ever sees half of it."""
    temp = path.with_name(f".{path.name}.{os.getpid()}")
    temp.write_text(json.dumps(content), encoding="utf-8")
    temp.replace(path)
