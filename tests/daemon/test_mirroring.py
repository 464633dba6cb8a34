"""What is news for runtime.json, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.core.statuses import Fault, SlotStatus, SupervisorStatus
from uphold.daemon.mirroring import alike
from uphold.engine.snapshots import Snapshot

SHOWN = Snapshot(version=7)


def test_a_look_that_found_nothing_new_is_no_news():
    looked = replace(SHOWN, version=8, last_reconcile=12.0, reconcile_count=3, turned=2)
    assert alike(looked, SHOWN)


@pytest.mark.parametrize(
    "changed",
    [
        replace(SHOWN, observed=SHOWN.observed.with_changes((SlotStatus(slot="web"),), ())),
        replace(SHOWN, declaration=replace(SHOWN.declaration, paused=True)),
        replace(SHOWN, status=SupervisorStatus.PAUSED),
        replace(SHOWN, last_error=Fault(code="UPH_X", message="it broke")),
    ],
)
def test_whatever_runtime_json_shows_is(changed):
    assert not alike(changed, SHOWN)
