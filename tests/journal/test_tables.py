from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import news

PUBLIC = {
    "supervisors_t": (
        "id name description status config parent_id hierarchy_level created_at updated_at"
        " last_heartbeat health_metrics"
    ),
    "workers_t": (
        "worker_id last_heartbeat_at pid hostname status poll_seconds status_summary"
        " supervisor_id kind team state health generation restarts"
    ),
    "jobs_t": (
        "job_id task_id job_type target_ref label state attempts claimed_by_worker created_at"
        " updated_at started_at finished_at last_error log_path result_path rev"
    ),
    "audit_log_t": (
        "audit_id actor action target_type target_id label created_at details_json prev_hash hash"
    ),
    "events_t": "seq id type entity_type entity_id timestamp severity payload cause",
    "schema_migrations_t": "version name applied_at additive",
}


@pytest.fixture
def connection(written):
    with closing(sqlite3.connect(written(Batch(events=[news(1)])))) as connection:
        yield connection


@pytest.mark.parametrize("table", PUBLIC)
def test_the_tables_have_exactly_the_public_columns(connection, table):
    there = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    assert there == PUBLIC[table].split()


def test_the_view_calls_the_type_of_an_event_by_both_names(connection):
    row = connection.execute("SELECT type, event_type FROM events_v").fetchone()
    assert row == ("worker.connected", "worker.connected")
