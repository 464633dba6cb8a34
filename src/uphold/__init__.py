"""uphold keeps what you declared running, and can prove it."""

from uphold.version import __version__

__all__ = ["__version__"]
