"""The process driver: one operating system process tree for each slot.

At most one live tree per slot, ever. What happens is reported as facts; when to start and stop
is decided by whoever asks. Starting, watching, finding again and ending each have a module here.
"""

from __future__ import annotations

import asyncio
import os
import signal as signals
from typing import TYPE_CHECKING, Final

from uphold.core.events import Adopted, Gone
from uphold.core.names import slot_name, worker_of
from uphold.core.specs import StopRule, WorkerSpec
from uphold.core.statuses import Exit
from uphold.drivers.announcing import Announcements
from uphold.drivers.emptying import PROOF, Emptier
from uphold.drivers.finding import Finder, Lead, Verdict
from uphold.drivers.launching import Launcher
from uphold.drivers.listeners import Listeners
from uphold.drivers.runs import Run
from uphold.drivers.senders import Senders
from uphold.drivers.starting import SLICE, Starter
from uphold.drivers.watching import Watch
from uphold.drivers.weighing import Scale
from uphold.errors import HostFailure
from uphold.host.environments import Environments
from uphold.host.processes import Process, hold_sighted
from uphold.host.processes.containment import Ending
from uphold.host.processes.descriptors import make_room
from uphold.host.processes.groups import Groups
from uphold.host.processes.outputs import Outputs
from uphold.host.processes.scanning import Scanner
from uphold.host.processes.slotlocks import read_record
from uphold.host.proctable import ended_of, read_stat
from uphold.ports.drivers import Launch, Sighting, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from uphold.host.homes import Home
    from uphold.ports.clocks import Clock
    from uphold.ports.drivers import Listener
    from uphold.ports.logs import Log

_PROBE_END: Final = 10.0
"""Seconds that a killed probe may take to be gone before it is left to the reaper."""


