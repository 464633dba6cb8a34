"""Where a real runtime would ask a language model. These agents only repeat what they are told.

"fail" fails, "slow 3" takes three seconds, and "die" takes the whole worker with it: enough to
see what the queue and uphold do about it.
"""

from __future__ import annotations

import asyncio
import os


async def answer(agent: str, text: str) -> str:
    """Let an agent answer."""
    word, _, rest = text.partition(" ")
    if word == "fail":
        raise RuntimeError(f"{agent} cannot do that")
    if word == "die":
        os.abort()
    if word == "slow":
        await asyncio.sleep(float(rest or 1))
    return f"{agent} says: {text}"
