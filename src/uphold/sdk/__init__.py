"""What a supervised Python program imports; people write `import uphold` and use it from there.

Imports nothing of the rest of uphold, and each name only when it is touched: a script that
says `uphold.beat()` does not pay for asyncio.
"""

TYPE_CHECKING = False  # type checkers take this for true; importing `typing` would cost more
if TYPE_CHECKING:
    from uphold.sdk.asking import BlockingStopping, stop_requested
    from uphold.sdk.awaiting import Stopping
    from uphold.sdk.healths import Health
    from uphold.sdk.telling import beat, ready, stopping
    from uphold.sdk.workers import Worker

__all__ = [
    "BlockingStopping",
    "Health",
    "Stopping",
    "Worker",
    "beat",
    "ready",
    "stop_requested",
    "stopping",
]

_HOMES = {
    "BlockingStopping": "asking",
    "Health": "healths",
    "Stopping": "awaiting",
    "Worker": "workers",
    "beat": "telling",
    "ready": "telling",
    "stop_requested": "asking",
    "stopping": "telling",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'uphold.sdk' has no attribute {name!r}")
    value = getattr(__import__(f"uphold.sdk.{home}", fromlist=(name,)), name)
    globals()[name] = value
    return value
