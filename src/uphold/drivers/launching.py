"""From a launch to a held process: environment, program, output, lock, spawn, identity.

Whether a slot may be started at all is decided by the driver, who hands in its lock.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from uphold.core.events import StartFailed
from uphold.core.statuses import Fault
from uphold.errors import HostFailure
from uphold.host.clock import boot_id
from uphold.host.environments import Account, find_program, worker_environment
from uphold.host.processes import Process, hold_child
from uphold.host.processes.slotlocks import SlotLock, SlotRecord
from uphold.host.processes.spawning import HOPELESS, NO_RESOURCES, Program, account_of, spawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.core.specs import WorkerSpec
    from uphold.host.processes.outputs import Outputs
    from uphold.ports.drivers import Launch


class Launcher:
    """Starts programs on behalf of slots."""

    def __init__(
        self, outputs: Outputs, inherited: Mapping[str, str], nofile: tuple[int, int] | None
    ) -> None:
        self._outputs = outputs
        self._inherited = inherited
        self._nofile = nofile

    def launch(self, launch: Launch, lock: SlotLock) -> Process:
        """Start a slot whose lock we hold; HostFailure if that fails, and then nothing runs.

        The intent goes into the slot's file before there is a process, and who it became right
        after, so that any later supervisor finds it even without the journal.
        """
        intent = SlotRecord(launch.generation, launch.nonce, boot_id())
        spec = launch.spec
        with self._prepared(launch.slot, launch.nonce, spec, _argv(spec), lock) as program:
            lock.write(intent)
            try:
                process = _hold(spawn(program, self._nofile), launch.nonce, program.path)
            except HostFailure:
                lock.clear()
                raise
        who = process.identity
        with suppress(OSError):  # the intent is written, which is enough to find it again
            lock.write(intent._replace(pid=who.pid, start_ticks=who.start_ticks, inode=who.inode))
        return process

    def run_beside(
        self, slot: str, main: Process, spec: WorkerSpec, command: tuple[str, ...]
    ) -> Process:
        """Start the stop command of a slot: as the worker itself, but without its lock."""
        nonce = main.identity.nonce
        main_pid = {"UPHOLD_MAIN_PID": str(main.identity.pid)}
        with self._prepared(slot, nonce, spec, command) as prepared:
            environment = {**prepared.environment, **main_pid}
            program = prepared._replace(environment=environment)
            return _hold(spawn(program, self._nofile), nonce, program.path)

    @contextmanager
    def _prepared(
        self,
        slot: str,
        nonce: str,
        spec: WorkerSpec,
        argv: tuple[str, ...],
        lock: SlotLock | None = None,
    ) -> Iterator[Program]:
        """Make everything ready for a start; only a start under the lock rotates logs."""
        account = account_of(spec)
        environment = worker_environment(
            spec, slot=slot, nonce=nonce, inherited=self._inherited, account=account
        )
        path = find_program(argv[0], environment.get("PATH"), spec.working_dir)
        opened = self._outputs.open(slot, spec.logs, account, rotating=lock is not None)
        try:
            yield Program(
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
        finally:
            for descriptor in opened:
                os.close(descriptor)


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


def _argv(spec: WorkerSpec) -> tuple[str, ...]:
    return ("/bin/sh", "-c", spec.command[0]) if spec.shell else spec.command


def _hold(pid: int, nonce: str, path: str) -> Process:
    try:
        return hold_child(pid, nonce)
    except OSError as cause:
        # A process that cannot be watched must not run. Unreaped, its number is its own.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise HostFailure(
            f"'{path}' was started and ended again, since it could not be watched: "
            f"{cause.strerror}.",
            code=NO_RESOURCES,
        ) from cause
