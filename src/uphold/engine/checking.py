"""Sees to the health of live runs: asks when it is time, listens, and reports what follows.

Only runs that declare `ready`, `live` or `heartbeat` are known here; everybody else costs
nothing. A run has at most one question open. What is found out about an earlier generation is
told with that generation, so it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uphold.core import events
from uphold.core.absorbing import LONGEST_EXTENSION
from uphold.core.notices import NO_ERROR, UNANSWERED, Beat, Notice, Refused
from uphold.core.specs import EARLIEST, Heartbeat, Instant
from uphold.core.statuses import Finding, Health, State
from uphold.core.vitals import (
    UNHEALTHY,
    Answer,
    Outcome,
    Pulse,
    Tally,
    Vital,
    judge_pulse,
    next_look,
    pause_before,
    worst,
)
from uphold.engine.agendas import Agenda
from uphold.engine.patients import BEAT, LIVE, QUESTIONS, READY, Patient, is_patient, spread
from uphold.engine.showing import Vitals
from uphold.ports.probes import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping

    from uphold.core.absorbing import Observed
    from uphold.core.events import Recorded, SlotFact
    from uphold.core.specs import Probe
    from uphold.core.statuses import SlotStatus
    from uphold.ports.clocks import Clock
    from uphold.ports.logs import Log
    from uphold.ports.probes import Prober

_SAID: Final = frozenset({"notify", "fd"})
_MOST_EARLY: Final = 16
_SAYS: Final = "says"
_VOID: Final = Finding(health=Health.UNKNOWN, why="asked otherwise from now on")
"""Told of those whose trouble came of questions that have changed: any finding is news."""
_WHENEVER: Final = Heartbeat(stale_after=1e9)
"""For beats of those who promised none."""
_SOON: Final = 0.5
"""Seconds between two questions to somebody on whose verdict others wait."""
_FILE_LOOKS: Final = 3.0
"""How often a file of beats is read within the time after which it is stale."""


class Checks:
    """Keeps the runs that want to be looked after."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        clock: Clock,
        prober: Prober | None,
        report: Callable[[SlotFact], None],
        show: Callable[[Mapping[str, Vital]], None],
        log: Log,
        promptly: bool = False,
    ) -> None:
        """`promptly` asks those who are found alive at once, until there is a verdict."""
        self._clock = clock
        self._prober = prober
        self._report = report
        self._vitals = Vitals(show)
        self._log = log
        self._promptly = promptly
        self._runs: dict[str, Patient] = {}
        self._agenda = Agenda()
        self._alarm = asyncio.Event()
        self._observed: Observed | None = None
        self._early: dict[str, list[tuple[int, Notice]]] = {}
        """What was said by runs whose start is not believed yet."""
        self.refused: Counter[str] = Counter()
        """What was not believed, by reason."""

    @property
    def owing(self) -> tuple[str, ...]:
        """Name the slots that were found alive and have not been judged yet."""
        return tuple(slot for slot, run in self._runs.items() if run.owed)

    def follow(self, observed: Observed, recorded: Iterable[Recorded]) -> None:
        """Keep up with what happened to slots."""
        self._observed = observed
        for each in recorded:
            if isinstance(each.event, events.Note | events.StateChanged):
                continue  # a change of state comes with the fact that caused it
            slot = each.event.slot
            status = observed.slots.get(slot)
            run = self._runs.get(slot)
            if status is None or not is_patient(status):
                if status is None or status.identity is not None:
                    self._early.pop(slot, None)
                if run is not None:
                    self._drop(slot, run)
                    if status is not None and status.state is State.RUNNING:
                        self._acquit(run, status)
                elif status is None or status.identity is None:
                    self._vitals.drop(slot)
            elif run is None or run.subject.generation != status.generation:
                found = self._promptly and isinstance(each.event, events.Adopted)
                self._take_on(status, owing=found)
            elif run.subject.spec is not status.terms:
                self._amend(run, status)

    def heard(self, slot: str, generation: int, notice: Notice | Refused) -> None:
        """Hear what a worker says of itself."""
        if isinstance(notice, Refused):
            self.refused[notice.reason] += 1
            return
        if notice.extend is not None:
            self._extend(slot, generation, notice.extend)
        run = self._run_of(slot, generation, notice)
        if run is not None:
            self._take_in(run, notice)

    def ready_by_descriptor(self, slot: str, generation: int) -> None:
        """Hear that a worker has written to its descriptor of readiness."""
        self.heard(slot, generation, Notice(ready=True))

    def _run_of(self, slot: str, generation: int, notice: Notice) -> Patient | None:
        """Find the run that speaks; what it says before its start is believed is kept for then."""
        run = self._runs.get(slot)
        if run is not None and run.subject.generation == generation:
            return run
        status = None if self._observed is None else self._observed.slots.get(slot)
        believed = status is not None and status.identity is not None
        if not believed or (status is not None and status.generation < generation):
            early = self._early.setdefault(slot, [])
            if len(early) < _MOST_EARLY:
                early.append((generation, notice))
        elif status is not None and status.generation == generation and notice.status is not None:
            self._note(slot, said=notice.status)
        return None

    def _extend(self, slot: str, generation: int, seconds: float) -> None:
        """Give a worker that is ending, or busy, the time it asks for."""
        status = None if self._observed is None else self._observed.slots.get(slot)
        if status is not None and status.state is State.STOPPING:
            fact = events.Extended(slot=slot, generation=generation, seconds=seconds)
            self._report(fact)
        run = self._runs.get(slot)
        if run is not None and run.subject.generation == generation and run.pulse is not None:
            now = self._clock.now()
            later = Instant(now.mono + min(seconds, LONGEST_EXTENSION))
            run.pulse = run.pulse.touched(later, now.wall)

    def _take_in(self, run: Patient, notice: Notice) -> None:
        said = notice.status or ("reloading" if notice.reloading else None)
        if said is not None:
            self._note(run.subject.slot, said=said)
        if notice.error is not None:
            over = notice.error == NO_ERROR
            self._found(run, _SAYS, None if over else notice.error.message, notice.error.code)
        if notice.beat is not None:
            self._beaten(run, notice.beat)
        elif notice.watchdog == "alive":
            self._beaten(run, None)
        if notice.watchdog == "trigger":
            self._condemn(run, UNHEALTHY, "it asked to be ended (WATCHDOG=trigger)")
        if notice.ready:
            run.says_so = True
            self._believe(run)

    def _believe(self, run: Patient) -> None:
        """Call it ready if it says so and is to say so itself: it says that only once."""
        if run.says_so and run.subject.spec.ready_way in _SAID:
            self._become_ready(run)

    async def run(self) -> None:
        """Ask whenever it is time, until cancelled."""
        try:
            while True:
                await self._wait()
                now = self._clock.now().mono
                for slot, what in self._agenda.take(now):
                    self._look(self._runs[slot], what, now)
                self._vitals.show(now)
        finally:
            for slot, run in list(self._runs.items()):
                self._drop(slot, run)

    async def _wait(self) -> None:
        times = [at for at in (self._agenda.first, self._vitals.due) if at is not None]
        cancel = self._clock.alarm(Instant(min(times)), self._alarm.set) if times else None
        try:
            await self._alarm.wait()
        finally:
            self._alarm.clear()
            if cancel is not None:
                cancel()

    def _take_on(self, status: SlotStatus, *, owing: bool = False) -> None:
        assert status.terms is not None
        old = self._runs.get(status.slot)
        if old is not None:
            self._drop(status.slot, old)
        spec = status.terms
        subject = Subject(
            slot=status.slot, generation=status.generation, nonce=status.nonce, spec=spec
        )
        run = Patient(subject=subject, ready=status.state is State.RUNNING, began=status.started_at)
        run.told = status.finding
        self._runs[status.slot] = run
        if owing and self._prober is not None:
            run.owed = set(run.questions())
        self._begin(run, QUESTIONS)
        for generation, notice in self._early.pop(status.slot, ()):
            if generation == status.generation:
                self._take_in(run, notice)

    def _begin(self, run: Patient, questions: Collection[str]) -> None:
        """Begin with these questions; all but one are asked only of those that are up."""
        ready = run.subject.spec.ready
        if ready is not None and READY in questions and run.asks_ready:
            self._ask_later(run, READY, 0.0 if READY in run.owed else ready.initial_delay)
        if run.ready:
            self._begin_life(run, questions)

    def _begin_life(self, run: Patient, questions: Collection[str] = QUESTIONS) -> None:
        """Begin with what is asked only of those that are up."""
        spec = run.subject.spec
        if spec.live is not None and LIVE in questions:
            pause = spec.live.initial_delay or spread(run, spec.live.every)
            self._ask_later(run, LIVE, 0.0 if LIVE in run.owed else pause)
        if spec.heartbeat is not None and BEAT in questions:
            now = self._clock.now().mono
            if run.pulse is None:
                # A file keeps what was said while nobody listened; anything else is lost by then.
                by_file = spec.heartbeat.file and run.began > EARLIEST
                run.pulse = Pulse(began=run.began if by_file else now)
            self._look_at_pulse(run, now)

    def _amend(self, run: Patient, status: SlotStatus) -> None:
        """Go on under changed terms: only a question that is put otherwise is begun anew."""
        assert status.terms is not None
        before, spec = run.subject.spec, status.terms
        run.subject = replace(run.subject, spec=spec)
        changed = {each for each in QUESTIONS if getattr(before, each) != getattr(spec, each)}
        if not changed:
            return
        for what in changed:
            self._agenda.strike(status.slot, what)
            run.forget(what)
        if READY in changed:
            self._note(status.slot, answer="")
        if _is_sick(run.told) and run.told != status.finding:
            run.told = _VOID
        if status.state is State.RUNNING and not run.ready:
            run.ready = True  # because nobody asks any more
            changed |= {LIVE, BEAT}
        if run.owed:
            run.owed = {each for each in run.questions() if each in run.owed | changed}
        self._begin(run, changed)
        if not run.ready:
            self._believe(run)
        self._ask_next(run)
        self._tell(run)
        if run.told is _VOID and spec.live is None and spec.heartbeat is None:
            self._acquit(run, status)

    def _acquit(self, run: Patient, status: SlotStatus) -> None:
        """Say that trouble is over about which nobody asks any more; others may wait for that.

        The books know already, unless they had not heard of the trouble when its terms changed.
        """
        sentenced = status.finding is not None and status.finding.code
        if _is_sick(run.told) and run.ready and not sentenced:
            subject, why = run.subject, "judged by other terms"
            run.told = Finding(health=Health.HEALTHY, why=why)
            fact = events.Recovered(slot=subject.slot, generation=subject.generation, why=why)
            self._report(fact)

    def _drop(self, slot: str, run: Patient) -> None:
        run.close()
        if self._runs.get(slot) is run:
            del self._runs[slot]
            for what in QUESTIONS:
                self._agenda.strike(slot, what)
        self._vitals.drop(slot)

    def _ask_later(self, run: Patient, what: str, pause: float) -> None:
        slot = run.subject.slot
        if self._runs.get(slot) is not run:
            return  # condemned by what was just found
        at = self._clock.now().mono + pause
        first = self._agenda.first
        self._agenda.put(slot, what, at)
        if first is None or at < first:
            self._alarm.set()

    def _look(self, run: Patient, what: str, now: Instant) -> None:
        if what == BEAT:
            self._look_at_pulse(run, now)
        elif run.asking is not None:
            run.waiting.append(what)
        else:
            self._ask(run, what)

    def _ask(self, run: Patient, what: str) -> None:
        if self._prober is not None:
            self._open(run, what, self._question(run, what, self._prober))

    def _ask_next(self, run: Patient) -> None:
        """Ask what became due while another question was open."""
        if run.asking is None and run.waiting:
            self._ask(run, run.waiting.pop(0))

    def _open(self, run: Patient, what: str, work: Coroutine[object, object, None]) -> None:
        run.open = what
        name = f"{what} {run.subject.slot}"
        run.asking = asyncio.get_running_loop().create_task(work, name=name)

    def _close(self, run: Patient) -> bool:
        """Note that the open question has an answer; False: nobody wants to know any more."""
        if run.asking is not asyncio.current_task():
            return False
        run.asking = None
        return True

    async def _question(self, run: Patient, what: str, prober: Prober) -> None:
        """Ask once; afterwards it is the turn of whatever became due meanwhile."""
        probe: Probe = getattr(run.subject.spec, what)
        try:
            answer = await prober.ask(probe, run.subject)
        except Exception as error:  # noqa: BLE001 - the boundary to probers: it becomes an answer
            answer = Answer(Outcome.MISSED, f"it could not be asked: {error!r}")
            self._warn(run, f"{what}: {answer.text}")
        if not self._close(run):
            return
        run.tallies[what] = tally = run.tallies.get(what, Tally()).after(answer)
        if what == READY:
            self._judge_ready(run, probe, tally, answer)
        else:
            self._judge_live(run, probe, tally, answer)
        self._ask_next(run)

    def _judge_ready(self, run: Patient, probe: Probe, tally: Tally, answer: Answer) -> None:
        run.asked += 1
        self._note(run.subject.slot, answer=answer.text)
        if not run.ready:
            if tally.passed(probe):
                self._become_ready(run)
        elif tally.passed(probe):
            self._found(run, READY, None)
        elif tally.failed(probe):
            self._found(run, READY, f"no longer ready: {answer.text}")
        if not run.ready or tally.passed(probe) or tally.failed(probe):
            run.owed.discard(READY)
        if not run.asks_ready:
            return
        pause = pause_before(probe, run.asked - 1, ready=run.ready)
        self._ask_later(run, READY, min(pause, _SOON) if READY in run.owed else pause)

    def _judge_live(self, run: Patient, probe: Probe, tally: Tally, answer: Answer) -> None:
        if tally.failed(probe):
            times = "" if tally.misses == 1 else f" {tally.misses} times in a row"
            self._condemn(run, UNHEALTHY, f"live probe failed{times}: {answer.text}")
            return
        if tally.passed(probe):
            run.owed.discard(LIVE)
            run.findings.setdefault(LIVE, Finding(health=Health.HEALTHY, why="alive"))
            self._tell(run)
        elif answer.outcome is not Outcome.PASSED:
            missed = f"{tally.misses} of {probe.failures}"
            self._warn(run, f"live probe missed ({missed}): {answer.text}")
        soon = min(probe.every, _SOON)
        self._ask_later(run, LIVE, soon if LIVE in run.owed else probe.every)

    def _become_ready(self, run: Patient) -> None:
        run.findings[READY] = Finding(health=Health.HEALTHY, why="ready")
        if run.ready:
            return
        run.ready = True
        run.told = Finding(health=Health.HEALTHY, why="ready")
        subject = run.subject
        self._report(events.Ready(slot=subject.slot, generation=subject.generation))
        self._begin_life(run)

    def _beaten(self, run: Patient, beat: Beat | None) -> None:
        now, slot = self._clock.now(), run.subject.slot
        self._note(slot, beat_wall=now.wall)
        rule = run.subject.spec.heartbeat
        pulse = run.pulse
        if rule is None or pulse is None:
            if beat is not None:  # nobody asked how often, and it tells all the same
                alone = Pulse(began=now.mono).after(beat, now.mono, now.wall)
                found = judge_pulse(alone, _WHENEVER, now.mono)
                assert found is not None
                run.findings[BEAT] = found
                self._tell(run)
            return
        late = run.findings.get(BEAT)
        if beat is None:
            run.pulse = pulse.touched(now.mono, now.wall)
        else:
            run.pulse = pulse.after(beat, now.mono, now.wall)
        if pulse.last is None or beat is not None or late is None or late.why != "beating":
            self._judge_pulse(run, now.mono)
        due, planned = next_look(run.pulse, rule, now.mono), self._agenda.when(slot, BEAT)
        if planned is not None and due < planned and not rule.file:
            self._ask_later(run, BEAT, due - now.mono)  # the first had more time than the others

    def _look_at_pulse(self, run: Patient, now: Instant) -> None:
        """Let time pass over the beats; a file of them is read first."""
        rule = run.subject.spec.heartbeat
        if rule is None or run.pulse is None:
            return
        if rule.file and self._prober is not None:
            if run.asking is None:
                self._open(run, BEAT, self._read_beat(run, rule.file, self._prober))
            pause = rule.stale_after / _FILE_LOOKS
            # The first one is awaited: until it comes nobody knows how the worker does.
            self._ask_later(run, BEAT, min(1.0, pause) if run.pulse.last is None else pause)
            return
        self._judge_pulse(run, now)
        self._ask_later(run, BEAT, next_look(run.pulse, rule, now) - now)

    async def _read_beat(self, run: Patient, path: str, prober: Prober) -> None:
        beat: Beat | Refused
        try:
            beat = await prober.read_beat(path, run.subject)
        except Exception as error:  # noqa: BLE001 - the boundary to probers: it becomes an answer
            # That says nothing of the worker, as with a file system that is silent.
            beat = Refused(UNANSWERED, f"{path} cannot be read: {error!r}.")
            self._warn(run, beat.text)
        if not self._close(run):
            return
        assert run.pulse is not None
        run.owed.discard(BEAT)
        unread = ""
        if isinstance(beat, Refused):
            self.refused[beat.reason] += 1
            if beat.reason == UNANSWERED:
                unread = beat.text
                run.pulse = replace(run.pulse, unseen=self._clock.now().mono)
        else:
            run.pulse = run.pulse.after_reading(beat, self._clock.now())
            self._note(run.subject.slot, beat_wall=run.pulse.wall)
        self._judge_pulse(run, self._clock.now().mono, unread)
        self._ask_next(run)

    def _judge_pulse(self, run: Patient, now: Instant, unread: str = "") -> None:
        rule = run.subject.spec.heartbeat
        assert rule is not None
        assert run.pulse is not None
        found = judge_pulse(run.pulse, rule, now, unread=unread)
        if found is None:
            return
        if found.code:
            self._condemn(run, found.code, found.why)
            return
        before = run.findings.get(BEAT)
        run.findings[BEAT] = found
        if found.why == "heartbeat late" and (before is None or before.why != found.why):
            self._warn(run, "heartbeat late: one is missing")
        self._tell(run)

    def _found(self, run: Patient, source: str, trouble: str | None, named: str = "") -> None:
        """Note what one source says; None: nothing is wrong any more."""
        health = Health.HEALTHY if trouble is None else Health.UNHEALTHY
        run.findings[source] = Finding(health=health, why=trouble or "ready", named=named)
        self._tell(run)

    def _condemn(self, run: Patient, code: str, why: str) -> None:
        subject = run.subject
        self._drop(subject.slot, run)
        self._report(
            events.Condemned(slot=subject.slot, generation=subject.generation, code=code, why=why)
        )

    def _tell(self, run: Patient) -> None:
        """Report what all sources together mean, if that is news and it has not been condemned."""
        found = worst(list(run.findings.values()))
        told = run.told
        if found is None or (told is not None and found.health is told.health is Health.HEALTHY):
            return
        if found == told or self._runs.get(run.subject.slot) is not run:
            return
        run.told = found
        about = {"slot": run.subject.slot, "generation": run.subject.generation}
        if found.health is not Health.HEALTHY:
            sick = {"health": found.health, "why": found.why, "code": found.named}
            self._report(events.Sickened(**about, **sick))  # type: ignore[arg-type]
        elif told is None:
            self._report(events.Ready(**about, why=found.why))  # type: ignore[arg-type]
        else:
            self._report(events.Recovered(**about, why=found.why))  # type: ignore[arg-type]

    def _warn(self, run: Patient, text: str) -> None:
        slot = run.subject.slot
        self._log.write("WARNING", "worker.missed", f"{slot}: {text}", worker=slot)

    def _note(self, slot: str, **changes: object) -> None:
        if self._vitals.note(slot, **changes):
            self._alarm.set()


def _is_sick(found: Finding | None) -> bool:
    return found is not None and found.health is not Health.HEALTHY
