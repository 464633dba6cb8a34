"""Asking workers how they are: by TCP, HTTP, a command, a line in their log, a file of beats.

Every question ends with its timeout, and no exception leaves: what cannot be found out is an
answer too. Nothing is kept open between two questions.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.core.addresses import parse_host_and_port, parse_url
from uphold.core.events import Gone, Started
from uphold.core.notices import AHEAD, Refused
from uphold.core.vitals import Answer, Outcome
from uphold.errors import HostFailure
from uphold.host.beats import BeatFiles
from uphold.wire.notices import decode_beat

if TYPE_CHECKING:
    from uphold.core.addresses import Address
    from uphold.core.events import SlotFact
    from uphold.core.notices import Beat
    from uphold.core.specs import Probe
    from uphold.drivers.process import ProcessDriver
    from uphold.host.homes import Home
    from uphold.ports.clocks import Clock
    from uphold.ports.probes import Subject

_PASSED: Final = Outcome.PASSED
_MISSED: Final = Outcome.MISSED
_REFUTED: Final = Outcome.REFUTED
_GOOD: Final = range(200, 400)
_FIRST_LINE: Final = 4096
_STATUS_LINE: Final = re.compile(rb"HTTP/[0-9.]+ ([0-9]{3})")
_MOST_OF_A_LOG: Final = 1 << 20
"""Bytes of a log that one question looks through."""
_SECURELY: Final = str(Path(__file__).with_name("asking_securely.py"))


class MachineProber:
    """Asks on the running asyncio loop."""

    def __init__(
        self, home: Home, clock: Clock, driver: ProcessDriver, files: BeatFiles | None = None
    ) -> None:
        self._home = home
        self._clock = clock
        self._driver = driver
        self._files = files or BeatFiles()
        self._marks: dict[str, tuple[int, int, int]] = {}
        """By slot: generation, and inode and size of its log when that run began."""
        self._before: dict[str, tuple[int, int]] = {}
        """By slot: inode and size of its log just before its newest run was begun."""
        driver.subscribe(self._hear)
        driver.before_logs(self._look_before)

    async def ask(self, probe: Probe, subject: Subject) -> Answer:
        """Ask one question."""
        try:
            async with asyncio.timeout(probe.timeout):
                return await self._ask(probe, subject)
        except TimeoutError:
            return Answer(_MISSED, f"{_what(probe)} gave no answer within {probe.timeout:g} s")
        except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError) as cause:
            return Answer(_REFUTED, f"{_what(probe)}: {_reason(cause)}")
        except OSError as cause:
            return Answer(_MISSED, f"{_what(probe)}: {_reason(cause)}")
        except (HostFailure, ValueError) as cause:
            return Answer(_MISSED, f"{_what(probe)}: {cause}")

    async def read_beat(self, path: str, subject: Subject) -> Beat | Refused:
        """Read a file of beats; one that lies on a silent file system is not waited for."""
        now = self._clock.now().wall
        decode = partial(decode_beat, now=now, nonce=subject.nonce)
        found = await self._files.read(path, decode)
        if isinstance(found, Refused):
            return found
        if found.modified > now + AHEAD:
            return Refused("from-the-future", f"the heartbeat file {path} is from the future.")
        return replace(found.beat, at=found.written)

    async def _ask(self, probe: Probe, subject: Subject) -> Answer:
        match probe.way:
            case "tcp":
                address = parse_host_and_port(probe.target)
                assert address is not None
                (await _connect(address)).close()
                return Answer(_PASSED, f"{_what(probe)} accepts connections")
            case "http":
                return await self._ask_http(probe, subject)
            case "log":
                return self._look_into_log(probe, subject)
            case _:
                return await self._run(probe.command, probe, subject)

    async def _ask_http(self, probe: Probe, subject: Subject) -> Answer:
        address = parse_url(probe.target)
        assert address is not None
        if address.secure:  # TLS would cost the supervisor 4 MiB for ever
            command = (sys.executable, "-I", "-S", _SECURELY, probe.target)
            return await self._run(command, probe, subject)
        connection = await _connect(address)
        try:
            status = await _status_of(connection, address)
        finally:
            connection.close()
        if status in _GOOD:
            return Answer(_PASSED, f"{_what(probe)} answers {status}")
        return Answer(_MISSED, f"{_what(probe)} answers {status}")

    async def _run(self, command: tuple[str, ...], probe: Probe, subject: Subject) -> Answer:
        code = await self._driver.run_probe(subject.slot, command)
        if code == 0:
            return Answer(_PASSED, f"{_what(probe)} exits with 0")
        how = "was ended by a signal" if code is None else f"exits with {code}"
        return Answer(_MISSED, f"{_what(probe)} {how}")

    def _look_before(self, slot: str) -> None:
        """Remember how long a log is before a run begins: a quick worker writes at once."""
        self._before[slot] = _standing(self._home.logs / f"{slot}.log")

    def _hear(self, fact: SlotFact) -> None:
        """Learn which run it was that began: older lines of its log tell nothing of it."""
        if isinstance(fact, Started):
            before = self._before.pop(fact.slot, None)
            if before is not None:
                self._marks[fact.slot] = (fact.generation, *before)
        elif isinstance(fact, Gone):
            self._marks.pop(fact.slot, None)

    def _look_into_log(self, probe: Probe, subject: Subject) -> Answer:
        path = self._home.logs / f"{subject.slot}.log"
        generation, inode, offset = self._marks.get(subject.slot, (subject.generation, 0, 0))
        now_inode, size = _standing(path)
        if generation != subject.generation or now_inode != inode or size < offset:
            offset = 0  # it was rotated, or begun: all of it is new
        text = b""
        if size > offset:
            with path.open("rb") as log:
                log.seek(offset)
                text = log.read(_MOST_OF_A_LOG)
        end = text.rfind(b"\n") + 1
        pattern = _pattern(probe.target)
        for line in text[:end].decode(errors="replace").splitlines():
            if pattern.search(line):
                return Answer(_PASSED, f"its log says '{line[:100]}'")
        self._marks[subject.slot] = (subject.generation, now_inode, offset + end)
        return Answer(_MISSED, f"no line of its log matches '{probe.target[:100]}' yet")


def _what(probe: Probe) -> str:
    if probe.way == "exec":
        return f"'{' '.join(probe.command)[:100]}'"
    return probe.target[:100]


def _reason(cause: OSError) -> str:
    """Say it in the words of the machine; asyncio puts its own around them."""
    return os.strerror(cause.errno) if cause.errno else str(cause)


async def _connect(address: Address) -> socket.socket:
    """Connect to the first of its addresses that accepts."""
    literal = _literal(address)
    failure: OSError | None = None
    for family, where in (literal,) if literal else await _resolve(address):
        try:
            return await _connect_to(family, where)
        except OSError as cause:
            failure = failure or cause
    raise failure or OSError(f"{address.host} has no address")


async def _connect_to(family: int, where: tuple[str, int]) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, where)
    except BaseException:
        connection.close()
        raise
    return connection


def _literal(address: Address) -> tuple[int, tuple[str, int]] | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, address.host)
        except OSError:
            continue
        return family, (address.host, address.port)
    return None


async def _resolve(address: Address) -> list[tuple[int, tuple[str, int]]]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [(family, (str(where[0]), int(where[1]))) for family, _, _, _, where in found]


async def _status_of(connection: socket.socket, address: Address) -> int:
    loop = asyncio.get_running_loop()
    request = (
        f"GET {address.path} HTTP/1.1\r\nHost: {address.authority}\r\n"
        "User-Agent: uphold\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )
    await loop.sock_sendall(connection, request.encode())
    answer = b""
    while b"\n" not in answer and len(answer) < _FIRST_LINE:
        data = await loop.sock_recv(connection, _FIRST_LINE)
        if not data:
            break
        answer += data
    found = _STATUS_LINE.match(answer)
    if found is None:
        raise ValueError("no HTTP answer" if answer else "closed without an answer")
    return int(found[1])


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _standing(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_size
