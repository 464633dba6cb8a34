"""Carries plates until it stumbles, some seconds later; then it ends with exit code 1."""

from __future__ import annotations

import random
import signal
import sys
import time


def main() -> None:
    """Carry, and stumble."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for plate in range(1, random.randint(8, 20)):
        print(f"carrying plate {plate}", flush=True)
        time.sleep(1)
    print("oh no, all the plates!", file=sys.stderr, flush=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
