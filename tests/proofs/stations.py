"""A home with a real supervisor from the nursery, and a look at it that does not trust it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from uphold.control.client import Connection
from uphold.errors import UpholdError
from uphold.host.mirrors import checksum
from uphold.journal.audit import verify
from uphold.journal.reading import JournalReader
from uphold.testing.waiting import until

PATIENCE = 60.0
"""Seconds after which something counts as hanging, on a slow and busy machine too."""


class Station:
    """One folder with a configuration and a home."""

    def __init__(self, folder, nursery):
        self.folder = folder
        self.home = folder / ".uphold"
        self.config = folder / "uphold.toml"
        self.errors = folder / "errors"
        self.nursery = nursery
        self.pid = 0
        self.pids = []
        folder.mkdir(parents=True, exist_ok=True)

    def declare(self, text):
        """Replace the configuration, as an editor does."""
        temp = self.folder / ".new"
        temp.write_text(text)
        temp.rename(self.config)

    def start(self, *words):
        self.pid = self.nursery.supervisor(self.home, self.config, self.errors, *words)
        self.pids.append(self.pid)

    def ended(self):
        """Give the exit code of the last supervisor, None while it lives."""
        return self.nursery.ended(self.pid)

    def kill(self):
        if self.ended() is None:
            os.kill(self.pid, signal.SIGKILL)
        until(lambda: self.ended() is not None, PATIENCE, "the end of a killed supervisor")

    def call(self, method, **params):
        """Ask the supervisor; UpholdError is what it says, or that it is gone."""
        with Connection(str(self.home)) as connection:
            return connection.call(method, {"author": "proof", **params}, patience=PATIENCE)

    def rows(self):
        """Give what the supervisor says of each slot, {} while it does not answer."""
        try:
            return {row["slot"]: row for row in self.call("status", all=True)["workers"]}
        except UpholdError:
            return {}

    def settle(self, **wanted):
        """Wait until each slot is in one of the given states; True unless it died first."""

        def look():
            if self.ended() is not None:
                return "ended"
            rows = self.rows()
            return all(
                rows.get(slot, {}).get("state") in states.split("|")
                for slot, states in wanted.items()
            )

        try:
            return until(look, PATIENCE, f"{wanted}") != "ended"
        except AssertionError as problem:
            seen = {slot: row["state"] for slot, row in self.rows().items()}
            raise AssertionError(f"{problem}; it says {seen}") from None

    def processes(self):
        """Find the live processes of each slot by their environment."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                environ = Path(f"/proc/{entry}/environ").read_bytes()
                if b"UPHOLD_NONCE=" not in environ:
                    continue
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                here = Path(os.readlink(f"/proc/{entry}/cwd")).is_relative_to(self.folder)
                if not here and str(self.home).encode() not in command:
                    continue
            except OSError:
                continue
            slot = next(
                (each[12:] for each in environ.split(b"\0") if each.startswith(b"UPHOLD_SLOT=")),
                b"?",
            )
            found.setdefault(slot.decode(), []).append(int(entry))
        return found

    def claims_order(self):
        """Tell whether the lock says that the last supervisor ended in order."""
        with suppress(FileNotFoundError, ValueError):
            return json.loads((self.home / "lock").read_bytes())["stopped_at"] is not None
        return False

    def strangers(self):
        """Say which slots live twice, and which processes the supervisor does not know."""
        known = {slot: row["pid"] for slot, row in self.rows().items()}
        for slot, pids in self.processes().items():
            if len(pids) > 1:
                yield f"{slot} lives {len(pids)} times: {pids}"
            elif known.get(slot) not in pids:
                yield f"{slot} lives as {pids[0]}, the supervisor says {known.get(slot)}"

    def unreadable(self):
        """Say what of the state on disk is not whole, in sentences."""
        return [*self._mirror(), *self._journal()]

    def _mirror(self):
        path = self.home / "runtime.json"
        try:
            state = json.loads(path.read_bytes())
        except FileNotFoundError:
            return
        except ValueError as problem:
            yield f"runtime.json is torn: {problem}"
            return
        if state["checksum"] != checksum(state):
            yield "runtime.json has a wrong checksum"

    def _journal(self):
        path = self.home / "journal.db"
        if not path.exists() or not path.stat().st_size:
            return
        try:
            with JournalReader(path) as reader:
                yield from map(str, verify(reader))
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        except (UpholdError, sqlite3.Error) as problem:
            if "no such table" not in str(problem):
                yield f"the journal cannot be read: {problem}"
        else:
            if verdict != "ok":
                yield f"the journal is damaged: {verdict}"

    def close(self):
        """End whatever is left."""
        for pid in self.pids:
            if self.nursery.ended(pid) is None:
                os.kill(pid, signal.SIGKILL)
        while left := [pid for pids in self.processes().values() for pid in pids]:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
