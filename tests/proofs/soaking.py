"""T20: many workers for a long time, some of them dying, all of them asked about.

One supervisor, workers that sleep, some that talk; workers are killed at random; questions come
over the socket and by the command line, and a listener hears every event. All of it is copied to
a database, whose server is killed, frozen and stopped again and again. Nothing may be lost or
doubled, and nothing may grow. What depends on how fast the machine is counts in the long form only.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from proofs.living import cpu_seconds, fields
from proofs.nursery import Nursery
from proofs.outages import differences
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from servers import MariaDB, running
from uphold.control.client import Connection
from uphold.errors import UpholdError
from uphold.testing.waiting import until

WORKERS = 1000
CHURN = 0.01
"""The part of all workers that is killed each minute."""
NOISY = 20
"""Each so manieth worker writes a line a second."""
MOST_GROWTH, MOST_CPU, MOST_LAG = 5 * 2**20, 0.25, 0.050
MOST_THREADS = 12
"""Some come and go on demand; a leak passes this within minutes."""
SLACK = 5
"""Descriptors more than before; a leak of one for each restart is far more."""
OUTAGES = 120.0
"""Seconds between two outages of the database."""
SETTINGS = """
[store]
url = "{url}"
[defaults]
backoff = {{ first = "0s", base = "100ms", max = "100ms", jitter = 0 }}
max_restarts = "unlimited"
stop.grace = "5s"
"""


def churn(count, seed, folder, *, workers=WORKERS, share=CHURN, outages=OUTAGES, in_gate=False):
    """Keep a house of workers for so many seconds."""
    with running(MariaDB) as server:
        unrest = Unrest(server, random.Random(seed), outages)
        nursery = Nursery()
        station = Station(folder / "house", nursery)
        try:
            return House(station, seed, workers, unrest).live(count, share, in_gate=in_gate)
        finally:
            unrest.end()
            station.close()
            nursery.close()


class Unrest:
    """A database server that goes away and comes back, beside everything else."""

    def __init__(self, server, rng, every):
        self.url = server.fresh()
        self.outages = Counter()
        self._server = server
        self._rng = rng
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live)

    def begin(self):
        self._thread.start()

    def end(self):
        """Leave the server as it should be: up."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def differences(self, home):
        """Say in what the copy is not what the journal of this home has."""
        yield from differences(home, self._server, self.url.rpartition("/")[2])

    def _live(self):
        while not self._over.wait(self._rng.uniform(0.5, 1.5) * self._every):
            kind = self._rng.choice(("kill", "freeze", "stop"))
            self.outages[kind] += 1
            away = self._rng.uniform(0.0, self._every / 4)
            if kind == "freeze":
                with self._server.frozen():
                    self._over.wait(away)
                continue
            self._server.kill() if kind == "kill" else self._server.stop()
            self._over.wait(away)
            self._server.start()


