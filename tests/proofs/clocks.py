"""T11: the wall clock jumps, by a second or by ten years, and nothing happens.

The supervisor goes by a clock that the proof sets (see shifting.c), and has a worker in every
state meanwhile, and some that are asked or must tell that they live. A pump on the same clock
fills a log. What was measured is true time: a delay or a grace that ended early is a violation,
however busy the machine; one that never ends is too, and in the long form one that ends late.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from contextlib import closing, contextmanager

from proofs.living import lives
from proofs.logging_lines import WRITER, check_files, finish_writer
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.shifting import Shift, command_under
from proofs.stations import PATIENCE, Station
from pump.homes import PumpHome, places
from uphold.core.times import parse_utc
from uphold.errors import UpholdError
from uphold.journal.reading import JournalReader
from uphold.testing.waiting import until

HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
JUMPS = tuple(sign * size for size in (1, HOUR, DAY, 10 * YEAR) for sign in (1, -1))
GRACE = 2.0
DELAY = 2.0
LATE = 1.0
"""Seconds by which a delay may end too late; a clock that was set back by the least is as late."""
ENDED_WITHIN = 2.0
"""Seconds that a stop may take beyond its grace (P4)."""
RUNS = 4
LASTING = ("steady", "asked", "beating")
NEGATIVE = re.compile(r"(?<![\w:.-])-\d+(\.\d+)?\s?(s|m|h|d|ms)\b")
FLAPPY = """
import time
with open("marks", "a", buffering=1) as marks:
    print("began", time.monotonic(), file=marks)
    time.sleep(0.1)
    print("ended", time.monotonic(), file=marks)
raise SystemExit(1)
"""
BEATER = """
import os, socket, time
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
    while True:
        try:
            own.sendto(b"WATCHDOG=1", os.environ["NOTIFY_SOCKET"])
        except OSError:
            pass
        time.sleep(0.1)
"""
DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"deaf.{os.getpid()}", "x").close()
time.sleep(10000)
"""
TERMS = f"""
[supervisor]
name = "clocks"
heartbeat_every = "1s"
reconcile_every = "1s"
[workers.steady]
command = "sleep 10000"
[workers.asked]
command = "sleep 10000"
live = {{ exec = ["true"], every = "200ms", timeout = "20s" }}
[workers.beating]
command = {json.dumps([sys.executable, "-ISc", BEATER])}
heartbeat = {{ stale_after = "2s" }}
[workers.flappy]
command = {json.dumps([sys.executable, "-ISc", FLAPPY])}
backoff = {{ first = "{DELAY}s", base = "{DELAY}s", max = "{DELAY}s", jitter = 0 }}
max_restarts = 1000000
[workers.deaf]
command = {json.dumps([sys.executable, "-ISc", DEAF])}
stop = {{ grace = "{GRACE}s" }}
[workers.given_up]
command = "echo run >> runs; sleep 0.2; exit 1"
shell = true
max_restarts = {RUNS - 1}
backoff = {{ first = "300ms", base = "300ms", max = "300ms" }}
[workers.waiting]
command = "echo never >> never"
shell = true
depends_on = ["off"]
[workers.off]
command = "sleep 10000"
enabled = false
[workers.held]
command = "sleep 10000"
[workers.often]
command = "echo ran >> often"
shell = true
schedule = {{ every = "1s" }}
[workers.minutely]
command = "true"
schedule = {{ cron = "* * * * *" }}
"""


