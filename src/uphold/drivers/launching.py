"""From a launch to a held process: environment, program, output, lock, spawn, identity.

Whether a slot may be started at all is decided by the driver, who hands in its lock.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.events import StartFailed
from uphold.core.statuses import Fault
from uphold.errors import HostFailure
from uphold.host.clock import boot_id
from uphold.host.environments import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    Account,
    Environments,
    find_program,
)
from uphold.host.processes import Process, hold_child
from uphold.host.processes.slotlocks import SlotLock, SlotRecord
from uphold.host.processes.spawning import HOPELESS, NO_RESOURCES, Program, account_of, spawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.specs import WorkerSpec
    from uphold.drivers.announcing import Announcements
    from uphold.drivers.senders import Senders
    from uphold.host.processes.groups import Group, Groups
    from uphold.host.processes.outputs import Outputs
    from uphold.ports.drivers import Launch

_MOST_FOUND: Final = 1_000


class Place(NamedTuple):
    """Where a command is looked for."""

    command: str
    path: str | None
    folder: str


class Prepared(NamedTuple):
    """A start that needs only the spawn itself; its intent is in the slot's file."""

    launch: Launch
    lock: SlotLock
    intent: SlotRecord
    program: Program
    opened: tuple[int, ...]
    place: Place
    """Where its program was looked for."""
    group: Group | None = None

    def close(self) -> None:
        """Let go of our copies of what the worker gets."""
        for descriptor in self.opened:
            os.close(descriptor)
        self.lock.close()


class Launcher:
    """Starts programs on behalf of slots."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        outputs: Outputs,
        groups: Groups,
        environments: Environments,
        nofile: tuple[int, int] | None,
        *,
        senders: Senders,
        announcements: Announcements,
    ) -> None:
        self._outputs = outputs
        self._environments = environments
        self._groups = groups
        self._senders = senders
        self._announcements = announcements
        self._nofile = nofile
        self._found: dict[Place, str] = {}
        """Programs found before: a start takes the one it had, as long as that can be started."""
        self.before_log: Callable[[str], None] | None = None
        """Looks at the log of a slot before a run whose readiness a line of it may tell."""

    def prepare(self, launch: Launch, lock: SlotLock) -> Prepared:
        """Make a slot ready whose lock we hold; HostFailure or OSError if that fails.

        The intent goes into the slot's file before there is a process, so that any later
        supervisor finds it even without the journal.
        """
        intent = SlotRecord(launch.generation, launch.nonce, boot_id())
        group = self._groups.begin(launch.slot, launch.spec)
        program, opened, place = self._program(launch.slot, launch.nonce, launch.spec, lock=lock)
        try:
            if group is not None:
                tree, caps = group.doors()
                opened += caps if tree is None else (tree, *caps)
                program = program._replace(group=tree, caps=caps)
            if (pipe := self._announcements.offer(launch)) is not None:
                opened += (pipe[0],)
                program = program._replace(extra=pipe)
            lock.write(intent)
        except BaseException:
            _close_all(opened)
            raise
        self._senders.expect(launch.slot, launch.generation, launch.nonce)
        return Prepared(launch, lock, intent, program, opened, place, group)

    def spawn(self, prepared: Prepared, *, alone: bool = True) -> int:
        """Start it; on another thread than the loop's only what `is_quick`, and not `alone`."""
        try:
            return spawn(prepared.program, self._nofile, alone=alone)
        except HostFailure as cause:
            if cause.code not in (NOT_FOUND, NOT_EXECUTABLE):
                raise
        # It may have moved since it was found: look again, and say what is wrong if it has not.
        self._found.pop(prepared.place, None)
        path = self._find(prepared.place)
        return spawn(prepared.program._replace(path=path), self._nofile, alone=alone)

    def finish(self, prepared: Prepared, outcome: int | Exception) -> Process:
        """Hold what was spawned and write down who it is; raise what went wrong instead.

        Either way our copies of its lock and output are closed.
        """
        launch, lock = prepared.launch, prepared.lock
        try:
            process = _hold(outcome, launch.nonce, prepared.program.path)
        except Exception:
            lock.clear()
            raise
        else:
            who = process.identity
            known = prepared.intent._replace(
                pid=who.pid, start_ticks=who.start_ticks, inode=who.inode
            )
            with suppress(OSError):  # the intent is written, which is enough to find it again
                lock.write(known)
        finally:
            prepared.close()
        return process

    def run_beside(
        self,
        slot: str,
        main: Process,
        spec: WorkerSpec,
        command: tuple[str, ...],
        *,
        quiet: bool = False,
    ) -> Process:
        """Start the stop command or a probe of a slot: as the worker, but without its lock."""
        nonce = main.identity.nonce
        main_pid = {"UPHOLD_MAIN_PID": str(main.identity.pid)}
        program, opened, _ = self._program(slot, nonce, spec, command=command)
        try:
            program = program._replace(environment={**program.environment, **main_pid})
            if quiet:
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                opened += (nowhere,)
                program = program._replace(out=nowhere, err=nowhere)
            return _hold(spawn(program, self._nofile), nonce, program.path)
        finally:
            _close_all(opened)

    def _program(
        self,
        slot: str,
        nonce: str,
        spec: WorkerSpec,
        *,
        command: tuple[str, ...] | None = None,
        lock: SlotLock | None = None,
    ) -> tuple[Program, tuple[int, ...], Place]:
        """Put together what is started, with its output open; only a start with a lock rotates."""
        argv = _argv(spec) if command is None else command
        account = account_of(spec)
        environment = self._environments.compose(spec, slot=slot, nonce=nonce, account=account)
        place = Place(argv[0], environment.get("PATH"), spec.working_dir)
        path = self._found.get(place) or self._find(place)
        # Whoever is to become ready in another way may be asked to do so by its log later on.
        if lock is not None and self.before_log is not None and spec.ready is not None:
            self.before_log(slot)
        opened = tuple(self._outputs.open(slot, spec.logs, account, rotating=lock is not None))
        program = Program(
            path=path,
            argv=argv,
            environment=environment,
            working_dir=spec.working_dir,
            out=opened[0],
            err=opened[-1],
            lock=None if lock is None else lock.descriptor,
            umask=spec.umask,
            account=account,
            limits=spec.limits,
        )
        return program, opened, place

    def _find(self, place: Place) -> str:
        path = find_program(*place)
        if len(self._found) >= _MOST_FOUND:
            self._found.clear()
        self._found[place] = path
        return path


