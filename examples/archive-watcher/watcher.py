"""Watches the inbox of a share for tasks and archives them: the worker of this example.

A task is a file `*.task.json` in `Worker_Inbox`. It is claimed by renaming it into `02_WORK`,
worked on, and left in `04_PUBLISH`. The heartbeat comes from a thread of its own, so that a long
task never makes the watcher look dead. A task under way is finished before the watcher ends.
While the pause marker is there, nothing is claimed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path


class Watcher:
    """One watcher on one share."""

    def __init__(self, share: Path, worker_id: str, poll: float, work: float) -> None:
        self.share = share
        self.id = worker_id
        self.poll = poll
        self.work = work
        self.stopping = threading.Event()
        self.status = "idle"

    def run(self) -> None:
        """Claim and work until asked to end."""
        beating = threading.Thread(target=self.beat_for_ever)
        beating.start()
        self.log("watching")
        while not self.stopping.is_set():
            task = None if self.paused() else self.claim()
            if task is None:
                self.stopping.wait(self.poll)
            else:
                self.archive(task)
        self.log("ended")
        beating.join()

    def paused(self) -> bool:
        """Tell whether somebody holds us."""
        return (self.share / "00_STATE" / f"supervisor_pause_{self.id}.flag").exists()

    def claim(self) -> Path | None:
        """Take the oldest task; whoever renames it first has it."""
        inbox = self.share / "Worker_Inbox"
        for path in sorted(inbox.glob("*.task.json"), key=lambda each: each.stat().st_mtime):
            mine = self.share / "02_WORK" / path.name
            try:
                path.rename(mine)
            except FileNotFoundError:
                continue
            return mine
        return None

    def archive(self, task: Path) -> None:
        """Do the work of a task to its end, however long that takes and whoever asks us to end."""
        self.status = "busy"
        self.log(f"archiving {task.name}")
        threading.Event().wait(self.work)
        task.rename(self.share / "04_PUBLISH" / task.name)
        self.log(f"archived {task.name}")
        self.status = "idle"

    def beat_for_ever(self) -> None:
        """Beat beside the work, until the end."""
        while not self.stopping.is_set():
            self.beat()
            self.stopping.wait(self.poll)

    def beat(self) -> None:
        """Say that we live; readers see the old heartbeat or the new one, never half of it."""
        path = self.share / "00_STATE" / f"watcher_heartbeat_{self.id}.json"
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        content = {
            "watcher_id": self.id,
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "status": self.status,
            "utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "poll_seconds": self.poll,
        }
        try:
            fresh.write_text(json.dumps(content))
            fresh.replace(path)
        except OSError as problem:  # the share is away: the next beat may reach it
            print(f"no heartbeat: {problem}", flush=True)

    def log(self, text: str) -> None:
        """Write a line here and on the share."""
        stamp = datetime.now(UTC).isoformat(timespec="seconds")
        line = f"{stamp} {self.id} {text}\n"
        print(line, end="", flush=True)
        try:
            with (self.share / "05_LOGS" / "watcher.log").open("a") as file:
                file.write(line)
        except OSError as problem:
            print(f"not logged on the share: {problem}", flush=True)


def main() -> int:
    """Read the options and watch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="config.dev.yaml")
    parser.add_argument("--worker-id", default="OrionMX")
    args = parser.parse_args()
    terms = settings(Path(args.config))
    watcher = Watcher(
        Path(os.environ.get("SHARE_ROOT", "./share")),
        args.worker_id,
        float(terms.get("poll_seconds", 2)),
        float(terms.get("work_seconds", 3)),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watcher.stopping.set())
    watcher.run()
    return 0


def settings(path: Path) -> dict[str, str]:
    """Read the few lines below `watcher:`; a real watcher would use a YAML library."""
    found: dict[str, str] = {}
    inside = False
    for line in path.read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            inside = line.startswith("watcher:")
        elif inside and ":" in line:
            key, _, value = line.partition(":")
            found[key.strip()] = value.strip()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
