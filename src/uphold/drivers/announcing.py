"""Readiness by a descriptor: a worker writes a line to it once it is up, as for s6."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.ports.drivers import Launch

    Told = Callable[[str, int], None]

_CHUNK: Final = 4096
_MOST: Final = 65536
"""Bytes without a line end after which nobody listens any longer."""


class Announcements:
    """Pipes of workers that tell by one of them when they are ready."""

    def __init__(self) -> None:
        self._told: Told | None = None
        self._open: dict[int, tuple[str, int, int]] = {}
        """By our end: whose it is, and how much was read of it."""

    def begin(self, told: Told) -> None:
        """Tell of each (slot, generation) from now on."""
        self._told = told

    def offer(self, launch: Launch) -> tuple[int, int] | None:
        """Make the pipe of one run: the end to hand on, and the number it shall have there.

        When that end is closed everywhere, ours goes by itself.
        """
        probe = launch.spec.ready
        if probe is None or probe.way != "fd":
            return None
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        self._open[reading] = (launch.slot, launch.generation, 0)
        asyncio.get_running_loop().add_reader(reading, self._readable, reading)
        return writing, int(probe.target)

    @property
    def listening(self) -> int:
        """How many have not told anything yet."""
        return len(self._open)

    def close(self) -> None:
        """Listen no more."""
        for reading in tuple(self._open):
            self._drop(reading)

    def _readable(self, reading: int) -> None:
        slot, generation, before = self._open[reading]
        try:
            data = os.read(reading, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if b"\n" in data and self._told is not None:
            self._told(slot, generation)
        if not data or b"\n" in data or before + len(data) > _MOST:
            self._drop(reading)
        else:
            self._open[reading] = (slot, generation, before + len(data))

    def _drop(self, reading: int) -> None:
        if self._open.pop(reading, None) is not None:
            asyncio.get_running_loop().remove_reader(reading)
            with suppress(OSError):
                os.close(reading)
