from __future__ import annotations

import socket
import sqlite3

import pytest

from uphold.recorder.watchdogs import Watchdog, cut, is_silent
from uphold.testing.waiting import until


class Line:
    """A driver's connection, as far as a watchdog looks at it."""

    def __init__(self, end):
        self.end = end

    def fileno(self):
        return self.end.fileno()


def test_who_waits_too_long_is_cut_off():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watchdog = Watchdog(0.05)
        watchdog.watch(Line(ours))
        assert ours.recv(1) == b""  # would wait for ever
        assert watchdog.bitten


def test_who_is_in_time_is_left_alone():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watchdog = Watchdog(3600)
        watchdog.watch(Line(ours))
        watchdog.rest()
        theirs.send(b"x")
        assert ours.recv(1) == b"x"
        assert not watchdog.bitten


def test_only_what_was_begun_last_is_watched():
    ours, theirs = socket.socketpair()
    first, other = socket.socketpair()
    with ours, theirs, first, other:
        watchdog = Watchdog(3600)
        watchdog.watch(Line(first))
        late = watchdog._timer
        watchdog.watch(Line(ours))
        watchdog._bite(late, Line(first))  # it was about to when the next thing began
        assert is_silent(Line(first))
        assert not watchdog.bitten
        watchdog.rest()


def test_an_end_that_came_meanwhile_is_seen():
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            assert is_silent(Line(ours))
        until(lambda: not is_silent(Line(ours)), within=30, what="the end of the line")


def test_a_connection_that_is_closed_already_is_not_cut_and_not_silent():
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    cut(Line(ours))
    assert not is_silent(Line(ours))


def test_a_statement_on_a_file_is_interrupted():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    watchdog = Watchdog(1.0)
    watchdog.watch(connection)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless).fetchall()
    assert watchdog.bitten
    assert is_silent(connection)
    connection.close()
