"""Programs that are run to their end: waited for with a limit, and ended with all they started."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from uphold.core.specs import Limits
from uphold.host.processes import hold_child
from uphold.host.processes.spawning import Program, spawn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from uphold.host.processes import Process


async def run_to_its_end(
    command: tuple[str, ...], environment: Mapping[str, str], output: Path, limit: float
) -> int | None:
    """Run a program and give its exit code; None if its time was over and it was killed.

    Its output is added to a file. HostFailure or OSError if it cannot be started.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    written = os.open(output, flags, 0o600)
    try:
        pid = spawn(
            Program(
                path=command[0],
                argv=command,
                environment=environment,
                working_dir="/",
                out=written,
                err=written,
                lock=None,
                umask=None,
                account=None,
                limits=Limits(),
            )
        )
    finally:
        os.close(written)
    return await _wait(hold_child(pid, ""), limit)


async def _wait(process: Process, limit: float) -> int | None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(process.descriptor, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), limit)
    except BaseException as cause:
        process.send_group(signal.SIGKILL)
        await ended.wait()
        if not isinstance(cause, TimeoutError):
            raise
        return None
    finally:
        loop.remove_reader(process.descriptor)
        ending = process.reap() if ended.is_set() else None
        process.close()
    return None if ending is None else ending.code