class House:
    """A supervisor with many workers, and everybody who wants something of it."""

    def __init__(self, station, seed, workers, unrest):
        self._station = station
        self._unrest = unrest
        self._seed = seed
        self._rng = random.Random(seed)
        self._workers = workers
        self._killed = Counter()
        self._pids = {}
        self._waiting = {}
        """Slots that were killed, and the process they had."""
        self._answers = []
        """How long the cheapest question took, each time."""
        self._heard = Counter()
        self._last = None
        """The number of the event heard last."""
        self._commands = []
        self._wrong = []

    def live(self, seconds, share, *, in_gate):
        self._begin()
        start = time.monotonic()
        first_tenth, end = start + seconds / 10, start + seconds
        self._busy_until(first_tenth, share)
        before, used, began = self._at_rest(), cpu_seconds(self._station.pid), time.monotonic()
        self._answers.clear()
        self._unrest.begin()
        self._busy_until(end, share)
        self._unrest.end()
        used = (cpu_seconds(self._station.pid) - used) / (time.monotonic() - began)
        after = self._at_rest(no_more_than=before)
        self._judge(before, after)
        lag = sorted(self._answers)[int(len(self._answers) * 0.99)] if self._answers else 0.0
        growth = after["rss"] - before["rss"]
        if not in_gate:
            self._expect(growth < MOST_GROWTH, f"memory grew by {growth / 2**20:.1f} MiB")
            self._expect(used < MOST_CPU, f"it used {used:.0%} of a core")
            self._expect(lag < MOST_LAG, f"p99 of the cheapest question is {lag * 1000:.0f} ms")
        self._copied()
        self._end()
        figures = (
            f"{self._workers:,} workers",
            f"{self._killed.total():,} killed",
            f"RSS {after['rss'] / 2**20:.1f} MiB ({growth / 2**20:+.1f})",
            f"{after['fds']} descriptors ({after['fds'] - before['fds']:+})",
            f"{after['threads']} threads",
            f"CPU {used:.1%}",
            f"p99 {lag * 1000:.1f} ms of {len(self._answers):,}",
            f"{self._heard.total():,} events heard",
            f"{self._unrest.outages.total()} outages of the database",
        )
        return Verdict(count=round(seconds), violations=tuple(self._wrong), figures=figures)

    def _begin(self):
        noise = 'command = ["sh", "-c", "while :; do echo noise; sleep 1; done"]'
        quiet = 'command = ["sleep", "1000000"]'
        lines = (f"[workers.w{n}]\n{quiet if n % NOISY else noise}\n" for n in range(self._workers))
        self._station.declare(SETTINGS.format(url=self._unrest.url) + "".join(lines))
        self._station.start()
        until(self._all_run, 5 * PATIENCE, f"{self._workers} running workers")

    def _all_run(self):
        assert self._station.ended() is None, "the supervisor ended"
        rows = self._station.rows()
        self._look(rows)
        return len(rows) > self._workers and all(row["state"] == "running" for row in rows.values())

    def _look(self, rows):
        """Learn who runs, and which of the killed are back."""
        for slot, row in rows.items():
            if row["state"] != "running" or row["pid"] is None:
                self._pids.pop(slot, None)
            elif row["pid"] != self._waiting.get(slot):
                self._waiting.pop(slot, None)
                self._pids[slot] = row["pid"]
        self._pids = {slot: pid for slot, pid in self._pids.items() if not _is_ours(slot)}

    def _busy_until(self, end, share):
        """Kill, ask and listen; each in its own rhythm."""
        rhythms = {
            self._ping: 0.05,
            self._status: 1.0,
            self._show: 0.7,
            self._command: 5.0,
            self._kill: 60 / (self._workers * share),
        }
        due = dict.fromkeys(rhythms, time.monotonic())
        with (
            Connection(str(self._station.home)) as asking,
            Connection(str(self._station.home)) as hearing,
        ):
            hearing.call("subscribe", {"from_seq": None}, patience=PATIENCE)
            self._last = None
            while (now := time.monotonic()) < end:
                for deed, every in rhythms.items():
                    if due[deed] <= now:
                        due[deed] = max(due[deed] + every, now)
                        deed(asking)
                self._hear(hearing)
                time.sleep(max(0.0, min(0.05, min(due.values()) - time.monotonic())))

    def _ping(self, asking):
        began = time.perf_counter()
        asking.call("ping", patience=PATIENCE)
        self._answers.append(time.perf_counter() - began)

    def _status(self, asking):
        answer = asking.call("status", {"all": True}, patience=PATIENCE)
        self._look({row["slot"]: row for row in answer["workers"]})

    def _show(self, asking):
        asking.call("show", {"name": f"w{self._rng.randrange(self._workers)}"}, patience=PATIENCE)

    def _command(self, _asking):
        """Let the command line have a look, one at a time."""
        self._commands = [each for each in self._commands if each.poll() is None]
        if not self._commands:
            command = [sys.executable, "-m", "uphold", "--home", str(self._station.home)]
            verb = self._rng.choice((["status", "--json"], ["events", "--json"], ["why", "w1"]))
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self._commands = [subprocess.Popen([*command, *verb], **quiet)]

    def _kill(self, _asking):
        """Kill a worker that is known to run; the same one again only once it is back."""
        at_risk = sorted(self._pids)
        if not at_risk:
            return
        slot = self._rng.choice(at_risk)
        pid = self._pids.pop(slot)
        if f"UPHOLD_SLOT={slot}".encode() not in _variables(pid):
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._killed[slot] += 1
            self._waiting[slot] = pid

    def _hear(self, hearing):
        try:
            while (message := hearing.receive(0.0)) is not None:
                event = message.get("event", {})
                self._heard[event.get("type")] += 1
                self._follow(event)
        except EOFError:
            self._wrong.append(f"seed {self._seed}: the listener was hung up on")
            raise UpholdError("nobody tells events any more") from None

    def _follow(self, event):
        """Expect that whoever keeps up hears of every event, and of no gap (P11)."""
        number, after = event.get("seq"), self._last
        follows = after is None or number == after + 1
        self._expect(follows and event.get("type") != "gap", f"{event} was heard after {after}")
        self._last = number

    def _at_rest(self, no_more_than=None):
        """Measure when everybody is back and nobody asks; what is let go of late is waited for."""
        until(lambda: self._all_run() and not self._waiting, 5 * PATIENCE, "all killed ones back")
        for each in self._commands:
            each.wait()
        seen = self._measured()
        if no_more_than is not None:
            with suppress(AssertionError):
                until(lambda: self._measured()["fds"] <= no_more_than["fds"], PATIENCE)
            seen = self._measured()
        return seen

    def _measured(self):
        process = Path(f"/proc/{self._station.pid}")
        return {
            "rss": int(fields(self._station.pid)[21]) * os.sysconf("SC_PAGE_SIZE"),
            "fds": len(os.listdir(process / "fd")),
            "threads": len(os.listdir(process / "task")),
        }

    def _judge(self, before, after):
        fds, threads = after["fds"] - before["fds"], after["threads"]
        self._expect(fds <= SLACK, f"it holds {fds} descriptors more than before")
        self._expect(threads <= MOST_THREADS, f"it has {threads} threads")
        rows = {slot: row for slot, row in self._station.rows().items() if not _is_ours(slot)}
        self._expect(len(rows) == self._workers, f"it tells of {len(rows)} workers")
        for slot, row in rows.items():
            killed = self._killed[slot]
            if (row["restarts"], row["generation"]) != (killed, killed + 1):
                told = f"{row['restarts']} restarts, generation {row['generation']}"
                self._expect(False, f"{slot} was killed {killed} times and tells {told}")
        alive = _leaders(self._station)
        for slot in {*rows, *alive}:
            told, found = rows.get(slot, {}).get("pid"), alive.get(slot, [])
            self._expect(
                _is_ours(slot) or found == [told],
                f"{slot} is told as {told} and lives as {found}",
            )

    def _expect(self, right, otherwise):
        if not right:
            self._wrong.append(f"seed {self._seed}: {otherwise}")

    def _copied(self):
        """Wait until the database has everything, and expect that nothing was given up."""
        store = until(self._caught_up, 5 * PATIENCE, "a complete copy in the database")
        self._expect(not store["lost"] and not store["set_aside"], f"the copy says {store}")

    def _caught_up(self):
        store = self._station.call("status")["store"]
        return store if store["state"] == "caught_up" and store["pending"] == 0 else None

    def _end(self):
        self._station.call("shutdown")
        code = until(
            lambda: self._station.ended() is not None and [self._station.ended()],
            5 * PATIENCE,
            "its end",
        )
        self._expect(code == [0], f"it ended with {code}")
        left = self._station.processes()
        self._expect(not left, f"these live on after the end: {left}")
        self._wrong += [
            f"seed {self._seed}: {each}" for each in self._unrest.differences(self._station.home)
        ]


def _is_ours(slot):
    """Tell whether it is a companion, which nobody kills here."""
    return slot.startswith("@")


def _variables(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _leaders(station):
    """Find the main process of each slot: those that lead a session; the rest are their children."""
    found = station.processes()
    return {
        slot: sorted(
            pid
            for pid in pids
            if (each := fields(pid)) and int(each[3]) == pid and each[0] not in "ZX"
        )
        for slot, pids in found.items()
    }


if __name__ == "__main__":
    main({"churn": churn})
