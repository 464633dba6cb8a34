"""T04a: a supervisor is killed, or told of an error, at every call that touches its home.

Each point is one handler, one kind of fault and one number: the Nth call on a file of the home
while that handler runs, over all threads, SQLite's calls included. Afterwards the state on disk
must be whole, a new supervisor must find everything, and whatever was acknowledged must stand.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import Counter
from contextlib import closing
from typing import NamedTuple

from proofs.disks import in_memory
from proofs.faulting import KINDS, Faults
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from uphold.errors import UpholdError
from uphold.testing.waiting import until

TERMS = """
[supervisor]
name = "points"
[defaults]
stop = { grace = "5s" }
backoff = { base = "10ms", max = "20ms" }
[workers.web]
command = "sleep 1000"
[workers.two]
command = "sleep 1000"
"""
MORE = TERMS + 'environment = { NEW = "1" }\n[workers.three]\ncommand = "sleep 1000"\n'
BOTH = {"web": "running", "two": "running"}
WRONG_ANSWERS = {"UPH_CONTROL_BROKEN", "UPH_SUPERVISOR_SILENT"}
REFUSED = "UPH_AUDIT_UNWRITABLE"


class Point(NamedTuple):
    """Where the fault is."""

    handler: str
    kind: str
    at: int

    def __str__(self):
        return f"{self.kind} at call {self.at} of {self.handler}"


class Trial:
    """One handler run into one fault, and what was learned on the way."""

    def __init__(self, station, faults):
        self.station = station
        self.faults = faults
        self.before = {}
        self.said = {}
        """By what was asked: "yes", "refused", or None when nobody knows."""

    def run(self, point):
        """Prepare, arm, act, disarm; gives what was struck and the number of calls."""
        self.station.declare(TERMS)
        if point.handler != "start":
            self.station.start()
            assert self.station.settle(**BOTH), "it did not start"
            self.before = {slot: row["pid"] for slot, row in self.station.rows().items()}
        if point.handler == "adopt":
            self.station.kill()
        self.faults.arm(self.station.home, point.kind, point.at)
        HANDLERS[point.handler](self)
        return self.faults.disarm()

    def ask(self, what, method, **params):
        """Order something, and remember what was answered."""
        try:
            self.station.call(method, **params)
        except UpholdError as error:
            self.said[what] = "refused" if error.code == REFUSED else None
            if error.code in WRONG_ANSWERS:
                raise AssertionError(f"{what}: {error.message}") from None
        else:
            self.said[what] = "yes"

    def pid(self, slot):
        return self.station.rows().get(slot, {}).get("pid")


def start(trial):
    trial.station.start()
    trial.station.settle(**BOTH)


def order(trial):
    trial.ask("pause", "submit", verb="pause", names=["two"])
    trial.ask("restart", "submit", verb="restart", names=["web"])


def reload(trial):
    trial.station.declare(MORE)
    trial.ask("reload", "reload")


def stop(trial):
    trial.ask("stop", "shutdown")
    if trial.said["stop"] == "yes":
        until(lambda: trial.station.ended() is not None, PATIENCE, "the end after a stop")


def worker_exit(trial):
    """A worker dies, and comes back."""
    old = trial.before["web"]
    os.kill(old, signal.SIGKILL)
    until(
        lambda: trial.station.ended() is not None or trial.pid("web") not in (None, old),
        PATIENCE,
        "the return of a worker",
    )


HANDLERS = {
    "start": start,
    "adopt": start,
    "order": order,
    "reload": reload,
    "stop": stop,
    "exit": worker_exit,
}


def points(count, seed, folder):
    """Try `count` of all points, or all of them."""
    found, tried, calls = [], Counter(), Counter()
    with Workshop(folder) as workshop:
        for handler in HANDLERS:
            for kind in ("kill", "torn"):
                calls[handler, kind] = workshop.count(handler, kind)
        population = [
            Point(handler, kind, at)
            for handler in HANDLERS
            for kind in KINDS
            for at in range(1, calls[handler, "torn" if kind == "torn" else "kill"] + 1)
        ]
        if count < len(population):
            population = random.Random(seed).sample(population, count)
        for point in population:
            struck, wrong = workshop.strike(point)
            tried["struck" if struck else "not reached"] += 1
            found += [f"seed {seed}, {point} ({struck}): {each}" for each in wrong]
    handlers = ", ".join(f"{name} {calls[name, 'kill']}" for name in HANDLERS)
    return Verdict(
        count=tried["struck"],
        violations=tuple(found),
        figures=(f"calls: {handlers}", f"{tried['not reached']} not reached"),
    )


class Workshop:
    """The folder, the nursery and the page that all points share."""

    def __init__(self, folder):
        # In memory: an fsync of a real disk costs more than all the rest.
        self._folder = in_memory(folder, "points-")
        self._faults = Faults(self._folder)
        self._nursery = Nursery(self._faults.environ)
        self._turn = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._nursery.close()
        self._faults.close()
        shutil.rmtree(self._folder)

    def count(self, handler, kind):
        """Run a handler untouched, and count its calls."""
        with closing(self._station()) as station:
            return Trial(station, self._faults).run(Point(handler, kind, -1))[1]

    def strike(self, point):
        """Try one point; gives what was struck and what is wrong afterwards."""
        with closing(self._station()) as station:
            trial = Trial(station, self._faults)
            struck = ""
            try:
                struck, _ = trial.run(point)
                wrong = examine(trial, point) if struck else []
            except AssertionError as problem:
                wrong = [str(problem)]
                struck = struck or self._faults.disarm()[0]
            wrong += [f"a traceback: {text[-600:]}" for text in tracebacks(station)]
        # A supervisor that is just being reaped may still take a file of its journal away.
        shutil.rmtree(station.folder, ignore_errors=True)
        return struck, wrong

    def _station(self):
        self._turn += 1
        return Station(self._folder / f"s{self._turn}", self._nursery)


def tracebacks(station):
    """Find what a supervisor left on its standard error by mistake."""
    text = station.errors.read_text() if station.errors.exists() else ""
    return [text] if "Traceback" in text else []


def examine(trial, point):
    """Look at the state on disk, then at a supervisor that goes on, then at the next one."""
    station = trial.station
    killed = point.kind in ("kill", "torn")
    if killed:
        until(lambda: station.ended() is not None, PATIENCE, "the end of a killed supervisor")
    wrong = station.unreadable()
    if not killed:
        if station.ended() is None:
            wrong += stable(station)
        elif point.handler in ("order", "reload", "exit"):
            wrong.append(f"the supervisor ended with {station.ended()}")
        elif station.claims_order() and station.processes():
            wrong.append(f"the lock says that all ended in order: {station.processes()}")
        station.kill()
        wrong += station.unreadable()
    station.start()
    wanted = dict(BOTH)
    if "pause" in trial.said:
        wanted["two"] = {"yes": "stopped", "refused": "running", None: "running|stopped"}[
            trial.said["pause"]
        ]
    if point.handler == "reload":
        wanted["three"] = "running"
    if not station.settle(**wanted):
        return [*wrong, f"the next supervisor ended with {station.ended()}"]
    wrong += stable(station)
    wrong += [] if untouched(trial, point) else ["a worker was disturbed that nothing concerned"]
    if trial.said.get("restart") == "yes" and trial.pid("web") == trial.before["web"]:
        wrong.append("a restart was acknowledged, and the old process still runs")
    return wrong


def stable(station):
    """Give what is wrong with the processes; a moment's difference is none."""
    for _ in range(20):
        seen = list(station.strangers())
        if not seen:
            return []
        station.call("ping")
    return seen


def untouched(trial, point):
    """Tell whether web is the process it was, wherever nothing was wanted of it."""
    if point.handler in ("adopt", "reload") or trial.said.get("restart") == "refused":
        return trial.pid("web") == trial.before["web"]
    return True


if __name__ == "__main__":
    main({"core": points})
