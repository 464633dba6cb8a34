"""Put a request into the inbox: `python -m agent_runtime.send writer "tell me a story"`."""

from __future__ import annotations

import sys

from agent_runtime import places


def main() -> int:
    """Send what the command line says."""
    if len(sys.argv) != 3:
        print("usage: python -m agent_runtime.send AGENT TEXT")
        return 2
    agent, text = sys.argv[1:]
    print(places.inbox().put({"agent": agent, "text": text, "channel": "cli"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
