"""Wishes: what somebody wants, with an author and a reason.

Every surface (command line, socket, configuration file, signals) produces these; nothing
else changes the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from uphold.core.specs import WorkerSpec
from uphold.core.times import utc_text

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The named workers a wish is about."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorkers(Workers):
    """They shall be up."""

    VERB: ClassVar[str] = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWorkers(Workers):
    """They shall be down."""

    VERB: ClassVar[str] = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartWorkers(Workers):
    """They shall be up in a new run."""

    VERB: ClassVar[str] = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseWorkers(Workers):
    """They are held down until resumed."""

    VERB: ClassVar[str] = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWorkers(Workers):
    """Their hold is lifted."""

    VERB: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnableWorkers(Workers):
    """They may run."""

    VERB: ClassVar[str] = "enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisableWorkers(Workers):
    """They may not run."""

    VERB: ClassVar[str] = "disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineWorkers(Workers):
    """They are withheld until a person approves."""

    VERB: ClassVar[str] = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveWorkers(Workers):
    """Their quarantine is lifted."""

    VERB: ClassVar[str] = "approve"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetWorkers(Workers):
    """Their failures and counters are cleared."""

    VERB: ClassVar[str] = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalWorkers(Workers):
    """Their main processes get a signal; the declaration stays as it is."""

    VERB: ClassVar[str] = "signal"
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WithholdWorkers(Workers):
    """They are kept down while something is done to what they run from."""

    VERB: ClassVar[str] = "withhold"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWorkers(Workers):
    """That is over: whoever else wants them up has them up again."""

    VERB: ClassVar[str] = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCode(Workers):
    """What these run from shall be brought up to date."""

    VERB: ClassVar[str] = "update"
    dependencies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBackCode(Workers):
    """The last commits of what these run from shall be undone."""

    VERB: ClassVar[str] = "rollback"
    commits: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishDeploy(Workers):
    """An update or rollback that a supervisor did not live to end shall be ended."""

    VERB: ClassVar[str] = "finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartSlowly(Workers):
    """They shall end, rest for a moment, and be up again, unless they are held."""

    VERB: ClassVar[str] = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnose(Workers):
    """A report about these shall be written."""

    VERB: ClassVar[str] = "diagnose"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDatabase(Workers):
    """The shared database shall be looked at, and a report written."""

    VERB: ClassVar[str] = "verify-db"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleWorker:
    """There shall be this many slots of it."""

    VERB: ClassVar[str] = "scale"
    name: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSupervisor:
    """No acting until resumed; workers are left alone."""

    VERB: ClassVar[str] = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSupervisor:
    """Acting goes on."""

    VERB: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declare:
    """This is now the whole set of declared workers."""

    VERB: ClassVar[str] = "declare"
    specs: tuple[WorkerSpec, ...]
    source: str = ""
    companions: tuple[WorkerSpec, ...] | None = None
    """Those of uphold's own that the file implies; None: those that are declared stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutDown:
    """The supervisor shall end: with its workers, or leaving them for the next one."""

    VERB: ClassVar[str] = "shutdown"
    keep_workers: bool = False
    hurry: bool = False
    """No grace for anybody: asked for twice."""


AboutWorkers = (
    StartWorkers
    | StopWorkers
    | RestartWorkers
    | PauseWorkers
    | ResumeWorkers
    | EnableWorkers
    | DisableWorkers
    | QuarantineWorkers
    | ApproveWorkers
    | ResetWorkers
    | SignalWorkers
    | WithholdWorkers
    | ReleaseWorkers
    | UpdateCode
    | RollBackCode
    | FinishDeploy
    | RestartSlowly
    | Diagnose
    | VerifyDatabase
)

Errand = UpdateCode | RollBackCode | FinishDeploy | RestartSlowly | Diagnose | VerifyDatabase
"""What is carried out step by step beside the plan; the declaration stays as it is."""

Wish = AboutWorkers | ScaleWorker | PauseSupervisor | ResumeSupervisor | Declare | ShutDown


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A wish with its author: what the intake takes, audits and declares."""

    id: str
    wish: Wish
    author: str
    origin: str
    """Which surface it came through: cli, socket, config, signal, supervisor, flag, deploy."""
    at: float
    """Wall time, for the record."""
    reason: str = ""
    label: str | None = None
    task_id: str | None = None
    """What whoever sent it calls it, and looks for in receipts and logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an order is not taken, what would help, and what the command line exits with."""

    code: str
    message: str
    remedy: str = ""
    exit_code: int = 4


def order_id(at: float, number: int) -> str:
    """Make the id of an order: its date and time, and four characters that tell it apart."""
    text = utc_text(at)
    tail = ""
    for _ in range(4):
        number, digit = divmod(number, len(_DIGITS))
        tail = _DIGITS[digit] + tail
    return f"job_{text[:10].replace('-', '')}_{text[11:19].replace(':', '')}_{tail}"