class ProcessDriver:
    """Makes workers of kind `process` happen, on the running asyncio loop."""

    def __init__(  # noqa: PLR0913 - what it gets from its surroundings, by name
        self,
        home: Home,
        clock: Clock,
        *,
        on_fifo: Callable[[str], None] | None = None,
        inherited: Mapping[str, str] | None = None,
        nofile: tuple[int, int] | None = None,
        notify: str = "",
        log: Log | None = None,
        straight: bool = False,
    ) -> None:
        """Pass on parts of the environment `inherited` (our own by default).

        `nofile` is the limit on open files that workers are given: what `birth()` found.
        `on_fifo` is called with a slot whenever a FIFO for its output was made. `notify` is the
        path of the socket on which workers may speak of themselves. `log` hears of limits that
        nobody keeps here. `straight` sends output to files: no pump will be there to move it.
        """
        environment = dict(os.environ if inherited is None else inherited)
        self._home = home
        self._clock = clock
        self._hands_back_limit = nofile is not None
        self._facts = Listeners()
        self._specs: dict[str, WorkerSpec] = {}
        self._outputs = Outputs(home, on_fifo, straight=straight)
        self._groups = Groups(home, log=log)
        self.senders = Senders(self._lives)
        environments = Environments(environment, notify)
        self.announcements = Announcements()
        self._launcher = Launcher(
            self._outputs,
            self._groups,
            environments,
            nofile,
            senders=self.senders,
            announcements=self.announcements,
        )
        self.scanner = Scanner()
        self._finder = Finder(home, clock, self.scanner)
        self.children: set[int] = set()
        """Processes whose end nobody else may take; others that are started here may be added."""
        emptier = Emptier(home, clock, self.scanner, self._facts.tell, self.children.__contains__)
        scale = Scale(clock, self.scanner, self._facts.tell)
        self._watch = Watch(home, clock, self._facts, emptier, self.children, scale=scale)
        self._starter = Starter(
            home,
            clock,
            facts=self._facts,
            watch=self._watch,
            launcher=self._launcher,
            groups=self._groups,
            finder=self._finder,
            emptier=emptier,
        )

    def before_logs(self, look: Callable[[str], None]) -> None:
        """Have the log of a slot that is ready by a line of it looked at before each run."""
        self._launcher.before_log = look

    def add(self, spec: WorkerSpec) -> None:
        """Learn about a worker."""
        self._specs[spec.name] = spec

    def remove(self, name: str) -> None:
        """Forget a worker; a slot of it that still lives is kept in sight."""
        self._specs.pop(name, None)
        runs = self._watch.runs
        for slot in [slot for slot in runs if worker_of(slot) == name and runs[slot].over]:
            group = runs.pop(slot).group
            if group is not None:
                group.remove()
        # Also of those that never came to run.
        for slot in [slot for slot in self._outputs.held if worker_of(slot) == name]:
            if slot not in runs:
                self._outputs.release(slot)

    async def start(self, launch: Launch, deadline: float | None = None) -> None:
        """Start one slot; `deadline` is an instant of the monotonic clock."""
        await self.start_all((launch,), deadline)

    async def start_all(self, launches: Sequence[Launch], deadline: float | None = None) -> None:
        """Start these slots in slices, so that the loop keeps answering."""
        self._make_room(len(launches))
        self._watch.begin()
        await self._starter.start_all(launches, deadline)

    async def stop(self, slot: str, how: StopRule, *, generation: int = 0) -> None:
        """Ask a slot to end: its stop command if it has one, then the signal to its group."""
        run = await self._run_to_end(slot, generation)
        if run is None or run.process is None:
            return
        run.stopping = True
        if how.command:
            self._watch.task(self._stop_by_command(run, run.process, how), f"stop {slot}")
        else:
            _ask_to_end(run.process, how)

    async def kill(self, slot: str, *, generation: int = 0) -> None:
        """End the whole tree of a slot."""
        run = await self._run_to_end(slot, generation)
        if run is None or run.process is None:
            return
        run.stopping = run.forced = True
        run.process.send(signals.SIGKILL)
        if run.helper is not None:
            run.helper.send_group(signals.SIGKILL)
        self._watch.empty(run)

    async def run_probe(self, slot: str, command: tuple[str, ...]) -> int | None:
        """Run a command as the worker of a slot and give its exit code; None if a signal ended it.

        Whoever does not wait for the end cancels: then all that was started is killed.
        """
        run = self._watch.runs.get(slot)
        if run is None or run.process is None:
            raise HostFailure(f"{slot} has no process to be asked about.")
        probe = self._launcher.run_beside(slot, run.process, run.spec, command, quiet=True)
        try:
            ending = await self._watch.end_of(probe)
        except BaseException:
            probe.send_group(signals.SIGKILL)
            self._watch.task(self._see_off(probe), f"see off a probe of {slot}")
            raise
        probe.close()
        return ending.code

    def follow_main(self, slot: str, generation: int, pid: int) -> None:
        """Take another process of a slot for its main one, as a worker wishes (MAINPID=).

        Whoever hands this on has verified that the process belongs to the slot.
        """
        run = self._watch.runs.get(slot)
        if run is None or run.process is None or run.stopping or run.generation != generation:
            return
        stat = read_stat(pid)
        if stat is None or pid == run.process.identity.pid:
            return
        process = hold_sighted(pid, stat.start_ticks, run.process.identity.nonce)
        if process is None:
            return
        self._watch.exchange(run, process)
        self._facts.tell(
            Adopted(slot=slot, generation=generation, identity=process.identity, named=True)
        )

    def spec_of(self, slot: str) -> WorkerSpec | None:
        """Give the terms that the present run of a slot was started under."""
        run = self._watch.runs.get(slot)
        return None if run is None else run.spec

    def signal(self, slot: str, signal: str) -> bool:
        """Send a signal to the main process; False if there is none."""
        number = signal_number(signal)
        run = self._watch.runs.get(slot)
        return run is not None and run.process is not None and run.process.send(number)

    async def adopt(self, traces: Sequence[Trace]) -> None:
        """Find these again: first by what is recorded, the rest with one look at all processes."""
        self._make_room(len(traces))
        self._watch.begin()
        unsure: list[Lead] = []
        before: dict[str, Run | None] = {}
        try:
            await self._follow_all(traces, unsure, before)
            verdicts = await self._finder.sort_out(unsure)
            await asyncio.gather(
                *(self._conclude(each, before[each.lead.trace.slot]) for each in verdicts)
            )
        finally:
            for lead in unsure:  # these have ended; a living one that was found is held anew
                if lead.process is not None:
                    lead.process.close()

    async def find_strays(self, known_slots: Collection[str]) -> Sequence[Trace]:
        """Find slots of this home that live although no trace tells of them."""
        found = await self._finder.strays(known_slots)
        seen = {*known_slots, *(trace.slot for trace in found)}
        unseen = [slot for slot in self._groups.inhabited() if slot not in seen]
        return [*found, *(self._recorded(slot, 0) for slot in unseen)]

    def state(self, slot: str) -> Sighting:
        """Look at one slot; KeyError for one it never heard of."""
        run = self._watch.runs.get(slot)
        if run is not None:
            return _sightings([run])[slot]
        if slot not in self._declared():
            raise KeyError(slot)
        return Sighting(slot=slot, generation=0, connected=False, info={})

    def states(self) -> Mapping[str, Sighting]:
        """Look at all slots."""
        seen = _sightings(self._watch.runs.values())
        for slot in self._declared():
            if slot not in seen:
                seen[slot] = Sighting(slot=slot, generation=0, connected=False, info={})
        return seen

    def subscribe(self, listener: Listener) -> None:
        """Send every fact to this listener from now on."""
        self._facts.add(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Send it no more."""
        self._facts.remove(listener)

    async def close(self) -> None:
        """Let go of everything held; workers live on."""
        await self._watch.close()
        self.announcements.close()
        self._outputs.close()
        self._groups.close()

    def _make_room(self, more: int) -> None:
        """Allow ourselves the descriptors of so many slots more, if workers do not inherit that."""
        if self._hands_back_limit:
            make_room(len(self._watch.runs) + more)

    def _lives(self, slot: str) -> bool:
        run = self._watch.runs.get(slot)
        return run is not None and run.process is not None and run.process.alive()

    def _declared(self) -> list[str]:
        return [
            slot_name(spec.name, index + 1)
            for spec in self._specs.values()
            for index in range(spec.replicas)
        ]

    async def _run_to_end(self, slot: str, asked: int) -> Run | None:
        """Give the run that is to end; if nothing of it runs, see to its Gone and give None."""
        asked = max(asked, await self._starter.withdraw(slot))
        run = self._watch.runs.get(slot)
        if run is None:
            await self.adopt((self._recorded(slot, asked),))
            return self._watch.runs.get(slot)
        run.generation = max(run.generation, asked)
        if not run.over:
            return run
        self._see_to_gone(run)
        return None

    def _see_to_gone(self, run: Run) -> None:
        """Answer for a run that is over."""
        if run.nonces:
            # Its end was proved by a free lock only, which is not enough to call it stopped.
            self._watch.empty(run)
        else:
            proof = run.proof or PROOF
            self._facts.tell(Gone(slot=run.slot, generation=run.generation, proof=proof))

    def _recorded(self, slot: str, asked: int) -> Trace:
        record = read_record(self._home.slot_lock(slot))
        return Trace(
            slot=slot,
            generation=asked if record is None else max(asked, record.generation),
            nonce="" if record is None else record.nonce,
            identity=None if record is None else record.identity,
            spec=self._specs.get(worker_of(slot)) or WorkerSpec(name=worker_of(slot)),
        )

    async def _see_off(self, probe: Process) -> None:
        await self._watch.wait(probe, _PROBE_END)
        probe.close()

    async def _stop_by_command(self, run: Run, main: Process, how: StopRule) -> None:
        """Run the stop command, then signal whatever it did not end."""
        if not main.alive():  # it has ended by itself meanwhile; nothing of the slot begins now
            return
        try:
            command = self._launcher.run_beside(run.slot, main, run.spec, how.command)
        except (HostFailure, OSError) as cause:
            context = {"message": f"the stop command of {run.slot} failed", "exception": cause}
            asyncio.get_running_loop().call_exception_handler(context)
        else:
            run.helper = command
            try:
                if not await self._watch.wait(command, how.grace):
                    command.send_group(signals.SIGKILL)
                    await self._watch.wait(command, 1.0)
            finally:
                run.helper = None
                command.close()
        if main.alive():
            _ask_to_end(main, how)

    async def _follow_all(
        self, traces: Sequence[Trace], unsure: list[Lead], before: dict[str, Run | None]
    ) -> None:
        """Take in what is plainly there; note the others, and what was known of them before."""
        began = self._clock.now().mono
        for trace in traces:
            run = self._watch.runs.get(trace.slot)
            if run is not None and not run.over:
                self._confirm(run)
                continue
            lead = self._finder.follow(trace)
            if lead.process is not None and lead.process.alive():
                self._take_in(lead, lead.process)
            else:
                before[trace.slot] = run
                unsure.append(lead)
            if self._clock.now().mono - began > SLICE:
                await asyncio.sleep(0)
                began = self._clock.now().mono

    async def _conclude(self, verdict: Verdict, before: Run | None) -> None:
        lead = verdict.lead
        trace = lead.trace
        ending = Ending()
        if verdict.process is None and lead.process is not None:
            ending = await self._watch.exit_of(lead.process)
        meanwhile = self._watch.runs.get(trace.slot)
        if meanwhile is not None and meanwhile is not before:
            # What is in sight now is newer than what was looked for, and must not get lost.
            self._answer_for_newer(meanwhile, verdict)
            return
        if verdict.process is not None:
            self._take_in(lead, verdict.process)
            return
        run = Run(trace.slot, lead.generation, trace.spec, nonces=lead.nonces, adopted=True)
        self._watch.runs[trace.slot] = run
        run.exit = Exit(code=ending.code, signal=ending.signal, at=self._clock.now().wall)
        # An intent that never became a process has no exit to tell of.
        run.exit_told = trace.identity is None and lead.process is None
        group = self._groups.left(trace.slot)
        run.group = None if group is None or group.is_empty() else group
        if verdict.left_overs or run.group is not None:
            self._watch.empty(run)
            return
        run.nonces = ()
        proof = PROOF if lead.nonces else "the machine has restarted since it ran"
        told = None if run.exit_told else run.exit
        self._facts.tell(Gone(slot=run.slot, generation=run.generation, proof=proof, exit=told))

    def _answer_for_newer(self, run: Run, verdict: Verdict) -> None:
        """Answer for a run that came into sight while its slot was looked into."""
        if verdict.process is not None:
            verdict.process.close()
        run.generation = max(run.generation, verdict.lead.generation)
        if run.over:
            self._see_to_gone(run)
        else:
            self._confirm(run)

    def _confirm(self, run: Run) -> None:
        """Answer for a slot that is in sight already; what is ending tells of itself."""
        if run.process is not None and run.process.alive() and not run.stopping:
            identity = run.process.identity
            self._facts.tell(Adopted(slot=run.slot, generation=run.generation, identity=identity))

    def _take_in(self, lead: Lead, process: Process) -> None:
        trace = lead.trace
        nonces = tuple(dict.fromkeys((process.identity.nonce, *lead.nonces)))
        run = Run(trace.slot, lead.generation, trace.spec, nonces=nonces, process=process)
        run.adopted = True
        run.group = self._groups.around(trace.slot, trace.spec, process.identity.pid)
        if trace.spec.logs.mode != "file":
            self._outputs.keep(trace.slot)
        self._watch.hold(run, process)
        self._facts.tell(
            Adopted(slot=run.slot, generation=run.generation, identity=process.identity)
        )


def signal_number(name: str) -> int:
    """Give the number of a signal: `TERM`, `SIGTERM` or `15`."""
    if name.isdigit() and int(name) in signals.valid_signals():
        return int(name)
    try:
        return signals.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        raise HostFailure(
            f"there is no signal '{name}' on this machine.",
            code="UPH_SIGNAL_UNKNOWN",
            remedy="kill -l lists them; write TERM, HUP, USR1 and so on.",
        ) from None


def _ask_to_end(main: Process, how: StopRule) -> None:
    """Signal the group, of which the main process is the leader, and wake whoever is stopped."""
    for number in (signal_number(how.signal), signals.SIGCONT):
        if not main.send_group(number):
            main.send(number)


def _sightings(runs: Collection[Run]) -> dict[str, Sighting]:
    held = (run.process.descriptor for run in runs if run.process is not None)
    ended = ended_of(descriptor for descriptor in held if descriptor >= 0)
    return {run.slot: _sighting(run, ended) for run in runs}


def _sighting(run: Run, ended: frozenset[int]) -> Sighting:
    process = run.process
    if process is None or run.exit is not None:
        return Sighting(slot=run.slot, generation=run.generation, connected=False, info={})
    held = process.descriptor
    if held in ended or (held < 0 and not process.alive()):  # its exit is on the way, with its code
        on_the_way = {"ending": True}
        return Sighting(slot=run.slot, generation=run.generation, connected=False, info=on_the_way)
    known = {"pid": process.identity.pid, "adopted": run.adopted}
    return Sighting(slot=run.slot, generation=run.generation, connected=True, info=known)
