"""Being asked to stop, for code that blocks: scripts, and threads of a worker."""

from __future__ import annotations

import os
import select
import signal

from uphold.sdk import telling

_LONGEST = 1e6
"""The kernel counts a sleep in milliseconds, in 32 bits."""


class BlockingStopping:
    """Says whether to stop, and wakes whoever sleeps on it, in any thread.

    A pipe, not a `threading.Event`: setting that from a signal handler can wait for ever for
    a lock which the interrupted code holds.
    """

    def __init__(self) -> None:
        self._asked = False
        self._reader, self._writer = os.pipe()

    def is_set(self) -> bool:
        """Tell whether it is time to stop."""
        return self._asked

    def __call__(self) -> bool:
        """Tell whether it is time to stop."""
        return self._asked

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep so long, or until it is time to stop; True if it is."""
        if not self._asked:
            sleeper = select.poll()
            sleeper.register(self._reader, select.POLLIN)
            # The byte is never read, so that it wakes everybody, for ever.
            sleeper.poll(None if seconds is None else min(max(0.0, seconds), _LONGEST) * 1000)
        return self._asked

    def set(self) -> None:
        """Say that it is time to stop; safe in a signal handler, and more than once."""
        if not self._asked:
            self._asked = True
            os.write(self._writer, b"x")


def stop_requested(seconds: float = 0.0) -> bool:
    """Tell a script whether it was asked to end, after waiting for that up to so many seconds.

    The first call, which must be in the main thread, takes over SIGTERM and SIGINT. From then
    on they no longer end the program by themselves: it has to ask here, and end.
    """
    if _ASKED.flag is None:
        _ASKED.flag = flag = BlockingStopping()
        try:
            _listen(flag)
        except ValueError:
            _ASKED.flag = None
            raise RuntimeError(
                "stop_requested() must be called in the main thread first: only there can it "
                "begin to listen for the signal."
            ) from None
    return _ASKED.flag.wait(seconds)


def hand_over(flag: BlockingStopping) -> None:
    """Let `stop_requested` answer by this flag; whoever hosts a worker listens by itself."""
    _ASKED.flag = flag


class _Asked:
    """Whether anybody listens for the signals of this process, which has only one set of them."""

    flag: BlockingStopping | None = None


_ASKED = _Asked()


def _listen(flag: BlockingStopping) -> None:
    def asked(number: int, _: object) -> None:
        flag.set()
        telling.stopping()
        if number == signal.SIGINT:  # somebody who presses Ctrl-C twice means it
            signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGTERM, asked)
    signal.signal(signal.SIGINT, asked)
