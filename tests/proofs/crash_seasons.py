"""Rounds of crashes on one home: start, act, kill, look. One orderly end closes a season.

Run as a program by `crashing.py`: it is a sub-reaper and waits for whoever dies, which would
take the children of any other program.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from proofs.conversing import Line
from proofs.crash_starts import Cold, Warm
from proofs.crash_terms import EXTRA, FORGOTTEN, ORDERED, RESTLESS, SETTLED, TERMS
from proofs.witnessing import PATIENCE, Witness, children, describe

ROUNDS = 50
"""Kills in one season."""
BETWEEN_SETTLING = 25
SETTLING = 9
"""The first rounds of a season see it come up; from then on there is something to disturb."""
ADOPTED_WITHIN = 5.0
"""Seconds from a supervisor's start until it knows, or has ended, whatever was there (P2)."""
REFUSED_WITHIN = 4.0
"""Seconds in which a second start is refused (P1)."""
BETWEEN_SECONDS = 10
"""Rounds in which a supervisor is up, between two that try to start a second one."""


class Season:
    """One home, from its making to an orderly end."""

    def __init__(self, starter, folder, rng, tally):
        self.starter = starter
        self.folder = folder
        self.home = folder / "home"
        self.config = folder / "uphold.toml"
        self.rng = rng
        self.tally = tally
        self.witness = Witness(self.home, forgotten=FORGOTTEN)
        self.seen = []
        self.kept = {}
        """Slots that nobody has touched since they were known to run, as pid and nonce."""
        self.settled = {}
        """The same, but a signal from before may still be on its way to them."""
        self.sure = {}
        """Workers of which is known what was last ordered and acknowledged: up or down."""
        self.outlived = set()
        """Nonces of processes whose end was acknowledged."""
        self.edit = 0
        self.extra = False
        self.played = 0
        folder.mkdir()
        self.declare()

    def declare(self):
        text = TERMS.format(home=self.home, edit=self.edit) + (EXTRA if self.extra else "")
        temp = self.folder / ".new"
        temp.write_text(text)
        temp.rename(self.config)

    def touch(self, worker):
        """Expect no longer that the processes of a worker stay as they are."""
        for those in (self.kept, self.settled):
            for slot in [slot for slot in those if slot.partition(".")[0] == worker]:
                del those[slot]

    def begin(self):
        return self.starter.begin(self.home, self.config)

    # One round each; what is wrong afterwards is said in sentences.

    def start_round(self):
        """Kill at a random instant of a start; now and then several start at once."""
        share = self.rng.uniform(0, 1.1)
        if self.rng.random() < 0.3:
            share = math.exp(self.rng.uniform(math.log(0.001), 0))
        rivals = self.rng.random() < 0.08
        if rivals:
            self.tally["rivals"] += 1
            share += self.rng.choice((0, 1, 2))  # time enough for all, if they were let
        starts = self.starter.begin_together(self.home, self.config, 3 if rivals else 1)
        time.sleep(share * self.tally.usual)
        up = [start for start in starts if rivals and self.starter.ready(start, 0)]
        codes = {self.starter.kill(start) for start in starts}
        if len(up) > 1:
            yield "two supervisors were up at the same time"
        for code in codes - {None, 100 if rivals else None}:
            yield f"a supervisor ended by itself with {code}"
        self.tally["kills in a start"] += 1

    def act_round(self):
        """Wait until it is up, do something to it or to its workers, and kill it soon after."""
        began = time.monotonic()
        start = self.begin()
        if not self.starter.ready(start):
            yield f"a supervisor was not ready: {self.starter.kill(start)}"
            return
        self.tally.note_start(time.monotonic() - began)
        self.tally["kills of one that was up"] += 1
        if self.tally["kills of one that was up"] % BETWEEN_SECONDS == 0:
            yield from self.second_start()
        with Line(self.home) as line:
            may_end = [self.act(start, line) for _ in range(self.rng.choice((1, 1, 2, 3)))]
            time.sleep(math.exp(self.rng.uniform(math.log(0.00003), math.log(0.03))))
            code = self.starter.kill(start)
            self.take_in(line.answers())
        if code is not None and not any(may_end):
            yield f"a supervisor ended by itself with {code}"

    def second_start(self):
        self.tally["second starts"] += 1
        began = time.monotonic()
        code = self.starter.second(self.home, self.config)
        took = time.monotonic() - began
        if code != 100 or took > REFUSED_WITHIN:
            yield f"a second start ended with {code} after {took:.1f} s"

    def act(self, start, line):
        """Do one thing; True if it may be the end of the supervisor."""
        what = self.rng.choices(
            ("nothing", "strike", "order", "edit", "leave", "end"), (10, 30, 35, 15, 2, 2)
        )[0]
        self.tally[what] += 1
        if what == "strike":
            self.strike()
        elif what == "order":
            self.order(line)
        elif what == "edit":
            self.change_file()
            self.starter.signal(start, signal.SIGHUP)
        elif what == "leave":
            line.say("shutdown", keep_workers=True)
        elif what == "end":
            self.kept.clear()
            self.settled.clear()
            self.starter.signal(start, signal.SIGTERM)
        return what in ("leave", "end")

    def strike(self):
        """Kill processes of workers, whoever watches them."""
        victims = [each for each in self.seen if not each.slot.startswith("steady")]
        for victim in self.rng.sample(victims, min(len(victims), self.rng.choice((1, 2, 5, 9)))):
            if victim.slot != "@pump" or self.rng.random() < 0.2:
                self.touch(victim.slot.partition(".")[0])
                self.witness.strike(victim)

    def order(self, line):
        """Send an order; one for each worker at most, so that an answer says what holds."""
        name = self.rng.choice(ORDERED)
        verbs = ("restart", "restart", "stop", "stop", "start", *["scale"] * (name == "pair"))
        verb = self.rng.choice(verbs)
        if any(name in asked.get("names", ()) for asked in line.asked):
            return
        self.touch(name)
        self.sure[name] = None
        if verb == "start":  # a process that was about to be stopped may go on
            self.outlived -= self.nonces(name)
        more = {"replicas": self.rng.randint(1, 4)} if verb == "scale" else {}
        line.say("submit", verb=verb, names=[name], **more)

    def take_in(self, answers):
        """Remember what was acknowledged: it must hold from now on."""
        for asked, answer in answers:
            if "result" not in answer or asked.get("verb") in (None, "scale"):
                continue
            name, verb = asked["names"][0], asked["verb"]
            if verb in ("stop", "restart"):
                self.outlived |= self.nonces(name)
            self.sure[name] = "down" if verb == "stop" else "up"

    def nonces(self, worker):
        """Give those of the processes last seen of a worker."""
        return {each.nonce for each in self.seen if each.slot.partition(".")[0] == worker}

    def change_file(self):
        if self.rng.random() < 0.5:
            self.extra = not self.extra
            self.touch("extra")
        else:
            self.edit += 1
            self.touch("edited")
        self.declare()

    def look(self, *, thorough=False):
        """Say what is wrong when no supervisor lives."""
        self.seen = self.witness.after_a_kill(full=thorough)
        yield from self.witness.doubles(self.seen)
        yield from self.witness.unknown(self.seen)
        yield from self.witness.unreadable(thorough=thorough)
        yield from self.lost()
        if words := self.starter.last_words():
            yield f"a traceback: {words[-1500:]}"

    def lost(self):
        now = {(each.slot, each.pid, each.nonce) for each in self.seen if each.main}
        for slot, (number, nonce) in self.kept.items():
            if (slot, number, nonce) not in now:
                others = [str(each) for each in self.seen if each.slot == slot]
                yield f"{slot}, which nobody touched, was {number} and is {others or 'gone'}"

    def expect_to_stay(self):
        """Count on what was settled, and is still there after one more life of a supervisor."""
        now = {each.slot: (each.pid, each.nonce) for each in self.seen if each.main}
        self.kept |= {slot: who for slot, who in self.settled.items() if now.get(slot) == who}

    def settle(self):
        """Let a supervisor finish what it has to do; gives it, and says whether all came true."""
        began = time.monotonic()
        start = self.begin()
        if not self.starter.ready(start):
            yield f"a supervisor was not ready: {self.starter.kill(start)}"
            return None
        self.tally["settled"] += 1
        yield from self.adopted(began + ADOPTED_WITHIN)
        yield from self.wait_for(self.sure)
        with Line(self.home) as line:
            line.ask("submit", verb="start", names=list(ORDERED), wait=False)
            line.ask("submit", verb="scale", names=["pair"], replicas=2, wait=False)
        self.sure = dict.fromkeys(ORDERED, "up")
        yield from self.wait_for({**self.sure, **SETTLED})
        yield from self.lost()
        self.outlived.clear()
        self.settled = {
            each.slot: (each.pid, each.nonce)
            for each in self.seen
            if each.main and each.slot != RESTLESS
        }
        return start

    def adopted(self, limit):
        """Wait until whatever was there before is known to the supervisor, or gone."""
        before = {each.nonce for each in self.seen}
        while (strangers := self.strangers(before)) and time.monotonic() < limit:
            time.sleep(0.005)
        late = time.monotonic() - limit
        if late > 0:
            left = ", ".join(map(str, strangers)) or "all of it later"
            yield f"not adopted or ended within {ADOPTED_WITHIN:g} s: {left} ({late:.1f} s late)"

    def strangers(self, nonces):
        """Find the processes of these runs that the supervisor does not know."""
        with Line(self.home) as line:
            known = {row["pid"] for row in line.ask("status", all=True)["workers"]}
        seen, _ = self.witness.look()
        taken_in = {each.nonce for each in seen if each.pid in known}
        return [each for each in seen if each.nonce in nonces - taken_in]

    def wait_for(self, wanted):
        """Wait until all is as wanted, and the supervisor says what is there."""
        limit = time.monotonic() + PATIENCE
        while self.differences(wanted):
            if time.monotonic() > limit:
                last = self.differences(wanted, full=True)
                yield f"it did not come true: {'; '.join(last)}"
                return
            time.sleep(0.005)

    def differences(self, wanted, *, full=False):
        with Line(self.home) as line:
            rows = {row["slot"]: row for row in line.ask("status", all=True)["workers"]}
        self.seen, _ = self.witness.look(full=full)
        alive = {each.slot: each for each in self.seen if each.main and each.slot != RESTLESS}
        found = [
            f"{worker} is not {state}"
            for worker, state in wanted.items()
            if state and (worker in alive) != (state == "up")
        ]
        for slot in {*alive, *rows} - {RESTLESS}:
            said = rows.get(slot, {})
            here = alive[slot].pid if slot in alive else None
            if said.get("pid") != here or said.get("state", "stopped") not in (
                "running",
                "stopped",
            ):
                found.append(
                    f"{slot} is {here}, the supervisor says {said.get('pid')} {said.get('state')}"
                )
        found += [f"{each} was to end" for each in self.seen if each.nonce in self.outlived]
        if ("extra" in alive) != self.extra:
            found.append(f"extra is {alive.get('extra')}")
        if "edited" in alive and alive["edited"].edit != str(self.edit):
            found.append(f"edited has {alive['edited'].edit}, the file says {self.edit}")
        return found

    def close(self):
        """End whatever is left of a season that went wrong."""
        limit = time.monotonic() + PATIENCE
        while self.witness.reap() and time.monotonic() < limit:
            for number, _ in children({os.getpid()}):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        shutil.rmtree(self.folder)