class Watch:
    """What is known in true time, and what was seen that must not be."""

    def __init__(self, station, shift, limit):
        self.station = station
        self.shift = shift
        self.limit = limit
        self.wrong = []
        self.began = time.monotonic()
        self.lasting = {}
        self.uptime = 0.0
        self.asked = None
        """The process that was told to end, and when."""
        self.hindered = False
        """The supervisor that told it to was killed: the next one begins the stop anew."""
        self.stops = self.timeouts = 0

    def say(self, text):
        self.wrong.append(f"at {self.shift.seconds:+.0f} s: {text}")

    def look(self):
        """Compare what is said with what must be, whatever the clock says."""
        rows = self.station.rows()
        if self.station.ended() is not None or not rows:
            raise AssertionError(f"no supervisor answers: {self.station.errors.read_text()}")
        for slot, pid in self.lasting.items():
            row = rows[slot]
            if (row["pid"], row["restarts"], row["state"]) != (pid, 0, "running"):
                self.say(f"'{slot}' was disturbed: {row}")
            if row["health"] not in ("healthy", "unknown"):
                self.say(f"'{slot}' is said to be {row['health']}: {row['why']}")
        steady = rows["steady"]
        most = time.monotonic() - self.began
        if not self.uptime <= steady["uptime"] <= most:
            self.say(f"'steady' is up {steady['uptime']} s after {self.uptime} s, of {most:.3f} s")
        self.uptime = steady["uptime"]
        for slot, admin, states in (
            ("held", "paused", {"stopped"}),
            ("waiting", "enabled", {"waiting"}),
            ("flappy", "enabled", {"starting", "running", "backoff", "stopping"}),
            ("given_up", "enabled", {"starting", "running", "backoff", "stopping", "failed"}),
        ):
            if rows[slot]["admin"] != admin or rows[slot]["state"] not in states:
                self.say(f"'{slot}' is {rows[slot]['state']} ({rows[slot]['admin']})")
        for row in rows.values():
            if row["uptime"] < 0:
                self.say(f"a negative age: {row}")
            for key in ("since", "next_attempt_at", "last_health_at"):
                if row[key] is not None:
                    parse_utc(row[key])

    def stop_deaf(self):
        """Begin a stop that takes its whole grace, unless one is under way."""
        if self.asked is None:
            row = self.station.rows()["deaf"]
            deaf = (self.station.folder / f"deaf.{row['pid']}").exists()
            if row["state"] == "running" and deaf:
                self.asked, self.hindered = (row["pid"], time.monotonic()), False
                self.station.call("submit", verb="restart", names=["deaf"], wait=False)
            return
        pid, at = self.asked
        if not lives(pid):
            took = time.monotonic() - at
            if took < GRACE:
                self.say(f"killed after {took:.2f} s of a grace of {GRACE} s")
            late = took - GRACE - ENDED_WITHIN
            if self.limit is not None and late > self.limit and not self.hindered:
                self.say(f"killed only after {took:.2f} s, with a grace of {GRACE} s")
            self.asked = None
            self.stops += 1

    def wait_for_order(self):
        """Wait for an order that cannot come true in time: its limit is true time too."""
        if self.asked is None:
            return
        began = time.monotonic()
        try:
            self.station.call("submit", verb="start", names=["deaf"], timeout=0.5)
        except UpholdError as error:
            took = time.monotonic() - began
            if error.code == "UPH_ORDER_TIMEOUT":
                self.timeouts += 1
                if took < 0.5:
                    self.say(f"an order was given up after {took:.2f} s")

    def read(self):
        """Read what people read, by this clock and by the true one."""
        for words in (("status", "--all"), ("events", "-n", "5"), ("events", "--since", "1h")):
            for shift in (self.shift, None):
                done = run(self.station, shift, *words)
                if done.returncode not in (0, 150, 151) or "Traceback" in done.stderr:
                    self.say(f"{words}: exit {done.returncode}: {done.stderr[-500:]}")
                if found := NEGATIVE.search(done.stdout):
                    self.say(f"{words}: a negative age: {found[0]} in {done.stdout}")


def run(station, shift, *words):
    command = (sys.executable, "-m", "uphold", "-c", station.config, *words)
    return command_under(shift, *command, cwd=station.folder, timeout=PATIENCE)


def jumps(count, seed, folder, *, limit=LATE):
    """Let the clock of one supervisor and one pump jump `count` times.

    `limit` is for what ends too late, in seconds.
    """
    chance = random.Random(seed)
    shift = Shift(folder)
    nursery = Nursery(shift.environ)
    station = Station(folder / "site", nursery)
    try:
        with pumping(folder / "pump", shift) as pump_home, closing(station):
            watch = Watch(station, shift, limit)
            try:
                prepare(watch)
                for turn in range(count):
                    jump(watch, chance, turn)
                shift.set(0)
                conclude(watch)
            except AssertionError as problem:
                watch.say(f"{problem!r}")
            watch.wrong += log_of(pump_home, shift)
        figures = (*measure(watch), f"{watch.stops} stops", f"{watch.timeouts} orders out of time")
    finally:
        nursery.close()
        shift.close()
    wrong = tuple(f"seed {seed}: {each}" for each in watch.wrong)
    return Verdict(count=count, violations=wrong, figures=figures)


def prepare(watch):
    station = watch.station
    station.declare(TERMS)
    station.start()
    up = dict.fromkeys((*LASTING, "held", "deaf"), "running")
    assert station.settle(**up, waiting="waiting")
    station.call("submit", verb="pause", names=["held"])
    rows = station.rows()
    watch.lasting = {slot: rows[slot]["pid"] for slot in LASTING}


