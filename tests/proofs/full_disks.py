"""T10: the home's disk is full, out of inodes, beyond a quota or read-only; and then well again.

The home is a small disk of its own. Workers run, crash and write; people give orders and edit the
file; supervisor and pump are killed. Nothing may be stopped or restarted for the disk's sake, what
cannot be put on record is refused, and once there is room everything catches up.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress

from proofs import disks
from proofs.living import lives
from proofs.logging_lines import WRITER, check_files
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from pump.homes import places
from uphold.errors import UpholdError
from uphold.host.mirrors import checksum
from uphold.journal.reading import JournalReader
from uphold.testing.waiting import until

SMALL = "size=8m,nr_inodes=100,mode=700"
"""SQLite lets its log grow to 4 MiB before it tidies up."""
PROMISED = 10.0
"""Seconds until everything has caught up once there is room."""
REFUSED = "UPH_AUDIT_UNWRITABLE"
UNCLEAR = ("UPH_INTERNAL", "UPH_OUTPUT_LOST", "Traceback")
STORIES = ("full", "readonly", "inodes", "broken", "both", "first start")
BTRFS = ("copying", "quota")
"""Where each change is written to a new place; not every kernel has it."""
FULL = ("full", "copying", "quota")
LASTING = ("steady", "web", "talker")
TERMS = """
[supervisor]
name = "full"
[defaults]
stop = { grace = "5s" }
backoff = { base = "100ms", max = "200ms" }
max_restarts = 100000
[workers.steady]
command = "sleep 1000"
[workers.web]
command = "sleep 1000"
[workers.toggle]
command = "sleep 1000"
[workers.talker]
command = %(talker)s
logs = { max_size = "20KB", keep = %(keep)d }
"""
BUSY = """
[workers.flappy]
command = "sleep 0.2; exit 1"
shell = true
"""
MORE = '[workers.extra]\ncommand = "sleep 1000"\n'


def terms(folder, keep):
    words = [sys.executable, "-ISc", WRITER, "0.02", "10", str(folder)]
    return TERMS % {"talker": json.dumps(words), "keep": keep}


class Round:
    """One home on one small disk, and what was done to it."""

    def __init__(self, station, chance):
        self.station = station
        self.chance = chance
        self.done = Counter()
        self.wrong = []
        self.paused = False
        self.busy = chance.random() < 0.5
        """Where things happen all the time, whatever was missed is soon tried again."""
        self.keep = 5
        self.crashes = 0
        self.forgetful = False
        """A killed supervisor takes with it what it could not write."""

    def declare(self, more=""):
        text = terms(self.station.folder, self.keep) + more
        self.station.declare(text + BUSY if self.busy else text)

    def say(self, text):
        self.wrong.append(text)

    def note_lasting(self):
        rows = self.station.rows()
        self.pids = {slot: rows[slot]["pid"] for slot in LASTING}

    def ask(self, method, **params):
        """Give an order; True when it stands, False when it was refused for the disk's sake."""
        try:
            self.station.call(method, **params)
        except UpholdError as error:
            if error.code != REFUSED:
                self.say(f"{method} {params.get('verb', '')}: {error.code}: {error.message}")
            elif "record" not in error.message:
                self.say(f"refused without saying why: {error.message}")
            self.done["refused"] += 1
            return False
        self.done["taken"] += 1
        return True


def crash(this):
    """A worker dies, and must come back although nothing can be written."""
    old = this.pids["web"]
    os.kill(old, signal.SIGKILL)
    this.pids["web"] = until(
        lambda: (now := this.station.rows().get("web", {}).get("pid")) != old and now,
        PATIENCE,
        "the return of a worker",
    )
    this.crashes += 1


def fall(this):
    """A worker dies where no start can be recorded, so none may be made: it is back with room."""
    os.kill(this.pids.pop("web"), signal.SIGKILL)
    this.pids.pop("talker")  # not even a pipe takes what it says: its time cannot be noted
    this.forgetful = True  # starts that cannot be recorded count as well


def order(this):
    wanted = not this.paused
    if this.ask("submit", verb="pause" if wanted else "resume", names=["toggle"], wait=False):
        this.paused = wanted


def edit(this):
    """A new file: another worker, and other terms for a log that is being written."""
    this.keep += 1
    this.declare(MORE)
    this.ask("reload", wait=False)


def kill_supervisor(this):
    """The next one must find everything, whatever it can or cannot write."""
    this.forgetful = True
    this.station.kill()
    start(this)


