"""How a worker tells the supervisor of itself: the notify socket, and a heartbeat file.

Nothing here waits or fails: a supervisor that is absent, busy or gone is no reason for a
worker to stop. Only wrong arguments raise. Without `NOTIFY_SOCKET` and `UPHOLD_BEAT_FILE`
every call does nothing, so the same program runs anywhere.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time

from uphold.sdk.words import ERROR, SUMMARY, checked_progress, checked_status, one_line

_BETWEEN = 0.05
"""Beats that say nothing new but progress are sent no closer than this, in seconds."""
_LAST_WORDS = 10
"""How often the reason of an end is tried to be said, before the end."""


class Line:
    """The line from this process to its supervisor."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = 0
        self._last: tuple[str, str | None] | None = None
        self._last_at = 0.0
        self.progress: float | None = None
        """The progress that was told last."""

    def say(self, *lines: str) -> bool:
        """Send these lines as one message; False if it should be tried again."""
        address = os.environ.get("NOTIFY_SOCKET", "")
        if address[:1] not in ("/", "@"):
            return True
        name = "\0" + address[1:] if address[0] == "@" else address
        data = "\n".join(lines).encode("utf-8", "replace")
        try:
            # A new one each time: a program may close or fork what it does not know of.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mouth:
                mouth.sendto(data, socket.MSG_DONTWAIT, name)
        except OSError:
            return False
        return True

    def beat(
        self, status: str, progress: float | None, summary: str | None, error: str | None
    ) -> bool:
        """Send and write one heartbeat; what is no news is left out if one went just before.

        False if it could not be sent, and should be tried again.
        """
        error = None if error is None else one_line(error, ERROR)
        with self._lock:
            self.progress = progress
            now = time.monotonic()  # noqa: TID251 - this part imports nothing of uphold.host
            if (status, error) == self._last and now - self._last_at < _BETWEEN:
                return True
            self._last_at = now
            self._seq += 1
            told: dict[str, object] = {
                "status": status,
                "progress": progress,
                "error": error,
                "seq": self._seq,
            }
            is_sent = self._send_beat(told, summary)
            self._last = (status, error) if is_sent else None
            _write_beat(told)
        return is_sent

    def fail(self, code: str, message: str) -> None:
        """Say why this worker ends, or does not begin."""
        fault = json.dumps({"code": code, "message": one_line(message, ERROR)}, ensure_ascii=False)
        for _ in range(_LAST_WORDS):
            if self.say(f"UPHOLD_ERROR={fault}"):
                return
            time.sleep(_BETWEEN)

    def _send_beat(self, told: dict[str, object], summary: str | None) -> bool:
        lines = ["WATCHDOG=1"]
        if summary is not None:
            summary = one_line(summary, SUMMARY)
            told = {**told, "summary": summary}
            lines.append(f"STATUS={summary}")
        lines.append(f"UPHOLD_BEAT={json.dumps(told, ensure_ascii=False)}")
        return self.say(*lines)


LINE = Line()
"""A process has one supervisor, and so one line."""


def beat(
    progress: float | None = None,
    status: str = "running",
    summary: str | None = None,
    error: str | None = None,
) -> None:
    """Tell the supervisor: I live, I have come this far, and this is how I do.

    Call it as often as work gets done. What has changed in status or error goes out at once;
    mere progress at most twenty times a second.
    """
    LINE.beat(checked_status(status), checked_progress(progress), summary, error)


def ready(status: str | None = None) -> bool:
    """Tell the supervisor that this program is set up; False if it could not be told just now."""
    if status is None:
        return LINE.say("READY=1")
    return LINE.say("READY=1", f"STATUS={one_line(status, SUMMARY)}")


def stopping() -> None:
    """Tell the supervisor that this program has begun to end."""
    LINE.say("STOPPING=1")


def _write_beat(told: dict[str, object]) -> None:
    """Replace the heartbeat file, if there is to be one; readers see the old or the new."""
    path = os.environ.get("UPHOLD_BEAT_FILE")
    if not path:
        return
    wall = time.gmtime(seconds := time.time())  # noqa: TID251 - as above
    utc = f"{time.strftime('%Y-%m-%dT%H:%M:%S', wall)}.{int(seconds % 1 * 1000):03d}Z"
    who = {"pid": os.getpid(), "hostname": os.uname().nodename[:64], "utc": utc}
    temp = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temp, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - text is enough
            json.dump({**who, **told}, file, ensure_ascii=False)
        os.replace(temp, path)  # noqa: PTH105
    except OSError:
        return
