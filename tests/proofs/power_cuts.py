"""T04c: the power fails while a supervisor writes, again and again.

The home lies on an ext4 disk in memory. A cut is a copy of that disk, taken while the supervisor
is held in the middle of whatever it does: what only its page cache knew is not in it. The copy is
mounted as after a boot (ext4 replays its journal) and compared with what was acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from proofs.disks import in_memory, make_ext4, mounted
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import Station
from uphold.errors import UpholdError
from uphold.host.clock import boot_id
from uphold.host.mirrors import checksum
from uphold.journal.audit import verify
from uphold.journal.reading import JournalReader
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.testing.waiting import until

CLIENTS = ("one", "two", "three")
MEBIBYTES = 24
CHAPTER = 25
"""Cuts until there is a new disk."""
LEAST_FREE = 6 << 20
"""Bytes; with less there is a new disk sooner: what a full one does is T10's business."""
TERMS = '[supervisor]\nname = "cuts"\n[workers.web]\ncommand = "sleep 1000"\n' + "".join(
    f'[workers.{name}]\ncommand = "sleep 1000"\nenabled = false\n' for name in CLIENTS
)


class Client(threading.Thread):
    """Somebody who pauses and resumes one worker for ever, and knows what was acknowledged."""

    def __init__(self, station, name):
        super().__init__(name=name, daemon=True)
        self.station = station
        self.jobs = []
        self.held = False
        self.asked = False
        """What was asked for last; differs from `held` while no answer has come."""
        self.ending = False

    def run(self):
        while not self.ending:
            self.asked = not self.held
            try:
                told = self.station.call(
                    "submit", verb="pause" if self.asked else "resume", names=[self.name]
                )
            except (UpholdError, OSError):
                self._find_out()
                continue
            self.jobs.append(told["job_id"])
            self.held = self.asked

    def _find_out(self):
        """The supervisor was killed meanwhile: look which of the two it became."""
        while not self.ending:
            row = self.station.rows().get(self.name)
            if row is not None:
                self.held = row["admin"] == "paused"
                return
            time.sleep(0.005)


def cuts(count, seed, folder):
    """Cut the power `count` times."""
    chance = random.Random(seed)
    violations, jobs = [], 0
    nursery = Nursery()
    try:
        first = 0
        while first < count:
            turns = range(first, min(first + CHAPTER, count))
            top = in_memory(folder, "cuts-")
            try:
                done, wrong, acknowledged = chapter(turns, chance, top, nursery)
            finally:
                shutil.rmtree(top)
            violations += [f"seed {seed}, {each}" for each in wrong]
            jobs += acknowledged
            first += done
    finally:
        nursery.close()
    return Verdict(
        count=count, violations=tuple(violations), figures=(f"{jobs} acknowledged orders",)
    )


def chapter(turns, chance, top, nursery):
    """Cut the power of one supervisor some times; tell how often it was done."""
    make_ext4(top / "image", MEBIBYTES)
    violations, done = [], 0
    with (
        mounted("-o", "loop", top / "image", top / "disk") as disk,
        closing(Station(disk / "site", nursery)) as station,
    ):
        station.declare(TERMS)
        station.start()
        station.settle(web="running")
        clients = [Client(station, name) for name in CLIENTS]
        for client in clients:
            client.start()
        try:
            for turn in turns:
                _go_on(station, chance)
                promised = cut(station, clients, top)
                violations += [f"cut {turn}: {each}" for each in examine(top, promised)]
                done += 1
                if shutil.disk_usage(disk).free < LEAST_FREE:
                    break
        finally:
            for client in clients:
                client.ending = True
            station.kill()
            for client in clients:
                client.join(60)
    return done, violations, sum(len(client.jobs) for client in clients)


def _go_on(station, chance):
    """Let it write for a moment; one time in ten from its very beginning."""
    if chance.random() < 0.1:
        station.kill()
        station.start()
        time.sleep(chance.uniform(0, 0.15))
    else:
        time.sleep(chance.uniform(0, 0.015))


def cut(station, clients, top):
    """Hold the supervisor and copy the disk; gives what must be on it."""
    os.kill(station.pid, signal.SIGSTOP)
    try:
        until(lambda: _held(station.pid), 30, "the supervisor to hold still")
        promised = {c.name: (list(c.jobs), {c.held, c.asked}) for c in clients}
        # The kernel goes on writing by itself: what is read twice alike was there at one moment.
        last = b""
        while (now := (top / "image").read_bytes()) != last:
            last = now
        (top / "copy").write_bytes(last)
    finally:
        os.kill(station.pid, signal.SIGCONT)
    return promised


def examine(top, promised):
    """Mount the copy as after a boot; say what is missing or torn."""
    with mounted("-o", "loop", top / "copy", top / "after") as disk:
        home = disk / "site/.uphold"
        try:
            return [*_mirror(home / "runtime.json"), *_journal(home / "journal.db", promised)]
        except (UpholdError, sqlite3.Error, AssertionError) as problem:
            return [f"the journal cannot be used: {problem!r}"]


def _mirror(path):
    with suppress(FileNotFoundError):
        content = path.read_bytes()
        try:
            state = json.loads(content)
        except ValueError:
            return [f"runtime.json is torn: {content[:80]!r} ({len(content)} bytes)"]
        if state["checksum"] != checksum(state):
            return ["runtime.json is a mixture"]
    return []


def _journal(path, promised):
    """Open it as the next supervisor does, after another boot."""
    owner = Owner(name="cuts", hostname="after", pid=1, id="")
    last = _last_seq(path)
    journal, rescued = open_journal(path, boot_id=f"not {boot_id()}", owner=owner, now=time.time())
    if rescued:
        yield f"the journal was given up: {rescued}"
        return
    memory = journal.recall()
    if memory.last_seq <= last or "gap" not in memory.meta:
        yield f"numbers may be given out twice: {memory.last_seq} after {last}"
    if "unreadable" in memory.meta:
        yield f"rows are torn: {memory.meta['unreadable']}"
    with JournalReader(path) as reader:
        yield from map(str, verify(reader))
        kept = {row["job_id"] for row in reader.jobs(limit=1_000_000)}
        audited = {str(row["audit_id"]) for row in reader.audit(limit=1_000_000)}
        overrides = reader.overrides()
        for event in reader.events(limit=1_000_000):
            if isinstance(event["payload"], str):
                yield f"event {event['seq']} is torn"
    for name, (jobs, holds) in promised.items():
        if lost := set(jobs) - kept:
            yield f"{len(lost)} acknowledged orders of '{name}' are lost: {sorted(lost)[:3]}"
        if len(audited) < len(jobs):
            yield f"the audit has {len(audited)} rows"
        if bool((overrides.get(name) or {}).get("held")) not in holds:
            yield f"'{name}' should be {holds}, and is {overrides.get(name)}"


def _last_seq(path):
    with JournalReader(path) as reader:
        newest = reader.events(limit=1, newest_first=True)
    return newest[0]["seq"] if newest else 0


def _held(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZX"


if __name__ == "__main__":
    main({"cuts": cuts})
