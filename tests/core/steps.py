"""Actions as scripts name them: the reason may be left out where it does not matter."""

from __future__ import annotations

from uphold.core.actions import (
    Amend,
    Forget,
    GiveUp,
    Kill,
    Pardon,
    Rest,
    Start,
    Stop,
    Wait,
)
from uphold.core.specs import WorkerSpec


def start(spec: WorkerSpec, slot: str = "", why: str = "") -> Start:
    return Start(slot=slot or spec.name, spec=spec, why=why)


def start_again(spec: WorkerSpec, slot: str = "", why: str = "") -> Start:
    """Start it without anybody having asked."""
    return Start(slot=slot or spec.name, spec=spec, why=why, automatic=True)


def stop(slot: str, why: str = "") -> Stop:
    return Stop(slot=slot, why=why)


def stop_for_now(slot: str, why: str = "") -> Stop:
    """Stop it because the supervisor ends: its failures go on counting."""
    return Stop(slot=slot, why=why, forgives=False)


def kill(slot: str, why: str = "") -> Kill:
    return Kill(slot=slot, why=why)


def wait(slot: str, why: str = "") -> Wait:
    return Wait(slot=slot, why=why)


def wait_afresh(slot: str, why: str = "") -> Wait:
    """Wait with earlier failures forgiven."""
    return Wait(slot=slot, why=why, afresh=True)


def give_up(slot: str, why: str = "") -> GiveUp:
    return GiveUp(slot=slot, why=why)


def rest(slot: str, why: str = "") -> Rest:
    return Rest(slot=slot, why=why)


def forget(slot: str, why: str = "") -> Forget:
    return Forget(slot=slot, why=why)


def pardon(slot: str, why: str = "") -> Pardon:
    return Pardon(slot=slot, why=why)


def amend(spec: WorkerSpec, slot: str = "", why: str = "") -> Amend:
    return Amend(slot=slot or spec.name, spec=spec, why=why)
