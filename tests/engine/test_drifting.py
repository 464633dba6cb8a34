from __future__ import annotations

import asyncio

import pytest

from uphold.core.specs import WorkerSpec
from uphold.engine.drifting import drifted
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
DB = WorkerSpec(name="db", command=("db",))


@pytest.mark.accepts("M-13")
def test_only_what_is_believed_to_run_and_is_not_seen_has_drifted():
    async def go():
        stage = await Stage(WEB, DB).start()
        observed = stage.supervisor.snapshot().observed
        assert list(drifted(observed, [stage.driver], 5.0)) == []
        stage.driver.drop("db")
        (fact,) = drifted(observed, [stage.driver], 5.0)
        assert (fact.slot, fact.generation, fact.exit.at) == ("db", 1, 5.0)
        assert (fact.exit.code, fact.exit.signal) == (None, None)
        await stage.supervisor.abandon()

    asyncio.run(go())