def start_failed(launch: Launch, cause: Exception) -> StartFailed:
    """Turn what went wrong into the fact that a start failed."""
    if isinstance(cause, HostFailure):
        code = cause.code
        message = f"{cause.message} {cause.remedy}".rstrip()
    else:
        code = NO_RESOURCES
        message = f"{launch.slot} could not be started: {cause}."
    return StartFailed(
        slot=launch.slot,
        generation=launch.generation,
        fault=Fault(code=code, message=message),
        hopeless=code in HOPELESS,
    )


def account_number(spec: WorkerSpec) -> int:
    """Tell under which user a worker's processes run."""
    account: Account | None = None
    with suppress(HostFailure):
        account = account_of(spec)
    return os.geteuid() if account is None else account.uid


def _close_all(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _argv(spec: WorkerSpec) -> tuple[str, ...]:
    return ("/bin/sh", "-c", spec.command[0]) if spec.shell else spec.command


def _hold(pid: int | Exception, nonce: str, path: str) -> Process:
    """Hold what a spawn gave; raise what it failed with."""
    if isinstance(pid, Exception):
        raise pid
    try:
        return hold_child(pid, nonce)
    except ProcessLookupError as cause:
        # Somebody else has reaped it, so its number may be anybody's by now.
        raise HostFailure(f"'{path}' ended at once, and its end was taken.") from cause
    except OSError as cause:
        # A process that cannot be watched must not run. Unreaped, its number is its own.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise HostFailure(
            f"'{path}' was started and ended again, since it could not be watched: "
            f"{cause.strerror}.",
            code=NO_RESOURCES,
        ) from cause
