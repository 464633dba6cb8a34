"""uphold keeps what you declared running, and can prove it.

What supervised Python programs use (`uphold.Worker`, `uphold.beat()`, …) is fetched from
`uphold.sdk` when it is touched, so that importing uphold costs next to nothing.
"""

from uphold.version import __version__

TYPE_CHECKING = False  # type checkers take this for true; importing `typing` would cost more
if TYPE_CHECKING:
    from uphold.sdk import (
        BlockingStopping,
        Health,
        Stopping,
        Worker,
        beat,
        ready,
        stop_requested,
        stopping,
    )

__all__ = [
    "BlockingStopping",
    "Health",
    "Stopping",
    "Worker",
    "__version__",
    "beat",
    "ready",
    "stop_requested",
    "stopping",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'uphold' has no attribute {name!r}")
    from uphold import sdk  # noqa: PLC0415 - only for those who use it

    return getattr(sdk, name)
