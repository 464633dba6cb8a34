"""What may be said of a worker: the words for its status, and how long a text may be.

The supervisor cuts and refuses by the same measures; here a mistake is named where it is made.
"""

from __future__ import annotations

GOOD = ("healthy", "ok", "running", "idle", "busy")
BAD = ("degraded", "unhealthy", "error", "failed")
_MOST_PROGRESS = 1e15
SUMMARY = 255
ERROR = 500


def checked_status(status: str) -> str:
    """Give the status back, or name the ones there are."""
    if status in GOOD or status in BAD:
        return status
    words = ", ".join((*GOOD, *BAD))
    raise ValueError(f"a worker's status is one of {words}; it is not {status!r}.")


def checked_progress(progress: float | None) -> float | None:
    """Give the progress back as a plain number, or say what is wrong with it."""
    if progress is None:
        return None
    if isinstance(progress, int):
        number: float = int(progress)
    else:
        try:
            number = float(progress)
        except (TypeError, ValueError):
            raise TypeError(f"progress is a number; it is not {progress!r}.") from None
    if not 0 <= number <= _MOST_PROGRESS:  # false for NaN, too
        raise ValueError(f"progress is from 0 to {_MOST_PROGRESS:g}; it is not {progress!r}.")
    return number


def one_line(text: object, most: int) -> str:
    """Cut a text to one line of at most so many characters, and three times as many bytes."""
    line = " ".join(str(text).split())
    if len(line) > most:
        line = line[: most - 1] + "…"
    if not line.isprintable():
        line = "".join(each if each.isprintable() else "?" for each in line)
    return line.encode()[: 3 * most].decode("utf-8", "ignore")
