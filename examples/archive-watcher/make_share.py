"""Makes the folders of a share, as an administrator would once: uphold never makes them."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDERS = (
    *("00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS"),
    *("Worker_Inbox", "Worker_Outbox"),
)


def main() -> int:
    """Make them below the folder that is named, or below ./share."""
    top = Path(sys.argv[1] if len(sys.argv) > 1 else "share")
    for name in FOLDERS:
        (top / name).mkdir(parents=True, exist_ok=True)
    print(f"{top} is a share now")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
