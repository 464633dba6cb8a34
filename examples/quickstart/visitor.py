"""Visits the web server every second and says what it heard; patient when nobody answers."""

from __future__ import annotations

import http.client
import os
import signal
import sys
import time


def main() -> None:
    """Visit until told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    port = int(os.environ.get("SHOP_PORT", "8765"))
    name = os.environ.get("UPHOLD_SLOT", "visitor")
    while True:
        print(f"{name}: {answer_of(port)}", flush=True)
        time.sleep(1)


def answer_of(port: int) -> str:
    """Ask once."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        line.request("GET", "/")
        return line.getresponse().read().decode().strip()
    except (OSError, http.client.HTTPException) as cause:
        return f"nobody answers ({cause})"
    finally:
        line.close()


if __name__ == "__main__":
    main()
