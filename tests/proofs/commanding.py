"""T21: fifty clients command the same workers at once, and one of those stops slowly.

A real supervisor with real processes. Each operation is recorded with its times and its answer;
afterwards the history of each worker must be linearizable, the processes that live must be those
last wished for, and nobody may have waited for the slow one but its own clients. Each process
takes a lock of its worker for as long as it lives, without uphold's help: two never overlap.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from proofs.linearizing import Operation, unexplained
from proofs.living import fields
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from uphold.control.client import Connection

CLIENTS = 50
SLOW = "slow"
MOST_ON_SLOW = 6
NAMES = tuple(f"w{number:02}" for number in range(1, 20))
VERBS = ("start", "stop", "restart", "pause", "resume", "enable", "disable", "status", "status")
CONFIG = """
[supervisor]
name = "commands"
[workers.slow]
command = "trap '' TERM; ALONE; while :; do sleep 1; done"
shell = true
stop = { grace = "3s" }
"""
WORKER = """
[workers.NAME]
command = "ALONE; exec sleep 1000"
shell = true
"""
ALONE = "exec 9>>locks/$UPHOLD_SLOT; flock -n 9 || echo $UPHOLD_SLOT >> twice"
"""The lock ends with the last process that has inherited it."""
FORBIDDEN = 4
LIMIT = 1.0
LONGEST = 120.0
"""Seconds after which an order that others keep overtaking counts as starved."""


class Wish(NamedTuple):
    """The sequential specification of one worker; `generation` is the last one seen."""

    up: bool = True
    held: bool = False
    enabled: bool = True
    generation: int = 0

    @property
    def admin(self):
        return "paused" if self.held else "enabled" if self.enabled else "disabled"

    @property
    def wanted(self):
        return self.up and self.admin == "enabled"


CHANGES = {
    "start": {"up": True},
    "restart": {"up": True},
    "stop": {"up": False},
    "pause": {"held": True},
    "resume": {"held": False},
    "enable": {"enabled": True},
    "disable": {"enabled": False},
    "reset": {},
}


class Record(NamedTuple):
    """One operation as a client saw it."""

    worker: str
    verb: str
    waited: bool
    invoked: float
    returned: float
    answer: dict


class Client:
    """One conversation on the socket, one operation at a time."""

    def __init__(self, home, records):
        self._home = home
        self._records = records
        self._requests = 0

    async def open(self):
        raw = Connection(str(self._home))._socket
        self._reader, self._writer = await asyncio.open_unix_connection(sock=raw)

    def close(self):
        self._writer.close()

    async def do(self, worker, verb, *, wait):
        invoked = time.perf_counter()
        if verb == "status":
            answer = await self._ask("status", names=[worker])
        else:
            answer = await self._ask(
                "submit", verb=verb, names=[worker], wait=wait, timeout=LONGEST
            )
        record = Record(worker, verb, wait, invoked, time.perf_counter(), answer)
        self._records.append(record)
        return record

    async def _ask(self, method, **params):
        self._requests += 1
        request = {"id": self._requests, "method": method, "params": params}
        self._writer.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(LONGEST + PATIENCE):
            return json.loads(await self._reader.readline())


class Crowd:
    """Fifty clients and what they did."""

    def __init__(self, home, seed):
        self.home = home
        self.chance = random.Random(seed)
        self.records = []
        self._on_slow = 0

    async def work(self, count):
        """Do `count` operations, then ask once more for each worker what has come of it."""
        left = iter(range(count))
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._one(left))
        client = await self._client()
        for worker in (*NAMES, SLOW):
            await client.do(worker, "reset", wait=True)
        client.close()

    async def _one(self, left):
        client = await self._client()
        for _ in left:
            worker, verb = self._choose()
            self._on_slow += worker == SLOW
            try:
                record = await client.do(worker, verb, wait=self.chance.random() < 0.6)
                if verb == "restart" and record.waited and worker != SLOW:
                    await client.do(worker, "status", wait=False)
            finally:
                self._on_slow -= worker == SLOW
        client.close()

    async def _client(self):
        client = Client(self.home, self.records)
        await client.open()
        return client

    def _choose(self):
        slow = self.chance.random() < 0.05 and self._on_slow < MOST_ON_SLOW
        return SLOW if slow else self.chance.choice(NAMES), self.chance.choice(VERBS)


def operations(count: int, seed: int, folder: Path, *, limit: float | None = LIMIT) -> Verdict:
    """Let 50 clients do `count` operations; `limit` is for the p99 of all but the slow worker."""
    with closing(Nursery()) as nursery, closing(Station(folder / "site", nursery)) as station:
        (station.folder / "locks").mkdir()
        workers = CONFIG + "".join(WORKER.replace("NAME", name) for name in NAMES)
        station.declare(workers.replace("ALONE", ALONE))
        station.start()
        assert station.settle(**dict.fromkeys((*NAMES, SLOW), "running")), "it did not start"
        crowd = Crowd(station.home, seed)
        asyncio.run(crowd.work(count))
        wrong = [*judge(crowd.records), *final(crowd.records, station), *doubles(station)]
    others = sorted(r.returned - r.invoked for r in crowd.records if r.worker != SLOW)
    slow = [r.returned - r.invoked for r in crowd.records if r.worker == SLOW]
    p99 = others[len(others) * 99 // 100]
    if limit is not None and p99 >= limit:
        wrong.append(f"the p99 of operations on other workers is {p99:.2f} s")
    span = max(r.returned for r in crowd.records) - min(r.invoked for r in crowd.records)
    return Verdict(
        count=len(crowd.records),
        violations=tuple(f"seed {seed}: {each}" for each in wrong),
        figures=(
            f"p50 {others[len(others) // 2] * 1e3:.0f} ms",
            f"p99 {p99 * 1e3:.0f} ms",
            f"slow worker up to {max(slow, default=0.0):.1f} s",
            f"{len(crowd.records) / span:.0f} operations/s",
        ),
    )


def judge(records):
    """Say what in these records no order of operations explains."""
    of_worker = defaultdict(list)
    for record in sorted(records, key=lambda each: each.invoked):
        of_worker[record.worker].append(record)
    for worker, found in of_worker.items():
        yield from (f"{worker}: {each}" for each in odd_answers(found))
        problem = unexplained(history_of(found), Wish())
        if problem is not None:
            yield f"{worker}: not linearizable: {problem}"
        yield from (f"{worker}: {each}" for each in unmade_restarts(found))


def history_of(records):
    """Make two operations of an order that was waited for: it was taken, and later seen true."""
    history = []
    for record in records:
        times = {"invoked": record.invoked, "returned": record.returned}
        text = f"{record.verb} -> {told(record)}"
        looks = record.verb == "status" or "error" in record.answer
        history.append(Operation(**times, text=text, effect=effect_of(record), looks=looks))
        seen = outcome_of(record)
        if seen is not None:
            look = Operation(
                **times,
                text=f"{text} (seen)",
                effect=lambda wish, up=seen == "running": wish if wish.wanted is up else None,
                looks=True,
                after=len(history) - 1,
            )
            history.append(look)
    return history


def effect_of(record):
    error = record.answer.get("error")
    if record.verb == "status":
        row = record.answer["result"]["workers"][0]
        return lambda wish: seen_as(wish, row["admin"], row["generation"])
    held_back = record.verb in ("start", "restart")

    def effect(wish):
        refused = held_back and wish.admin != "enabled"
        if refused != (error is not None and error["exit_code"] == FORBIDDEN):
            return None
        return wish if refused else wish._replace(**CHANGES[record.verb])

    return effect


def seen_as(wish, admin, generation):
    if wish.admin != admin or generation < wish.generation:
        return None
    return wish._replace(generation=generation)


def outcome_of(record):
    """Give the state that an order was waited for to reach, if it was."""
    results = record.answer.get("result", {}).get("results")
    return results[0]["state"] if results else None


def told(record):
    if "error" in record.answer:
        return record.answer["error"]["code"]
    if record.verb == "status":
        row = record.answer["result"]["workers"][0]
        return f"{row['admin']}, {row['state']}, generation {row['generation']}"
    return outcome_of(record) or "taken"


def odd_answers(records):
    """Find what no worker that only sleeps may be answered."""
    for record in records:
        error = record.answer.get("error")
        if error is not None and error["exit_code"] != FORBIDDEN:
            yield f"{record.verb} came to {error}"
        for result in record.answer.get("result", {}).get("results", ()):
            if not result["ok"] or result["state"] not in ("running", "stopped"):
                yield f"{record.verb} came to {result}"


def unmade_restarts(records):
    """Find restarts that were called done although the process is the old one."""
    reads = [r for r in records if r.verb == "status" and "result" in r.answer]
    numbers = [(r, r.answer["result"]["workers"][0]["generation"]) for r in reads]
    for record in records:
        if record.verb != "restart" or outcome_of(record) != "running":
            continue
        before = max((n for r, n in numbers if r.returned < record.invoked), default=0)
        after = min((n for r, n in numbers if r.invoked > record.returned), default=before + 1)
        if after <= before:
            yield f"a restart was done, but the generation is still {after}"


def doubles(station):
    """Name the workers of which two processes lived at the same time, however shortly."""
    found = station.folder / "twice"
    for worker in sorted(set(found.read_text().split())) if found.exists() else ():
        yield f"{worker} lived twice"


def final(records, station):
    """Compare the last word about each worker with the processes that really live."""
    lives = station.processes()
    for record in records:
        if record.verb == "reset":
            wanted, found = outcome_of(record) == "running", lives.get(record.worker, ())
            sessions = {each[3] for each in map(fields, found) if each}  # one for each start
            if len(sessions) > 1 or bool(sessions) != wanted:
                yield f"{record.worker} ended as {told(record)}, but these live: {found}"


if __name__ == "__main__":
    main({"operations": operations})
