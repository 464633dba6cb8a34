"""`runtime.json`: the current state for people and scripts, written by the supervisor alone.

The loop hands over the latest state and goes on; a thread writes it, whole or not at all. The
one before is kept beside it, and a checksum inside tells a good one from a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from uphold.host.files import write_atomically

State = Mapping[str, object]
Render = Callable[[State], bytes | None]

ORDER: Final = (
    "running",
    "pid",
    "started_at",
    "stopped_at",
    "last_error",
    "supervisor",
    "workers",
)
"""The keys every state has, in the order in which they are written."""

_PAUSE: Final = 0.05
_RETRY: Final = 5.0
_LONGEST_FAREWELL: Final = 10.0
_CHECKSUM: Final = "checksum"
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), default=dict)


class RuntimeMirror:
    """Keeps the file equal to the last state shown, a moment later."""

    def __init__(
        self, path: str | Path, *, quickly: Render | None = None, retry: float = _RETRY
    ) -> None:
        """`quickly` may give the same bytes as `render` sooner, or None."""
        self._path = Path(path).absolute()
        self._quickly = quickly
        self._retry = retry
        self._latest: State | Callable[[], State] | None = None
        self._wake = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self.problem: str | None = None
        """Why the file is behind; None while it is not."""

    def show(self, state: State | Callable[[], State], *, last: bool = False) -> None:
        """Make this the state, soon; the last one at once. Never waits and never fails.

        The state must not change any more; or hand over a function that makes it, which
        another thread calls only when it is about to be written.
        """
        with self._wake:
            self._latest = state
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._serve, name="mirror", daemon=True)
                self._thread.start()
            self._closing = self._closing or last
            self._wake.notify()

    def close(self) -> None:
        """Write the last state and end. A disk that does not take it now is left alone."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(_LONGEST_FAREWELL)

    def _serve(self) -> None:
        known_good = False
        while True:
            with self._wake:
                while self._latest is None and not self._closing:
                    self._wake.wait()
                state, self._latest = self._latest, None
                closing = self._closing
            if state is not None:
                written = self._write(state, keep_current=known_good)
                known_good = known_good or written
                if not written:
                    self._put_back(state)
            if closing:
                return
            with self._wake:
                if not self._closing:
                    # Under a burst only the last state of each pause is written.
                    self._wake.wait_for(
                        lambda: self._closing, _PAUSE if self.problem is None else self._retry
                    )

    def _write(self, state: State | Callable[[], State], *, keep_current: bool) -> bool:
        try:
            shown = state() if callable(state) else state
            content = (self._quickly and self._quickly(shown)) or render(shown)
            # What somebody else left there must not push out a good earlier one.
            if keep_current or _read(self._path)[1] is None:
                _keep_as_previous(self._path)
            write_atomically(self._path, content, 0o600)
        except Exception as cause:  # noqa: BLE001 - the mirror must never take the supervisor down
            self.problem = f"cannot write {self._path}: {cause}"
            return False
        self.problem = None
        return True

    def _put_back(self, state: State | Callable[[], State]) -> None:
        with self._wake:
            if self._latest is None:
                self._latest = state


def render(state: State) -> bytes:
    """Write a state as JSON: fixed order of keys, one line per worker, a checksum at the end."""
    ordered = {key: state.get(key) for key in ORDER}
    ordered |= {key: state[key] for key in sorted(state) if key not in (*ORDER, _CHECKSUM)}
    workers = ordered["workers"]
    ordered["workers"] = workers if isinstance(workers, Mapping) else {}
    lines = [f"{_COMPACT.encode(key)}: {_field(key, value)}" for key, value in ordered.items()]
    lines.append(f'"{_CHECKSUM}": "{checksum(ordered)}"')
    return ("{\n  " + ",\n  ".join(lines) + "\n}\n").encode("ascii")


def checksum(state: State) -> str:
    """Name the content of a state, apart from the checksum itself."""
    rest = {key: value for key, value in state.items() if key != _CHECKSUM}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def previous(path: Path) -> Path:
    """Name the file that holds the state before the current one."""
    return path.with_name(f"{path.name}.prev")


def read_mirror(path: str | Path) -> tuple[dict[str, object] | None, str | None]:
    """Read the state, or the one before if it is damaged; the second answer says what is wrong."""
    path = Path(path)
    state, problem = _read(path)
    if problem is None:
        return state, None
    earlier, also = _read(previous(path))
    if also is None:
        return earlier, f"{problem} The one before it, {previous(path).name}, was used."
    return None, problem


def _read(path: Path) -> tuple[dict[str, object] | None, str | None]:
    try:
        state = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None, f"there is no {path}."
    except OSError as cause:
        return None, f"{path} cannot be read: {cause.strerror}."
    except (ValueError, RecursionError):
        return None, f"{path} is damaged: it is not JSON."
    if not isinstance(state, dict):
        return None, f"{path} is damaged: it holds no state."
    if state.get(_CHECKSUM) != checksum(state):
        return None, f"{path} is damaged or was edited: its checksum does not fit."
    return state, None


def _field(key: str, value: object) -> str:
    if key != "workers" or not value:
        return _COMPACT.encode(value)
    assert isinstance(value, Mapping)
    lines = [
        f"    {_COMPACT.encode(name)}: {_COMPACT.encode(value[name])}" for name in sorted(value)
    ]
    return "{\n" + ",\n".join(lines) + "\n  }"


def _keep_as_previous(path: Path) -> None:
    """Give the current file its second name; it is never missing under its first."""
    link = path.with_name(f".{path.name}.prev")
    with suppress(FileNotFoundError):
        link.unlink()
    with suppress(FileNotFoundError):
        os.link(path, link)
        link.rename(previous(path))
