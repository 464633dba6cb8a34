"""Supervising in the foreground: the supervisor is our child, we are its view.

Signals that ask us to end are handed on once as TERM; a second one asks it to hurry.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING

from uphold.cli.beginning import refuse_second
from uphold.cli.launching import become_supervisor, spawn_supervisor, wait_until_ready
from uphold.cli.places import require_config
from uphold.cli.screens import screen_of
from uphold.cli.speaking import say, warn
from uphold.cli.times import now
from uphold.core.texts import printable

if TYPE_CHECKING:
    import argparse
    from types import FrameType

    from uphold.cli.places import Place


class Child:
    """The supervisor we started: how it ended, and what is handed on to it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None
        self._asked = False
        self._poll = select.poll()
        self._poll.register(os.pidfd_open(pid), select.POLLIN)

    def running(self, patience: float = 0.0) -> bool:
        """Tell whether it still runs, after waiting so many seconds at most for its end."""
        if self._status is None:
            self._poll.poll(patience * 1000)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is None

    def wait(self) -> int:
        """Wait for its end and tell its exit code, as a shell would."""
        if self._status is None:
            _, self._status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(self._status)
        return code if code >= 0 else 128 - code

    def hand_on(self, number: int, _frame: FrameType | None) -> None:
        """Hand a signal on to it. It is our own unreaped child, so its number is its own."""
        if self._status is not None:
            return
        if number == signal.SIGHUP and not sys.stdin.isatty():
            os.kill(self.pid, signal.SIGHUP)  # a service manager asks for a reload
            return
        os.kill(self.pid, signal.SIGINT if self._asked else signal.SIGTERM)
        if not self._asked and sys.stderr.isatty():
            # Not through the buffered stream, which may be in the middle of a write.
            os.write(sys.stderr.fileno(), b"uphold: stopping everything in reverse order ...\n")
        self._asked = True


def supervise(args: argparse.Namespace, place: Place) -> int:
    """Run the supervisor as a child until it ends; its exit code is ours."""
    refuse_second(place)
    config = require_config(place)
    if args.quiet and not args.table and os.environ.get("NOTIFY_SOCKET"):
        # Nothing is shown, and a service manager listens: it shall deal with the supervisor
        # itself, with its messages, its signals and its exit code.
        become_supervisor(place.home, config)
    painted = args.table and screen_of().terminal
    # A painted table leaves no room for its messages; everywhere else they belong on stderr.
    began = now()
    started = spawn_supervisor(place.home, config, foreground=True, own_output=painted)
    child = Child(started.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, child.hand_on)
    wait_until_ready(started, place.home, patience=args.timeout)
    if not painted:
        say(args, f"supervisor running (pid {child.pid}), home {printable(place.home)}")
        sys.stdout.flush()
    if not args.quiet:
        _show(args, place, child, began)
    code = child.wait()
    if code >= 128:
        warn(
            args,
            f"the supervisor was ended by signal {code - 128}; its workers run on "
            "and the next start adopts them.",
        )
    return code


def _show(args: argparse.Namespace, place: Place, child: Child, began: float) -> None:
    if args.table:
        from uphold.cli.live import Picture, follow

        follow(place, Picture(as_json=args.json), wanted=child.running)
    else:
        from uphold.cli.output import show_output

        show_output(place.home, since=began, wanted=child.running)
