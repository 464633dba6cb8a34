"""Start the pump of one home: `python -I -S …/uphold/pump/__main__.py HOME`.

Without `site` nothing finds `uphold`, so the folder that holds the package is added here, last,
where it cannot hide a module of the standard library.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the pump until it is told to end or nobody needs it."""
    if "uphold" not in sys.modules:
        sys.path.append(__file__.rsplit("/uphold/pump/", 1)[0])
    from uphold.pump.running import run  # noqa: PLC0415 - importable only after the line above

    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -I -S …/uphold/pump/__main__.py HOME\n")
        return 2
    return run(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
