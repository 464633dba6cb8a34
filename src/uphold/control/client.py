"""The client of the local socket: one request and its answer, or a stream of events.

Imports little on purpose: every command waits for it. It knows the protocol and nothing
about what the answers mean.
"""

from __future__ import annotations

import json
import os
from _socket import (  # the module around it costs 3 ms
    AF_UNIX,
    SO_SNDTIMEO,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)
from struct import pack

from uphold.errors import ConfigInvalid, NotPermitted, NotRunning, Problem, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Final, Self

SOCKET_NAME: Final = "control.sock"
PATIENCE: Final = 10.0
"""Seconds an answer that needs no waiting may take."""
TO_ACCEPT: Final = 30.0
"""Seconds a supervisor has for accepting an order; after that it says itself how long it waits."""
MARGIN: Final = 1.0
"""Seconds we wait longer than the supervisor does: its own answer knows more than our silence."""

_TO_CONNECT: Final = 5.0
"""Seconds a supervisor has for accepting a connection, if many wait for that."""

_NOTICE_AFTER: Final = 1.0
_CHUNK: Final = 1 << 16
_CREDENTIALS: Final = 12
"""Bytes by which the kernel names the other end: process, user and group."""


class Connection:
    """One conversation with the supervisor that owns a home."""

    def __init__(self, home: str, *, patience: float = PATIENCE) -> None:
        """`patience` limits how long we wait to be let in; never longer than 5 s."""
        self._socket = _connect(home, min(_TO_CONNECT, patience))
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
        from _socket import SO_PEERCRED  # noqa: PLC0415 - hardly anybody asks
        from sys import byteorder  # noqa: PLC0415

        told = self._socket.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS)
        return int.from_bytes(told[:4], byteorder)

    def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        patience: float = PATIENCE,
        notice: Callable[[], None] | None = None,
    ) -> Any:
        """Ask and wait for the answer; errors the supervisor reports are raised as they are.

        `patience` limits the silence; `notice` is called once when the answer takes longer than
        a second.
        """
        try:
            self._send(method, params)
            answer = self._answer(patience, notice)
        except TimeoutError as cause:
            raise _silent(
                f"the supervisor did not answer '{method}' within {patience:g} s.",
                "" if method == "status" else "; `uphold status` tells",
            ) from cause
        except (EOFError, ConnectionError) as cause:
            raise _gone(f"before it answered '{method}'") from cause
        return _result(answer)

    def order(
        self,
        method: str,
        params: Mapping[str, object],
        *,
        timeout: float | None = None,
        notice: Callable[[], None] | None = None,
        margin: float = MARGIN,
    ) -> Any:
        """Give an order and wait for what comes of it; errors are raised as by `call`.

        The supervisor says first that it has accepted the order, and how long it will wait for
        the outcome: so long do we wait, and a little longer. `timeout` is the caller's own limit.
        Nobody waits for ever, and what is known of the order is said when the time is over.
        """
        to_accept = TO_ACCEPT if timeout is None else timeout
        try:
            self._send(method, {**params, "tell_accepted": True})
            answer = self._answer(to_accept + margin, notice)
        except TimeoutError as cause:
            raise _unaccepted(to_accept) from cause
        except (EOFError, ConnectionError) as cause:
            raise _gone("before it accepted the order") from cause
        accepted = answer.get("accepted")
        if not isinstance(accepted, dict):
            return _result(answer)
        job, within = str(accepted["job_id"]), float(accepted["within"])
        try:
            return _result(self._answer(within + margin, notice))
        except TimeoutError as cause:
            raise _silent(
                f"{job} was accepted; the supervisor has not said within {within:g} s what came "
                "of it.",
                ". The order stays in force: `uphold jobs` shows where it stands",
            ) from cause
        except (EOFError, ConnectionError) as cause:
            raise _gone(f"after it had accepted {job}") from cause

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

    def _send(self, method: str, params: Mapping[str, object] | None) -> None:
        self._requests += 1
        request = {"id": self._requests, "method": method, "params": dict(params or {})}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except BlockingIOError as cause:
            raise TimeoutError from cause

    def _answer(self, patience: float, notice: Callable[[], None] | None) -> dict[str, Any]:
        first = min(_NOTICE_AFTER, patience)
        answer = self._matching(first)
        if answer is None and notice is not None:
            notice()
        if answer is None:
            answer = self._matching(patience - first)
        if answer is None:
            raise TimeoutError
        return answer

    def _matching(self, timeout: float) -> dict[str, Any] | None:
        """Pass over what belongs to an earlier request that was given up on."""
        while (message := self.receive(timeout)) is not None:
            if message.get("id") == self._requests:
                return message
        return None


def _connect(home: str, seconds: float) -> socket:
    """Reach the socket through a descriptor of its folder: its own path may be too long."""
    try:
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as cause:
        raise _unreachable(home, cause) from cause
    connection = socket(AF_UNIX, SOCK_STREAM)
    # One that is stopped takes in nobody: whoever comes when its queue is full would wait for ever.
    connection.setsockopt(SOL_SOCKET, SO_SNDTIMEO, pack("ll", *_timeval(seconds)))
    try:
        connection.connect(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
    except BlockingIOError as cause:
        connection.close()
        within = f"within {seconds:g} s"
        raise _silent(f"the supervisor did not accept a connection {within}.") from cause
    except OSError as cause:
        connection.close()
        raise _unreachable(home, cause) from cause
    finally:
        os.close(folder)
    return connection


def _timeval(seconds: float) -> tuple[int, int]:
    whole, part = divmod(max(1, round(seconds * 1_000_000)), 1_000_000)  # zero means for ever
    return whole, part


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


def _silent(message: str, more: str = "") -> UpholdError:
    return UpholdError(
        message,
        code="UPH_SUPERVISOR_SILENT",
        remedy=f"It may be stopped (SIGSTOP) or overloaded{more}. "
        "`uphold stop` ends it by force if it must.",
    )


def _unaccepted(seconds: float) -> UpholdError:
    return _silent(
        f"the supervisor did not accept the order within {seconds:g} s; nothing is known of it.",
        ". It may still carry the order out when it goes on; `uphold jobs` shows",
    )


def _gone(when: str) -> UpholdError:
    return UpholdError(
        f"the supervisor went away {when}.",
        code="UPH_SUPERVISOR_GONE",
        remedy="`uphold status` shows what is left; `uphold start` starts it again.",
    )


def _result(answer: Mapping[str, Any]) -> Any:
    if "error" in answer:
        raise reported(answer["error"])
    return answer.get("result")


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