def kill_pump(this):
    old = pump(this)
    with suppress(ProcessLookupError):
        os.kill(old, signal.SIGKILL)
    until(lambda: pump(this) != old, PATIENCE, "another pump")


def pump(this):
    """Give the process of the pump, as soon as there is one."""
    return until(
        lambda: this.station.rows().get("@pump", {}).get("pid"), PATIENCE, "a pump that runs"
    )


def start(this):
    """Start a supervisor where there was one before: it must be able to own its home."""
    this.station.start()
    if not this.station.settle(steady="running", web="running|backoff|starting"):
        this.say(f"no supervisor could be started: {errors(this)[-500:]}")


def look(this):
    """Whatever people only look at goes on working."""
    done = command(this.station, "status", "--json")
    if done.returncode not in (0, 150, 151) or not json.loads(done.stdout)["workers"]:
        this.say(f"status: exit {done.returncode}: {done.stderr[-500:]}")


DEEDS = (crash, order, order, edit, kill_supervisor, kill_pump, look)


def errors(this):
    """Give what supervisors said when something went wrong."""
    path = this.station.errors
    return path.read_text() if path.exists() else ""


def command(station, *words):
    return subprocess.run(
        [sys.executable, "-m", "uphold", "-c", station.config, *words],
        cwd=station.folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE * 3,
    )


