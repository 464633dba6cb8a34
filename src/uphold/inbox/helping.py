"""The helper that touches a share, so that nobody else has to wait for it.

A program of its own: `python -I -S …/uphold/inbox/helping.py ROOT SETTINGS`, where SETTINGS is
JSON. It answers on descriptor 3 and ends when nobody is there any more. If the share hangs, so
does the helper, and is given up by whoever started it.
"""

from __future__ import annotations

import sys

REQUESTS = 3
"""The descriptor of the socket on which requests come and answers go."""


def main() -> int:
    """Serve one share; the folder of the package is found from where this file lies."""
    if len(sys.argv) != 3:
        sys.stderr.write("usage: python -I -S …/uphold/inbox/helping.py ROOT SETTINGS\n")
        return 2
    if "uphold" not in sys.modules:
        sys.path.append(__file__.rsplit("/uphold/inbox/", 1)[0])
    from uphold.inbox.answering import serve  # noqa: PLC0415 - importable only after the line above

    return serve(sys.argv[1], sys.argv[2], REQUESTS)


if __name__ == "__main__":
    sys.exit(main())
