"""Supervisors that share a database, as anybody sees them who reads it."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from recorder.documents import NOW, document, worker
from recorder.test_verbs import uphold as uphold  # noqa: PLC0414 - the fixture
from uphold.cli.times import now
from uphold.core.times import utc_text
from uphold.errors import StoreUnavailable
from uphold.recorder.connecting import Store
from uphold.recorder.heartbeats import introduce, write_rows
from uphold.recorder.migrating import migrate
from uphold.recorder.standing import cells, supervisors


def lives(store, name, at, *workers, **about):
    made = document(*workers, supervisor_id=f"id-{name}", name=name, **about)
    introduce(store, made, at)
    write_rows(store, made, None, at)


@pytest.fixture
def shared(url):
    with Store(url) as store:
        migrate(store, NOW)
        yield store


@pytest.mark.accepts("O-40", "E-33", "E-41", "B-76", "B-77")
def test_each_supervisor_is_judged_by_its_own_row(shared):
    lives(shared, "alive", NOW - 10, worker("a"), worker("b", state="failed"))
    lives(shared, "early", NOW + 60)
    lives(shared, "ended", NOW - 9_000, status="terminated")
    lives(
        shared, "failed", NOW - 9_000, status="failed", last_error={"code": "X", "message": "bug"}
    )
    lives(shared, "held", NOW - 1, status="paused")
    lives(shared, "quick", NOW - 10, heartbeat_every=3.0)
    lives(shared, "silent", NOW - 90)
    with shared.begin() as connection:
        insert = "INSERT INTO supervisors_t (id, name, status) VALUES ('n', 'new', 'spawning')"
        connection.execute(text(insert))
    found = {each.row.name: each for each in supervisors(shared, NOW)}
    assert {name: str(each.judgement.health) for name, each in found.items()} == {
        "alive": "healthy",
        "early": "healthy",
        "ended": "terminated",
        "failed": "failed",
        "held": "paused",
        "new": "unknown",
        "quick": "unresponsive",
        "silent": "unresponsive",
    }
    assert found["alive"].view()["workers"] == {"failed": 1, "running": 1}
    assert found["alive"].last_beat == utc_text(NOW - 10)
    assert found["alive"].judgement.age == 10.0
    assert (found["early"].judgement.age, found["early"].judgement.skewed) == (0.0, True)
    assert found["failed"].judgement.why == "bug"
    assert cells(found["alive"])[:6] == (
        "alive",
        "active",
        "healthy",
        utc_text(NOW - 10),
        "10s",
        "1 failed, 1 running",
    )


@pytest.mark.accepts("E-33", "O-40")
def test_one_that_is_sought_is_found_by_name_or_id_or_not_at_all(shared):
    lives(shared, "alive", NOW)
    assert [each.row.name for each in supervisors(shared, NOW, "alive")] == ["alive"]
    assert [each.row.name for each in supervisors(shared, NOW, "id-alive")] == ["alive"]
    (missing,) = supervisors(shared, NOW, "nobody")
    assert missing.view()["health"] == "not_found"
    assert cells(missing)[0] == "nobody"


def test_metrics_of_others_do_not_matter(shared):
    with shared.begin() as connection:
        insert = (
            "INSERT INTO supervisors_t (id, name, status, health_metrics)"
            " VALUES ('n', 'odd', 'active', '{\"workers\": 7}')"
        )
        connection.execute(text(insert))
    (odd,) = supervisors(shared, NOW)
    assert (odd.workers, cells(odd)[5]) == ({}, "-")


def test_a_frozen_server_is_an_error_in_time(server, url):
    with Store(url, patience=1.0) as store:
        migrate(store, NOW)
        with server.frozen(), pytest.raises(StoreUnavailable):
            supervisors(store, NOW)


@pytest.mark.accepts("O-40", "E-33")
def test_the_verb_lists_them_and_its_exit_code_tells_of_one(uphold, url):
    with Store(url) as store:
        migrate(store, NOW)
        lives(store, "orion", now(), worker("a"))
        lives(store, "lyra", now() - 500)
    code, out, _ = uphold(url, "db", "supervisors")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == "NAME STATUS HEALTH LAST BEAT AGE WORKERS WHY".split()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["lyra", "active", "unresponsive"],
        ["orion", "active", "healthy"],
    ]
    assert uphold(url, "db", "supervisors", "--name", "orion")[0] == 0
    assert uphold(url, "db", "supervisors", "--name", "lyra")[0] == 150
    code, out, _ = uphold(url, "db", "supervisors", "--name", "vega", "--json")
    assert code == 5
    assert json.loads(out)["supervisors"][0]["health"] == "not_found"
