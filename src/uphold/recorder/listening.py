"""The recorder's conversation with its supervisor: what is new, and a word about the copy.

Two connections: one that only listens, one that asks. A supervisor that is gone may come back
(another one adopts the recorder), so both are made again; how long nobody was there is known.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from uphold.control.client import Connection
from uphold.errors import UpholdError

_BEFORE_TRYING_AGAIN: Final = 0.5
_ANSWER: Final = 10.0


class Clock(Protocol):
    """What is needed of a clock here."""

    def mono(self) -> float:
        """Read the monotonic clock."""
        ...

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        ...


class News(NamedTuple):
    """What was heard: that something happened, to whom, and whether the heart beat."""

    events: int = 0
    touched: frozenset[str] = frozenset()
    beat: bool = False

    def __add__(self, other: object) -> News:
        assert isinstance(other, News)
        return News(
            self.events + other.events, self.touched | other.touched, self.beat or other.beat
        )


NOTHING: Final = News()


class Ear:
    """Listens to the supervisor of a home, whenever there is one."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._stream: Connection | None = None
        self._asking: Connection | None = None
        self._alone_since = clock.mono()
        self.met = 0
        """How often a supervisor was met; a new one has heard nothing from us yet."""

    @property
    def connected(self) -> bool:
        """Tell whether somebody speaks to us."""
        return self._stream is not None

    @property
    def alone_for(self) -> float:
        """Seconds since the last supervisor was there; 0 while one is."""
        return 0.0 if self._stream is not None else self._clock.mono() - self._alone_since

    def wait(self, seconds: float) -> News:
        """Wait so long for news; gives the first, or nothing when the time is over."""
        until = self._clock.mono() + seconds
        while True:
            left = until - self._clock.mono()
            if self._stream is None and not self._connect():
                self._clock.pause(max(0.0, min(_BEFORE_TRYING_AGAIN, left)))
            elif (news := self._hear(max(0.0, left))) is not NOTHING:
                return news
            if self._clock.mono() >= until:
                return NOTHING

    def gather(self, seconds: float) -> News:
        """Take in what else comes within this time: what happens together is copied together."""
        news = NOTHING
        until = self._clock.mono() + seconds
        while self._stream is not None and (left := until - self._clock.mono()) > 0:
            news += self._hear(left)
        return news

    def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Ask the supervisor; None if there is none, or none that answers that."""
        try:
            if self._asking is None:
                self._asking = Connection(self._home)
            return self._asking.call(method, params or {}, patience=_ANSWER)
        except (UpholdError, OSError):
            if self._asking is not None:
                self._asking.close()
                self._asking = None
            return None

    def close(self) -> None:
        """Let go of both connections."""
        for each in (self._stream, self._asking):
            if each is not None:
                each.close()
        self._stream = self._asking = None

    def _connect(self) -> bool:
        stream: Connection | None = None
        try:
            stream = Connection(self._home)
            stream.call("subscribe", {"from_seq": None}, patience=_ANSWER)
        except (UpholdError, OSError):
            if stream is not None:
                stream.close()
            return False
        self._stream = stream
        self.met += 1
        return True

    def _hear(self, seconds: float) -> News:
        assert self._stream is not None
        try:
            message = self._stream.receive(seconds)
        except (EOFError, OSError, UpholdError):
            self.close()
            self._alone_since = self._clock.mono()
            return News(events=1)  # its last words may be in the journal
        if message is None:
            return NOTHING
        return news_of(message)


def news_of(message: dict[str, Any]) -> News:
    """Read what one message of the stream says."""
    event = message.get("event")
    if not isinstance(event, dict):
        return News(events=1)
    touched: frozenset[str] = frozenset()
    if event.get("entity_type") == "worker":
        touched = frozenset({str(event.get("entity_id"))})
        with suppress(AttributeError):
            slot = event["payload"].get("slot") if event.get("payload") else None
            touched = frozenset({str(slot)}) if slot else touched
    # Not heartbeats alone: a supervisor that is paused is to be seen as paused at once.
    return News(1, touched, str(event.get("type")).startswith("supervisor."))