class Ballast:
    """Takes the room on a disk, and gives it back."""

    def __init__(self, home, kind):
        self._home = home
        self._files = []
        if kind in (*FULL, "both"):
            self._fill()
        if kind in ("inodes", "both"):
            self._crowd()

    def lift(self):
        while self._files:
            self._files.pop().unlink()

    def _fill(self):
        self._files.append(self._home / "ballast")
        with suppress(OSError), open(self._files[-1], "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def _crowd(self):
        with suppress(OSError):
            while True:
                path = self._home / f"ballast.{len(self._files)}"
                path.touch()
                self._files.append(path)


def rounds(count, seed, folder, *, limit=None, kinds=(*STORIES, "copying")):
    """Let `count` disks go bad; beyond `limit` seconds catching up is too slow."""
    chance = random.Random(seed)
    told, done, slowest, wrong = Counter(), Counter(), 0.0, []
    nursery = Nursery()
    stories = [kind for kind in kinds if kind in STORIES or not disks.why_not_btrfs()]
    first = chance.randrange(len(stories))
    try:
        for turn in range(count):
            kind = stories[(first + turn) % len(stories)]
            this = Round(Station(folder / f"r{turn}", nursery), chance)
            with mounted(this.station.home, kind), closing(this.station):
                try:
                    took = tell(this, kind)
                    slowest = max(slowest, took)
                    if limit is not None and took > limit:
                        this.say(f"catching up took {took:.1f} s")
                except (AssertionError, UpholdError) as problem:
                    this.say(f"{problem!r}")
                if "Traceback" in (text := errors(this)):
                    this.say(f"a traceback: {text[-800:]}")
            told[kind] += 1
            done += this.done
            wrong += [f"seed {seed}, round {turn} ({kind}): {each}" for each in this.wrong]
    finally:
        nursery.close()
    figures = (
        f"caught up within {slowest:.1f} s",
        ", ".join(f"{number} {what}" for what, number in sorted((told + done).items())),
    )
    return Verdict(count=count, violations=tuple(wrong), figures=figures)


def mounted(home, kind):
    image = home.with_name("image")
    if kind == "copying":
        return disks.copying(image, home)
    if kind == "quota":
        return disks.limited(image, home, 8)
    if kind != "broken":
        return disks.mounted("-t", "tmpfs", "-o", SMALL, "tmpfs", home)
    disks.make_ext4(image, 16)
    return disks.mounted("-o", "loop", image, home)


def tell(this, kind):
    """Tell one story; gives the seconds it took to catch up."""
    this.declare()
    if kind == "readonly":
        return readonly(this)
    if kind == "first start":
        first_start(this)
    begin(this)
    if kind == "broken":
        return broken(this)
    before = sizes(this.station.home)
    ballast = Ballast(this.station.home, kind if kind in (*FULL, "inodes") else "both")
    try:
        time.sleep(this.chance.uniform(0, 0.3))
        # The last is one that no later one brings to light.
        beyond = (fall, order, edit, look, order)  # nothing can be written at all: what falls lies
        for deed in beyond if kind == "quota" else (*this.chance.choices(DEEDS, k=3), crash):
            deed(this)
            this.done[deed.__name__] += 1
            undisturbed(this)
        time.sleep(this.chance.uniform(0.3, 1.5))
        undisturbed(this)
    finally:
        ballast.lift()
    took = catch_up(this)
    this.wrong += shorter(before, this.station.home)
    hindered = kind == "quota" or this.chance.random() < 0.5
    finish(this, hindrance=(kind if kind in BTRFS else "both") if hindered else "")
    return took


def begin(this):
    this.station.start()
    assert this.station.settle(**dict.fromkeys((*LASTING, "toggle", "@pump"), "running")), errors(
        this
    )
    this.note_lasting()


def first_start(this):
    """A home that cannot be made is refused in a sentence; nothing runs afterwards."""
    ballast = Ballast(this.station.home, this.chance.choice(("full", "inodes", "both")))
    done = command(this.station, "start")
    ballast.lift()
    if done.returncode == 0:
        this.say(f"started without any room: {done.stdout}")
    refused_in_a_sentence(this, done)
    if left := this.station.processes():
        this.say(f"left running by a start that failed: {left}")


def readonly(this):
    """Remounted while only workers live: a start is refused, and the next one adopts them."""
    begin(this)
    moving = pump(this)
    this.forgetful = True
    this.station.kill()
    os.kill(moving, signal.SIGKILL)
    until(lambda: not lives(moving), PATIENCE, "the end of a killed pump")
    before = sizes(this.station.home)
    disks.remount(this.station.home, "ro")
    try:
        for words in (("start",), ("stop", "--timeout", "1")):
            refused_in_a_sentence(this, command(this.station, *words))
        for slot, pid in this.pids.items():
            if not lives(pid):
                this.say(f"'{slot}' was stopped")
    finally:
        disks.remount(this.station.home, "rw")
    start(this)
    took = catch_up(this)
    this.wrong += shorter(before, this.station.home)
    finish(this)
    return took


def broken(this):
    """The kernel has made a disk read-only under a live supervisor; there is no way back."""
    disks.remount(this.station.home, "abort")
    for deed in (order, edit, look):
        deed(this)
        undisturbed(this)
    if not this.done["refused"]:
        this.say("orders were taken on a disk that is read-only")
    stop(this, allowed=(0, 1))  # nobody can write down any more that all of it ended
    return 0.0


def refused_in_a_sentence(this, done):
    unclear = any(word in done.stderr for word in UNCLEAR) or "UPH_" not in done.stderr
    if done.returncode == 0 or unclear:
        this.say(f"no clear refusal: exit {done.returncode}: {done.stderr[-800:]}")


def undisturbed(this):
    """Workers nobody touched are the same processes, and the supervisor answers."""
    rows = this.station.rows()
    if (code := this.station.ended()) is not None:
        raise AssertionError(f"the supervisor ended with {code}: {errors(this)[-800:]}")
    for slot, pid in this.pids.items():
        if not lives(pid) or rows.get(slot, {}).get("pid") != pid:
            this.say(f"'{slot}' was disturbed: {pid} became {rows.get(slot, {}).get('pid')}")
    if not this.forgetful and rows and rows["web"]["restarts"] != this.crashes:
        this.say(f"'web' crashed {this.crashes} times, {rows['web']['restarts']} are known")


def catch_up(this):
    """Wait until nothing is behind any more; gives the seconds."""
    began = time.monotonic()
    last = []

    def nothing_behind():
        last[:] = behind(this)
        return not last

    try:
        until(nothing_behind, PATIENCE, "catching up")
    except AssertionError:
        raise AssertionError(f"never caught up: {'; '.join(last)}") from None
    took = time.monotonic() - began
    undisturbed(this)
    this.wrong += this.station.unreadable() + holes(this.station)
    if not this.ask("submit", verb="signal", names=["steady"], signal="CONT"):
        this.say("orders are still refused")
    return took


def behind(this):
    """Say what has not caught up yet."""
    station = this.station
    try:
        told = station.call("status", all=True)
    except UpholdError as error:
        return [f"no answer: {error.message}"]
    rows = {row["slot"]: row for row in told["workers"]}
    wanted = dict.fromkeys(LASTING, "running") | {"toggle": "stopped" if this.paused else "running"}
    if this.keep > 5:
        wanted["extra"] = "running"
    found = [f"in trouble: {told['supervisor']['last_error']}"] * bool(
        told["supervisor"]["last_error"]
    )
    found += [
        f"{slot} should be {state} and is {rows.get(slot, {}).get('state')}"
        for slot, state in wanted.items()
        if rows.get(slot, {}).get("state") != state
    ]
    if not found:
        found += mirror_behind(station, rows, wanted)
        found += journal_behind(station, rows, wanted)
        found += log_behind(this)
    return found


def mirror_behind(station, rows, wanted):
    try:
        state = json.loads((station.home / "runtime.json").read_bytes())
    except (OSError, ValueError) as problem:
        return [f"runtime.json: {problem}"]
    if state["checksum"] != checksum(state):
        return ["runtime.json has a wrong checksum"]
    shown = {slot: (row["pid"], row["state"]) for slot, row in state["workers"].items()}
    return [
        f"runtime.json: {slot} is {shown.get(slot)}"
        for slot in wanted
        if shown.get(slot) != (rows[slot]["pid"], rows[slot]["state"])
    ]


def journal_behind(station, rows, wanted):
    try:
        with JournalReader(station.home / "journal.db") as reader:
            known = {row["slot"]: (row["pid"], row["state"]) for row in reader.slots()}
    except UpholdError as error:
        return [error.message]
    return [
        f"the journal: {slot} is {known.get(slot)}"
        for slot in wanted
        if known.get(slot) != (rows[slot]["pid"], rows[slot]["state"])
    ]


def log_behind(this):
    """The pump goes by the file's newest terms, and writes."""
    told = json.loads((this.station.home / "run/logs.json").read_bytes())
    keep = told["slots"].get("talker", {}).get("keep", told["default"]["keep"])
    found = [f"the pump is told to keep {keep} logs"] * (keep != this.keep)
    newest = this.station.home / "logs/talker.log"
    with suppress(OSError):
        if time.time() - newest.stat().st_mtime < 1:
            return found
    return [*found, "the output of 'talker' does not come"]


def holes(station):
    """Find numbers that are missing from history although no gap is named."""
    with JournalReader(station.home / "journal.db") as reader:
        events = reader.events(limit=1_000_000)
    known = {event["seq"] for event in events}
    for event in events:
        if event["type"] == "gap":
            known.update(range(event["payload"]["from_seq"], event["payload"]["to_seq"] + 1))
    lost = set(range(1, max(known) + 1)) - known
    return [f"events are missing without a gap: {sorted(lost)[:10]}"] if lost else []


def sizes(home):
    """Note what the files hold that are only ever added to or replaced as a whole."""
    kept = [home / "lock", *(home / "slots").iterdir(), home / "journal.db"]
    kept += [home / "logs/runtime.log", home / "logs/supervisor.log"]
    return {path: path.stat().st_size for path in kept if path.exists()}


def shorter(before, home):
    now = sizes(home)
    return [
        f"{path.name} has shrunk from {size} to {now.get(path)}"
        for path, size in before.items()
        if path not in now or now[path] < size
    ]


def finish(this, *, hindrance=""):
    """End everything, sometimes with a disk that is full again; then read the log back."""
    (this.station.folder / "enough").touch()
    written = this.station.folder / "done"
    until(written.exists, PATIENCE, "the writer to have written its last line")
    number = int(written.read_text())
    if not hindrance:
        until(lambda: not talk(this, number), PATIENCE, "the last line to arrive in the log")
    ballast = Ballast(this.station.home, hindrance)
    stop(this)
    ballast.lift()


def talk(this, number):
    files = places(this.station.home / "logs", "talker.log")
    return check_files(files, number, "log", from_the_first=False)


def stop(this, allowed=(0,)):
    """Stop everything by the command line; whatever the disk says, nothing of it is left."""
    done = command(this.station, "stop", "--timeout", "20")
    if (code := this.station.ended() or 0) < 0:
        this.say(f"the supervisor was ended by signal {-code}")
    if done.returncode not in allowed or any(word in done.stderr for word in UNCLEAR):
        this.say(f"stop: exit {done.returncode}: {done.stderr[-800:]}")
    if left := this.station.processes():
        this.say(f"stop left {left} (exit {done.returncode}): {done.stderr[-800:]}")


def all_disks(count, seed, folder):
    """Let `count` disks go bad, and keep the time that was promised."""
    return rounds(count, seed, folder, limit=PROMISED, kinds=STORIES + BTRFS)


if __name__ == "__main__":
    main({"disks": all_disks})