def jump(watch, chance, turn):
    """Set the clock at some moment, and look whether anybody minds."""
    time.sleep(chance.uniform(0, 0.2))
    again = turn % 20 == 7
    if again:
        watch.station.kill()
        watch.hindered = True
    watch.shift.set(chance.choice([each for each in JUMPS if each != watch.shift.seconds]))
    if again:
        watch.station.start()
        assert watch.station.settle(steady="running", held="stopped"), "it did not start again"
    watch.look()
    watch.stop_deaf()
    if turn % 5 == 2:
        watch.wait_for_order()
    if turn % 25 == 4:
        watch.read()


def conclude(watch):
    """See that nothing waits for a time that will never come, and that all is on record."""
    station = watch.station
    marks = station.folder / "marks"
    known = marks.read_text().count("began")
    until(lambda: marks.read_text().count("began") > known, PATIENCE, "the next try of 'flappy'")
    until(lambda: watch.stop_deaf() or watch.stops, PATIENCE, "the end of a grace")
    station.settle(deaf="running", given_up="failed")
    watch.look()
    watch.read()
    if (runs := len((station.folder / "runs").read_text().split())) != RUNS:
        watch.say(f"'given_up' ran {runs} times, not {RUNS}")
    if (station.folder / "never").exists():
        watch.say("'waiting' was started")
    watch.wrong += station.unreadable() + list(station.strangers())
    with JournalReader(station.home / "journal.db") as reader:
        events = reader.events(limit=1_000_000)
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        watch.say("events are missing or in disorder")
    watch.wrong += served_twice(events)
    often = len((station.folder / "often").read_text().split())
    if not 1 <= often <= time.monotonic() - watch.began + 1:
        watch.say(f"'often' ran {often} times in {time.monotonic() - watch.began:.1f} s")
    beats = sum(event["type"] == "supervisor.heartbeat" for event in events)
    if beats > time.monotonic() - watch.began + len(station.pids) + 1:
        watch.say(f"{beats} heartbeats in {time.monotonic() - watch.began:.1f} s")


def served_twice(events):
    """Find minutes that a schedule had two runs for; each run is for the time last told."""
    told, served = None, set()
    for event in events:
        if event["entity_id"] != "minutely":
            continue
        payload = event["payload"]
        text = payload.get("next_run") or str(payload.get("why"))
        if event["type"] in ("worker.waiting", "worker.scheduled", "worker.skipped"):
            told = text.removeprefix("next run at ")
        elif event["type"] == "worker.starting":
            if told in served:
                yield f"'minutely' ran twice for {told}"
            served.add(told)


def measure(watch):
    """Compare the delays of 'flappy' with what was declared."""
    marks = (watch.station.folder / "marks").read_text().split()
    late, ended = 0.0, None
    for kind, at in zip(marks[::2], map(float, marks[1::2]), strict=True):
        if kind == "began" and ended is not None:
            if at - ended < DELAY:
                watch.say(f"'flappy' was tried again after {at - ended:.2f} s, not {DELAY} s")
            late = max(late, at - ended - DELAY)
            if watch.limit is not None and at - ended - DELAY > watch.limit:
                watch.say(f"'flappy' was tried again only after {at - ended:.2f} s, not {DELAY} s")
        ended = at if kind == "ended" else ended
    return f"{marks.count('began')} tries", f"the latest {late * 1000:.0f} ms late"


@contextmanager
def pumping(folder, shift):
    """Have a pump that goes by this clock, and somebody who writes numbered lines."""
    home = PumpHome(folder)
    home.configure(max_size=50_000, keep=1000)
    home.worker(home.fifo("web.out"), WRITER, 0.01, 10, home.path)
    os.environ.update(shift.environ)
    try:
        home.started()
    finally:
        for name in shift.environ:
            del os.environ[name]
    try:
        yield home
    finally:
        home.close()


def log_of(home, shift):
    """Read back what the pump wrote, without and with uphold's help."""
    number = finish_writer(home.path)
    home.stop()
    wrong = check_files(places(home.logs, "web.log"), number, "the log")
    for words in (("-n", "100000000"), ("--since", "20000d", "-n", "100000000", "--timestamps")):
        done = command_under(
            None,
            *(sys.executable, "-m", "uphold", "--home", home.path, "logs", "web", "--no-prefix"),
            *words,
            cwd=home.path,
            timeout=PATIENCE,
        )
        if done.returncode or (lines := done.stdout.count("\n")) != number:
            wrong.append(f"logs {words}: {lines} of {number} lines, {done.stderr[-500:]}")
    return wrong


if __name__ == "__main__":
    main({"jumps": jumps})
