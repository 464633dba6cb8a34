"""Two more things that a flag can ask for: to stop a worker for good, and to change its slots."""

from __future__ import annotations

from uphold.core.orders import Refusal, ScaleWorker, StopWorkers
from uphold.plugins import FlagContent, Handler, Urgency

MOST_SLOTS = 8


def _slots(value: object) -> str:
    """Look at a parameter: an empty text if it is right, else what it must be."""
    if type(value) is int and 0 <= value <= MOST_SLOTS:
        return ""
    return f"a whole number from 0 to {MOST_SLOTS}"


def _stop(flag: FlagContent) -> StopWorkers:
    return StopWorkers(names=(flag.worker_id,))


def _resize(flag: FlagContent) -> ScaleWorker | Refusal:
    if "slots" not in flag.params:
        return Refusal(code="ORION_SLOTS_MISSING", message="resize needs the parameter slots.")
    return ScaleWorker(name=flag.worker_id, replicas=flag.params["slots"])


STOP_WATCHER = Handler("stop_watcher", Urgency.OPERATIONAL, 40, aliases=("stop",), wish=_stop)
RESIZE = Handler("resize", Urgency.OPERATIONAL, 41, params={"slots": _slots}, wish=_resize)
