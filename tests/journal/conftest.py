from __future__ import annotations

import asyncio

import pytest

from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.testing.contracts.journals import BOOT

NOW = 1770301815.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def owner():
    return Owner(name="orion", hostname="host-1", pid=4242, id="supervisor-1")


@pytest.fixture
def opened(path, owner):
    """Open the journal at `path`; what was rescued must be asked for."""

    def open_it(*, boot_id=BOOT, where=None, keep=None):
        journal, rescued = open_journal(
            where or path, boot_id=boot_id, owner=owner, now=NOW, keep=keep
        )
        assert rescued is None
        return journal

    return open_it


@pytest.fixture
def written(opened):
    """Write batches, close the journal, and give its path."""

    def write(*batches, boot_id=BOOT, keep=None):
        async def script():
            journal = opened(boot_id=boot_id, keep=keep)
            for batch in batches:
                await journal.append(batch)
            await journal.close()
            return journal.path

        return asyncio.run(script())

    return write
