"""Asking simulated processes how they are: those that are frozen say nothing, for as long as one waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from uphold.core.notices import MISSING, Refused
from uphold.core.specs import Probe
from uphold.core.vitals import Answer, Outcome


class SimulatedProber:
    """Satisfies `uphold.ports.probes.Prober`."""

    def __init__(self, machine, rng):
        self._machine = machine
        self._rng = rng

    async def ask(self, probe, subject):
        process, now = self._find(subject), self._machine.loop.time()
        if process is None:
            return Answer(Outcome.REFUTED, "nobody is there")
        if now >= process.freezes:
            await asyncio.sleep(probe.timeout)
            return Answer(Outcome.MISSED, "no answer")
        await asyncio.sleep(self._rng.uniform(0.0, probe.timeout / 2))
        if now < process.ready:
            return Answer(Outcome.MISSED, "not yet")
        return Answer(Outcome.PASSED, "well")

    async def read_beat(self, path, subject):
        return Refused(MISSING, f"there is no {path}")

    def _find(self, subject):
        main = self._machine.main(subject.slot)
        return main if main is not None and main.identity.nonce == subject.nonce else None


def watched(spec, rng):
    """Have a worker asked whether it lives, and perhaps first whether it is ready."""
    live = Probe(
        way="tcp",
        target="there",
        every=rng.choice((1.0, 5.0, 10.0)),
        timeout=rng.choice((0.5, 1.0)),
        failures=rng.choice((1, 3)),
    )
    ready = Probe(way="tcp", target="there", every=1.0) if rng.random() < 0.5 else None
    return replace(spec, live=live, ready=ready)


def known_within(probe):
    """Say after how many seconds a process that froze must have been found out."""
    return (probe.every + probe.timeout) * (probe.failures + 1) + 10.0