class Tally(Counter):
    """What happened how often, and how long a start takes here."""

    usual = 0.06

    def note_start(self, seconds):
        self.usual += (seconds - self.usual) / 5


def play(season, rounds, first, share_of_acts):
    """Run a season; gives each thing wrong with the number of its round."""
    for number in range(first, first + rounds):
        wrong = []
        if season.rng.random() < 0.5:
            season.strike()
        if season.rng.random() < 0.1:
            season.change_file()
        turn = (number - first) % BETWEEN_SETTLING
        if turn == SETTLING:
            yield from named(number, settle_and_kill(season), wrong)
        elif season.rng.random() < share_of_acts:
            yield from named(number, season.act_round(), wrong)
        else:
            yield from named(number, season.start_round(), wrong)
        season.played += 1
        yield from named(number, season.look(thorough=turn == SETTLING + 1), wrong)
        if turn == SETTLING + 1:
            season.expect_to_stay()
        if wrong:
            return
    yield from named("the end", finish(season), [])


def settle_and_kill(season):
    """Let all come true, and kill the supervisor that did it."""
    start = yield from season.settle()
    code = season.starter.kill(start) if start else None
    if code is not None:
        yield f"a supervisor ended by itself with {code}"


def named(number, sayings, wrong):
    """Pass on what is wrong, with its round; gives what the round gives."""
    try:
        while True:
            text = next(sayings)
            wrong.append(text)
            yield number, text
    except StopIteration as end:
        return end.value
    except AssertionError as problem:
        wrong.append(str(problem))
        yield number, str(problem)


