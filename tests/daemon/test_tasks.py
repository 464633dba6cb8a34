from __future__ import annotations

import asyncio

import pytest

from uphold.daemon.tasks import JournalTasks
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch, JobRow


def row(number, task, state, **more):
    return JobRow(
        id=f"job_{number}",
        task_id=task,
        type="restart",
        target="web",
        label=None,
        state=state,
        created_at=100.0 + number,
        updated_at=100.0 + number,
        **more,
    )


@pytest.fixture
def path(tmp_path):
    async def write():
        owner = Owner(name="orion", hostname="here", pid=1, id="id-1")
        journal, _ = open_journal(tmp_path / "journal.db", boot_id="b", owner=owner, now=1.0)
        await journal.append(
            Batch(
                jobs=[
                    row(1, "task_1", "failed", started_at=101.0),
                    row(2, "task_1", "succeeded", started_at=102.0),
                    row(3, "task_2", "queued"),
                    row(4, None, "running", started_at=104.0),
                ]
            )
        )
        await journal.close()

    asyncio.run(write())
    return tmp_path / "journal.db"


@pytest.mark.accepts("P20")
def test_the_newest_job_of_a_task_is_found(path):
    found = JournalTasks(path).newest("task_1")
    assert (found["job_id"], found["state"]) == ("job_2", "succeeded")
    assert found["started_at"] is not None
    assert JournalTasks(path).newest("task_2")["started_at"] is None
    assert JournalTasks(path).newest("task_9") is None


def test_those_whose_flags_have_not_come_are_waited_for(path):
    assert JournalTasks(path).waiting() == {"task_2"}
