"""What the recorder says of the copy in the shared database, and what the supervisor makes of it.

The recorder asks for two things over the socket: that everything so far is on the disk (`sync`),
and to be heard (`store`). Supervision depends on neither.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from uphold.core.events import Note
from uphold.core.times import parse_utc
from uphold.daemon.companions import copy_the_rest
from uphold.errors import EXIT_USAGE, UpholdError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from uphold.control.server import Method
    from uphold.core.specs import Settings, StoreSpec
    from uphold.daemon.equipping import Launch
    from uphold.engine.supervisor import Supervisor
    from uphold.host.homes import Home
    from uphold.ports.clocks import Clock
    from uphold.wire.redaction import Redactor

REPORT_NAME: Final = "recorder.json"
AWAY: Final = frozenset({"unreachable", "refused"})
_STATES: Final = frozenset({"caught_up", "copying", *AWAY})
_LARGEST: Final = 1 << 16
_SHOWN: Final = (
    "state",
    "since",
    "at",
    "shown_url",
    "pending",
    "lag_seconds",
    "lost",
    "set_aside",
    "last_error",
    "copied",
)


async def copy_in_a_pass(launch: Launch, settings: Settings) -> Sequence[str]:
    """Copy what a single pass has to tell; gives what went wrong, in sentences."""
    if settings.store is None or await copy_the_rest(launch.home, settings.store, launch.environ):
        return ()
    error = (last_word(launch.home) or {}).get("last_error")
    if not isinstance(error, dict):
        return ("not all of it was copied to the shared database; the next pass goes on with it.",)
    return (f"{error.get('message', '')} {error.get('remedy', '')} [{error.get('code', '')}]",)


class Copies:
    """The last word of the recorder; transitions become events."""

    def __init__(
        self,
        *,
        home: Home,
        clock: Clock,
        redactor: Callable[[], Redactor],
        configured: Callable[[], StoreSpec | None],
    ) -> None:
        self._clock = clock
        self._redactor = redactor
        self._configured = configured
        self._said: dict[str, Any] | None = None
        self._about: StoreSpec | None = None
        # An outage that an earlier supervisor told of is not told again, and its end is.
        earlier = last_word(home)
        self._away: bool | None = None if earlier is None else earlier["state"] in AWAY

    @property
    def away(self) -> bool:
        """Tell whether the shared database was last known to be out of reach."""
        return self._is_current() and self._said is not None and self._said["state"] in AWAY

    def table(self, supervisor: Supervisor) -> dict[str, Method]:
        """Give the methods of the socket that are the recorder's."""
        return {"sync": partial(_sync, supervisor), "store": partial(self._hear, supervisor)}

    async def _hear(self, supervisor: Supervisor, params: Mapping[str, Any]) -> object:
        note = self.take(params)
        if note is not None:
            await supervisor.tell(note)
        return {"ok": True}

    def take(self, params: Mapping[str, Any]) -> Note | None:
        """Believe what the recorder says; gives the news that it is, if it is any."""
        if params.get("state") not in _STATES or len(json.dumps(dict(params))) > _LARGEST:
            raise UpholdError(
                "'store' needs a state: caught_up, copying, unreachable or refused.",
                code="UPH_ORDER_INVALID",
                exit_code=EXIT_USAGE,
            )
        said = {key: params.get(key) for key in _SHOWN}
        self._said, self._about = said, self._configured()
        state = said["state"]
        if state in AWAY and self._away is not True:
            self._away = True
            return self._note("store.unreachable", said, severity="warning")
        if state == "caught_up" and self._away is not False:
            self._away = False
            return self._note("store.caught_up", said)
        return None

    def shown(self) -> dict[str, Any] | None:
        """Give what `status` shows; None where no shared database is configured."""
        if self._configured() is None:
            return None
        if self._said is None or not self._is_current():
            return {**dict.fromkeys(_SHOWN), "state": "unknown"}
        shown: dict[str, Any] = self._redactor().value(dict(self._said))
        if shown["state"] in AWAY and isinstance(shown["lag_seconds"], int | float):
            # It speaks seldom while nobody answers there; the time goes on.
            passed = self._clock.now().wall - _moment(shown["at"], self._clock.now().wall)
            shown["lag_seconds"] = round(shown["lag_seconds"] + max(0.0, passed), 3)
        return shown

    def _is_current(self) -> bool:
        """Tell whether the last word was about the database that is configured now."""
        return self._about == self._configured()

    def _note(self, kind: str, said: Mapping[str, Any], severity: str = "info") -> Note:
        error = said.get("last_error")
        told = error if isinstance(error, dict) else {}
        payload: dict[str, object] = {
            "store": said["shown_url"],
            "pending": said["pending"],
            "lost": said["lost"],
        }
        if kind == "store.unreachable":
            payload |= {
                "code": told.get("code"),
                "error": told.get("message"),
                "remedy": told.get("remedy"),
            }
        return Note(
            type=kind,
            entity_type="supervisor",
            entity_id="store",
            payload=self._redactor().value(payload),
            severity=severity,
        )


async def _sync(supervisor: Supervisor, _params: Mapping[str, Any]) -> object:
    return {"durable_seq": await supervisor.sync()}


def last_word(home: Home) -> dict[str, Any] | None:
    """Read what the recorder wrote last; None if that is nothing that can be understood."""
    try:
        content = (home.spool / REPORT_NAME).read_bytes()[:_LARGEST]
        found = json.loads(content)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("state") in _STATES else None


def _moment(text: object, otherwise: float) -> float:
    try:
        return parse_utc(str(text))
    except ValueError:
        return otherwise