def finish(season):
    """Stop everything in order: nothing of any kind may be left."""
    start = yield from season.settle()
    if start is None:
        return
    code = season.starter.leave(season.home, start, season.rng)
    if code != 0:
        yield f"an orderly stop ended with {code}"
    if season.witness.reap():
        left = [describe(number) for number, _ in children({os.getpid()})]
        yield f"left after everything was stopped: {', '.join(left)}"
    yield from season.witness.unreadable(thorough=True)
    if json.loads((season.home / "lock").read_bytes())["stopped_at"] is None:
        yield "the lock does not say that it ended in order"


def main(way, count, seed, folder):
    libc = ctypes.CDLL(None)
    libc.prctl(1, signal.SIGTERM, 0, 0, 0)  # whoever runs us is gone: so are we
    libc.prctl(36, 1, 0, 0, 0)  # orphans come to us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    starter = Warm(folder) if way == "warm" else Cold(folder)
    gc.collect()
    gc.freeze()
    tally = Tally()
    tally.usual = 0.06 if way == "warm" else 0.4
    violations, done, played, turn = [], 0, 0, 0
    while done < count:
        turn += 1
        rounds = min(ROUNDS if way == "warm" else 25, count - done)
        season = Season(starter, Path(folder, f"s{turn}"), random.Random(f"{seed} {turn}"), tally)
        try:
            for number, text in play(season, rounds, done, 0.4 if way == "warm" else 0.3):
                violations.append(f"seed {seed}, round {number}: {text}")
        finally:
            season.close()
        done += rounds
        played += season.played  # fewer where something was wrong
    figures = [f"{count:,} {what}" for what, count in tally.items()]
    figures.append(f"a start takes {tally.usual * 1000:.0f} ms")
    print(json.dumps({"count": played, "violations": violations, "figures": figures}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
