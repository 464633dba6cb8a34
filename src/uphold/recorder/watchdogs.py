"""Ending a wait for a database that accepted and does not answer.

Drivers limit the time of a connect; for a statement not every one of them can. So whoever waits
too long has the connection cut from another thread: the driver sees its end and raises. This
works in any thread and needs no signals.
"""

from __future__ import annotations

import os
import select
import socket
import sqlite3
from contextlib import suppress
from threading import Lock, Timer
from typing import Any


class Watchdog:
    """Cuts one connection if what was begun is not over in time."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = Lock()
        self._timer: Timer | None = None
        self.bitten = False
        """Whether a connection was cut, so that what it raises now is our doing."""

    def watch(self, raw: Any) -> None:
        """Begin to wait for something on this connection of a driver."""
        self.rest()
        timer = Timer(self._patience, lambda: self._bite(timer, raw))
        timer.daemon = True
        with self._lock:
            self._timer = timer
        timer.start()

    def rest(self) -> None:
        """Take note that it is over; once this returns, nothing is cut any more."""
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _bite(self, timer: Timer, raw: Any) -> None:
        with self._lock:
            if self._timer is timer:  # else it came too late: what it watched is over
                self.bitten = True
                cut(raw)


def cut(raw: Any) -> None:
    """End a driver's connection under its feet."""
    if isinstance(raw, sqlite3.Connection):
        with suppress(sqlite3.Error):
            raw.interrupt()
        return
    with suppress(OSError, ValueError), _socket(raw) as line:
        line.shutdown(socket.SHUT_RDWR)


def is_silent(raw: Any) -> bool:
    """Tell whether an idle connection has nothing to say; its end would be something."""
    if isinstance(raw, sqlite3.Connection):
        return True
    try:
        with _socket(raw) as line:
            readable = select.poll()
            readable.register(line, select.POLLIN)
            return not readable.poll(0)
    except (OSError, ValueError):
        return False


def _socket(raw: Any) -> socket.socket:
    """Give a second handle on the connection's socket; its owner keeps its own."""
    inner = getattr(raw, "_sock", None)  # PyMySQL tells in no other way
    number = inner.fileno() if inner is not None else raw.fileno()
    return socket.socket(fileno=os.dup(number))
