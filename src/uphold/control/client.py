"""The client of the local socket: one request and its answer, or a stream of events.

Imports little on purpose: every command waits for it. It knows the protocol and nothing
about what the answers mean.
"""

from __future__ import annotations

import json
import os
from _socket import AF_UNIX, SOCK_STREAM, socket  # the module around it costs 3 ms

from uphold.errors import ConfigInvalid, NotPermitted, NotRunning, Problem, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Final, Self

SOCKET_NAME: Final = "control.sock"
PATIENCE: Final = 10.0
"""Seconds an answer that needs no waiting may take."""

_NOTICE_AFTER: Final = 1.0
_CHUNK: Final = 1 << 16
_CREDENTIALS: Final = 12
"""Bytes by which the kernel names the other end: process, user and group."""


class Connection:
    """One conversation with the supervisor that owns a home."""

    def __init__(self, home: str) -> None:
        self._socket = _connect(home)
        self._received = bytearray()
        self._requests = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the conversation."""
        self._socket.close()

    def fileno(self) -> int:
        """Name the descriptor, so that a caller can wait for it together with others."""
        return self._socket.fileno()

    def peer(self) -> int:
        """Tell the process at the other end, by the kernel's word; 0 if it is out of sight."""
        from _socket import SO_PEERCRED, SOL_SOCKET  # noqa: PLC0415 - hardly anybody asks
        from sys import byteorder  # noqa: PLC0415

        told = self._socket.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS)
        return int.from_bytes(told[:4], byteorder)

    def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        patience: float | None = PATIENCE,
        notice: Callable[[], None] | None = None,
    ) -> Any:
        """Ask and wait for the answer; errors the supervisor reports are raised as they are.

        `patience` limits the silence (None: as long as it takes); `notice` is called once
        when the answer takes longer than a second.
        """
        self._requests += 1
        request = {"id": self._requests, "method": method, "params": dict(params or {})}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            answer = self._answer(patience, notice)
        except TimeoutError as cause:
            raise UpholdError(
                f"the supervisor did not answer '{method}' within {patience:g} s.",
                code="UPH_SUPERVISOR_SILENT",
                remedy="It may be stopped (SIGSTOP) or overloaded"
                f"{'' if method == 'status' else '; `uphold status` tells'}. "
                "`uphold stop` ends it by force if it must.",
            ) from cause
        except (EOFError, ConnectionError) as cause:
            raise UpholdError(
                f"the supervisor went away before it answered '{method}'.",
                code="UPH_SUPERVISOR_GONE",
                remedy="`uphold status` shows what is left; `uphold start` starts it again.",
            ) from cause
        if "error" in answer:
            raise reported(answer["error"])
        return answer.get("result")

    def receive(self, timeout: float | None) -> dict[str, Any] | None:
        """Wait for the next message; None when the time is over, EOFError when it is the end."""
        while (end := self._received.find(b"\n")) < 0:
            self._socket.settimeout(timeout)
            try:
                chunk = self._socket.recv(_CHUNK)
            except (TimeoutError, BlockingIOError):
                return None
            if not chunk:
                raise EOFError
            self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as cause:
            raise UpholdError(
                "the supervisor answered with something that is not JSON.",
                code="UPH_CONTROL_BROKEN",
                remedy="Is this uphold as new as the one that runs? `uphold --version` tells.",
            ) from cause
        return message if isinstance(message, dict) else {}

    def _answer(self, patience: float | None, notice: Callable[[], None] | None) -> dict[str, Any]:
        first = _NOTICE_AFTER if patience is None else min(_NOTICE_AFTER, patience)
        answer = self._matching(first)
        if answer is None and notice is not None:
            notice()
        if answer is None:
            answer = self._matching(None if patience is None else patience - first)
        if answer is None:
            raise TimeoutError
        return answer

    def _matching(self, timeout: float | None) -> dict[str, Any] | None:
        """Pass over what belongs to an earlier request that was given up on."""
        while (message := self.receive(timeout)) is not None:
            if message.get("id") == self._requests:
                return message
        return None


def _connect(home: str) -> socket:
    """Reach the socket through a descriptor of its folder: its own path may be too long."""
    try:
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as cause:
        raise _unreachable(home, cause) from cause
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
    except OSError as cause:
        connection.close()
        raise _unreachable(home, cause) from cause
    finally:
        os.close(folder)
    return connection


def _unreachable(home: str, cause: OSError) -> UpholdError:
    if isinstance(cause, PermissionError):
        return NotPermitted(
            f"the home {home} belongs to somebody else.",
            code="UPH_HOME_DENIED",
            remedy="Run this as the user who started the supervisor, or as root.",
        )
    return NotRunning(
        f"no supervisor answers in {home}.",
        remedy="Start it with `uphold start`; `uphold status` shows what is known.",
    )


def reported(told: object) -> UpholdError:
    """Turn an error on the wire into the exception it was, whatever shape it has."""
    error = told if isinstance(told, dict) else {}
    code = str(error.get("code", UpholdError.code))
    problems = error.get("problems")
    if isinstance(problems, list) and problems:
        tables = (each if isinstance(each, dict) else {} for each in problems)
        listed = [Problem(str(each.get("at", "")), str(each.get("text", ""))) for each in tables]
        return ConfigInvalid(listed, code=code)
    exit_code = error.get("exit_code")
    known = isinstance(exit_code, int) and exit_code in range(256)  # -0.0 is in range, and no code
    return UpholdError(
        str(error.get("message") or "the supervisor reported an error without a message."),
        code=code,
        remedy=str(error.get("remedy") or ""),
        exit_code=exit_code if known else UpholdError.exit_code,
    )
