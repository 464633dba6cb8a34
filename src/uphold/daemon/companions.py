"""The parts of uphold that run as workers of uphold itself, and how the pump is told of news."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.core.events import Adopted, Started
from uphold.core.specs import Backoff, Logs, StopRule, WorkerSpec
from uphold.errors import HostFailure
from uphold.host.environments import Environments
from uphold.host.files import write_atomically
from uphold.host.programs import run_to_its_end
from uphold.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from uphold.core.events import SlotFact
    from uphold.core.specs import Settings, StoreSpec
    from uphold.host.homes import Home

PUMP: Final = "@pump"
RECORDER: Final = "@recorder"
_MOST_NAMED: Final = 100
_BEFORE_TELLING: Final = 0.01
"""A pipe takes what its worker says until then; in a rush one message tells of many."""
_RETRY: Final = 5.0
"""Seconds until settings that a full disk did not take are written again."""
_LAST_COPY: Final = 10.0
"""Seconds that the end of a supervisor may be put off for the shared database's sake."""
_SETTINGS: Final = ("max_size", "keep", "compress", "overflow")


def companions_of(home: Home, settings: Settings) -> tuple[WorkerSpec, ...]:
    """Say which parts of uphold a configuration needs beside the supervisor."""
    if settings.store is None:
        return (pump_spec(home),)
    return (pump_spec(home), recorder_spec(home, settings.store))


def recorder_spec(home: Home, store: StoreSpec) -> WorkerSpec:
    """Declare the recorder. The address goes by its environment: command lines are read by all."""
    return WorkerSpec(
        name=RECORDER,
        command=recorder_command(home),
        environment=recorder_environment(store),
        logs=Logs(mode="file", max_size=1_000_000, keep=2),
        max_restarts=None,
        backoff=Backoff(max=60.0),
        stop=StopRule(grace=15.0),
    )


def recorder_command(home: Home, *more: str) -> tuple[str, ...]:
    """Give the recorder's command line."""
    return (sys.executable, "-I", "-m", "uphold.recorder", str(home.path), *more)


def recorder_environment(store: StoreSpec) -> tuple[tuple[str, str], ...]:
    """Give the variables that the recorder needs."""
    return (("UPHOLD_STORE_URL", store.url), ("UPHOLD_VERSION", __version__))


def pump_spec(home: Home) -> WorkerSpec:
    """Declare the pump. Its version is part of its terms: one of another version is replaced."""
    import uphold  # noqa: PLC0415 - only its place on the disk is wanted

    program = Path(uphold.__file__).parent / "pump" / "__main__.py"
    return WorkerSpec(
        name=PUMP,
        command=(sys.executable, "-I", "-S", str(program), str(home.path)),
        environment=(("UPHOLD_VERSION", __version__),),
        logs=Logs(mode="file"),
        max_restarts=None,
        backoff=Backoff(max=5.0),
        stop=StopRule(grace=10.0),
    )


async def copy_the_rest(home: Home, store: StoreSpec, inherited: Mapping[str, str]) -> bool:
    """Have the recorder copy what the journal still got at the end; it is given up in time.

    What is not copied now is copied when a supervisor runs again; True if all of it was.
    """
    spec = recorder_spec(home, store)
    environment = Environments(inherited).compose(spec, slot=RECORDER, nonce="")
    command = recorder_command(home, "--once")
    try:
        return await run_to_its_end(command, environment, home.log(RECORDER), _LAST_COPY) == 0
    except (HostFailure, OSError):
        return False


class PumpLink:
    """Tells the pump of new FIFOs and settings. A lost word is harmless: it also scans."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._folder = os.open(home.run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._settings = b""
        self._wanted = b""
        self._settling = threading.Lock()
        """Settings come from whatever thread read the file, and from the retry's own."""
        self._retry: threading.Timer | None = None
        self._fresh: list[str] = []
        self._telling: asyncio.TimerHandle | None = None

    def add(self, slot: str) -> None:
        """Tell of a slot's FIFOs; those of one moment go in one message."""
        if not self._fresh:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(_BEFORE_TELLING, self._tell_fresh)
        self._fresh.append(slot)

    def _tell_fresh(self) -> None:
        slots, self._fresh = self._fresh, []
        if len(slots) > _MOST_NAMED:  # the message could be too long: looking is as good
            self._send("scan")
        else:
            self._send("\n".join(f"add {slot}.out\nadd {slot}.err" for slot in slots))

    def hear(self, fact: SlotFact) -> None:
        """Introduce ourselves to a pump that an earlier supervisor started."""
        if fact.slot == PUMP and isinstance(fact, Adopted | Started):
            self._send(f"owner {os.getpid()}\nscan\nsettings")

    def settle(self, specs: Iterable[WorkerSpec]) -> None:
        """Write down how each log is kept, and say so if it changed."""
        default = _terms(Logs())
        logs = {spec.name: spec.logs for spec in specs}
        # Workers that keep to [defaults] have one value in common: what it says is found once.
        own = {
            id(each): {key: value for key, value in _terms(each).items() if value != default[key]}
            for each in {id(each): each for each in logs.values()}.values()
        }
        differing = {name: terms for name, each in logs.items() if (terms := own[id(each)])}
        with self._settling:
            self._wanted = json.dumps({"default": default, "slots": differing}).encode()
            self._write_settings()

    def _write_settings(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._wanted == self._settings:
            return
        try:
            write_atomically(self._home.run / "logs.json", self._wanted)
        except OSError:
            # A full disk: the old settings stay until it takes the new ones.
            self._retry = threading.Timer(_RETRY, self._settle_again)
            self._retry.daemon = True
            self._retry.start()
            return
        self._settings = self._wanted
        self._send("settings")

    def _settle_again(self) -> None:
        with self._settling:
            if self._retry is not None:
                self._write_settings()

    def close(self) -> None:
        """Say what is still to be said, and let go of the socket."""
        if self._telling is not None:
            self._telling.cancel()
        if self._fresh:
            self._tell_fresh()
        with self._settling:
            if self._retry is not None:
                self._retry.cancel()
                self._retry = None
        self._socket.close()
        os.close(self._folder)

    def _send(self, words: str) -> None:
        with suppress(OSError):  # not there (yet): it scans when it comes
            self._socket.sendto(words.encode(), f"/proc/self/fd/{self._folder}/pump.sock")


def _terms(logs: Logs) -> dict[str, object]:
    return {key: getattr(logs, key) for key in _SETTINGS}
