"""The recorder's own program: `python -I -m uphold.recorder HOME [--once]`.

The address of the shared database comes in `UPHOLD_STORE_URL`: everybody may read command lines.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_ONCE: Final = 9.0
"""Seconds that copying the rest may take; a little less than whoever waits for it waits."""


def main(words: list[str]) -> int:
    """Copy for ever, or once."""
    os.umask(0o077)
    url = os.environ.pop("UPHOLD_STORE_URL", "")
    homes = [word for word in words if not word.startswith("--")]
    if len(homes) != 1 or not url:
        sys.stderr.write("usage: UPHOLD_STORE_URL=… python -m uphold.recorder HOME [--once]\n")
        return 2
    from uphold.host.timing import PlainClock  # noqa: PLC0415 - after the words were understood
    from uphold.recorder.recording import record, record_once  # noqa: PLC0415

    if "--once" in words:
        return record_once(homes[0], url, PlainClock(), _ONCE)
    return record(homes[0], url, PlainClock())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
