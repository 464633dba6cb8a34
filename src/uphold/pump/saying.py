"""The pump's own lines, for whoever looks after it: straight to its standard error."""

from __future__ import annotations

import os
import time

from uphold.pump.clocks import wall


def say(text: str) -> None:
    """Write one line with the time (RFC 3339, UTC); if even that is impossible, go on."""
    seconds, micros = divmod(wall(), 1_000_000)
    at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{micros // 1000:03d}Z"
    try:
        os.write(2, f"{at} pump: {text}\n".encode())
    except OSError:
        return
