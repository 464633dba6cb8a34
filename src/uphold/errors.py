"""The whole exception tree, the error codes and the exit codes.

Problems in what people write are returned as lists of `Problem`; exceptions are for
what the caller could not prevent.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NamedTuple
else:
    from uphold.tuples import NamedTuple


EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_PERMITTED: Final = 4
EXIT_NO_SUCH: Final = 5
EXIT_CONFIG: Final = 6
EXIT_NOT_RUNNING: Final = 7
EXIT_ALREADY_RUNNING: Final = 100

STATUS_STALE: Final = 1
STATUS_NOT_RUNNING: Final = 3
STATUS_CANNOT_TELL: Final = 4
STATUS_DEGRADED: Final = 150
STATUS_STARTING: Final = 151


class Problem(NamedTuple):
    """One thing wrong with what somebody wrote: where it stands and what to do about it."""

    at: str
    text: str

    def __str__(self) -> str:
        return f"{self.at}: {self.text}" if self.at else self.text


class UpholdError(Exception):
    """Anything uphold reports on purpose: a stable code, a sentence, a remedy and an exit code."""

    code = "UPH_FAILED"
    exit_code = EXIT_FAILED

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        remedy: str = "",
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if code is not None:
            self.code = code
        if exit_code is not None:
            self.exit_code = exit_code


class ConfigInvalid(UpholdError):  # noqa: N818 - a state of affairs, not an "error" by name
    """The configuration is missing or wrong; every problem is listed and nothing was touched."""

    code = "UPH_CONFIG_INVALID"
    exit_code = EXIT_CONFIG

    def __init__(self, problems: list[Problem], *, code: str | None = None) -> None:
        count = len(problems)
        lines = "\n".join(f"  {problem}" for problem in problems)
        found = "1 problem" if count == 1 else f"{count} problems"
        super().__init__(f"the configuration has {found}:\n{lines}", code=code)
        self.problems = problems


class NoSuchWorker(UpholdError):  # noqa: N818
    """A name was given that nothing declared carries."""

    code = "UPH_WORKER_UNKNOWN"
    exit_code = EXIT_NO_SUCH


class NotPermitted(UpholdError):  # noqa: N818
    """The order is understood and refused; the message names what would lift the refusal."""

    code = "UPH_ORDER_REFUSED"
    exit_code = EXIT_NOT_PERMITTED


class NotRunning(UpholdError):  # noqa: N818
    """No supervisor owns this home."""

    code = "UPH_SUPERVISOR_NOT_RUNNING"
    exit_code = EXIT_NOT_RUNNING


class AlreadyRunning(UpholdError):  # noqa: N818
    """Another supervisor owns this home."""

    code = "UPH_SUPERVISOR_ALREADY_RUNNING"
    exit_code = EXIT_ALREADY_RUNNING


class StoreUnavailable(UpholdError):  # noqa: N818
    """The journal cannot be read or written just now."""

    code = "UPH_JOURNAL_UNAVAILABLE"


class HostFailure(UpholdError):  # noqa: N818
    """The machine said no: a process, a file or a descriptor could not be had."""

    code = "UPH_HOST_FAILURE"


class Malformed(UpholdError):  # noqa: N818
    """A value cannot become bytes, or bytes cannot become a value; the message names the field."""

    code = "UPH_WIRE_MALFORMED"
