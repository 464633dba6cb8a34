"""The rows of workers and supervisors in a shared database, on real servers."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select, text

from recorder.documents import NOW, document, worker
from uphold.core.times import utc_text
from uphold.errors import StoreUnavailable
from uphold.recorder.connecting import Store
from uphold.recorder.heartbeats import introduce, metrics_in, write_rows
from uphold.recorder.migrating import migrate
from uphold.recorder.schema import SUPERVISORS, WORKERS


@pytest.fixture
def store(url):
    with Store(url, patience=10.0) as opened:
        migrate(opened, NOW)
        yield opened


def rows(store, table=WORKERS):
    key = next(iter(table.primary_key))
    with store.begin() as connection:
        return {row[key.name]: dict(row) for row in connection.execute(select(table)).mappings()}


def run(store, statement):
    with store.begin() as connection:
        connection.execute(text(statement))


@pytest.mark.accepts("C-129", "C-130", "C-131", "C-T33")
def test_a_row_is_inserted_when_absent_and_updated_when_present(store):
    first = write_rows(store, document(worker("web", team="front")), None, NOW)
    assert first == (2, 0, ())
    found = rows(store)
    assert list(found) == ["supervisor_orion", "web"]
    web = found["web"]
    assert json.loads(web.pop("details"))["admin"] == "enabled"
    assert web == {
        "worker_id": "web",
        "last_heartbeat_at": utc_text(NOW),
        "pid": 4250,
        "hostname": "node-1",
        "status": "running",
        "poll_seconds": None,
        "status_summary": "up since 2026-11-17 03:39:48 UTC",
        "supervisor_id": "s-1",
        "kind": "process",
        "team": "front",
        "state": "running",
        "health": "healthy",
        "generation": 3,
        "restarts": 2,
    }
    own = found["supervisor_orion"]
    assert (own["kind"], own["status"], own["pid"]) == ("supervisor", "active", 4242)
    assert (own["status_summary"], own["poll_seconds"]) == ("1 running", 30.0)
    assert own["last_heartbeat_at"] == utc_text(NOW)
    write_rows(store, document(worker("web", state="failed", why="gave up")), None, NOW + 30)
    found = rows(store)
    assert found["web"]["status"] == "error"
    assert found["web"]["status_summary"] == "gave up"
    assert found["supervisor_orion"]["status_summary"] == "1 failed: web"
    assert found["supervisor_orion"]["last_heartbeat_at"] == utc_text(NOW + 30)


@pytest.mark.accepts("B-78")
def test_who_beats_is_known_by_its_beats_and_a_remote_one_by_nothing_else(store):
    beat = utc_text(NOW - 100)
    made = document(
        worker("beats", last_heartbeat_at=beat),
        worker("far", kind="remote", pid=None),
        worker("near", state="stopped", last_health_at=beat),
    )
    write_rows(store, made, None, NOW)
    found = rows(store)
    assert found["beats"]["last_heartbeat_at"] == beat
    assert found["far"]["last_heartbeat_at"] is None
    assert found["far"]["hostname"] is None
    assert found["near"]["last_heartbeat_at"] == beat


def test_only_touched_workers_are_written_and_the_supervisor_always(store):
    write_rows(store, document(worker("a"), worker("b")), None, NOW)
    changed = document(worker("a", state="failed"), worker("b", state="failed"))
    assert write_rows(store, changed, {"a"}, NOW + 1).rows == 2
    found = rows(store)
    assert (found["a"]["state"], found["b"]["state"]) == ("failed", "running")
    assert found["supervisor_orion"]["status_summary"] == "2 failed: a, b"
    assert write_rows(store, changed, set(), NOW + 2).rows == 1


def test_the_rows_of_workers_that_are_gone_go_and_only_ours(store):
    slots = [worker("web"), worker("web", slot="web.2"), worker("webby"), worker("db")]
    write_rows(store, document(*slots), None, NOW)
    write_rows(store, document(worker("far"), supervisor_id="s-2", name="lyra"), None, NOW)
    scaled = document(worker("web"), worker("webby"), worker("db"))
    assert write_rows(store, scaled, {"web"}, NOW).removed == 1
    assert write_rows(store, document(worker("webby"), worker("db")), {"web"}, NOW).removed == 1
    assert set(rows(store)) == {"supervisor_orion", "supervisor_lyra", "webby", "db", "far"}
    assert write_rows(store, document(worker("db")), None, NOW).removed == 1
    many = {f"w{n}" for n in range(60)}
    assert write_rows(store, document(worker("x")), many, NOW).removed == 1
    assert set(rows(store)) == {"supervisor_orion", "supervisor_lyra", "far"}


def test_the_last_words_of_a_supervisor_remove_nothing(store):
    write_rows(store, document(worker("web"), worker("off", state="stopped")), None, NOW)
    last = document(worker("web", state="stopped"), status="terminated")
    assert write_rows(store, last, None, NOW).removed == 0
    assert set(rows(store)) == {"supervisor_orion", "web", "off"}


def test_a_supervisor_that_was_renamed_leaves_no_second_row(store):
    write_rows(store, document(worker("a")), None, NOW)
    write_rows(store, document(worker("a"), name="vega"), None, NOW)
    assert set(rows(store)) == {"supervisor_vega", "a"}


def test_companions_have_no_rows_of_their_own(store):
    made = document(worker("@pump"), worker("@recorder"), worker("a"))
    write_rows(store, made, {"@pump", "a"}, NOW)
    write_rows(
        store,
        {
            **made,
            "supervisor": {**made["supervisor"], "id": "s-2", "name": "lyra"},
            "workers": made["workers"][:2],
        },
        None,
        NOW,
    )
    assert set(rows(store)) == {"supervisor_orion", "supervisor_lyra", "a"}


@pytest.mark.accepts("B-79")
def test_many_errors_make_long_summaries_and_the_row_is_written(store):
    long = "could not reach 数据库: " + "ошибка 🚒 " * 2_000
    made = document(
        *(worker(f"worker-{n:04}-{'x' * 40}", state="failed", why=long) for n in range(120)),
        last_error={"code": "UPH_X", "message": long},
    )
    write_rows(store, made, None, NOW)
    found = rows(store)
    assert len(found) == 121
    for row in found.values():
        assert 200 < len(row["status_summary"]) <= 255
        assert row["status_summary"].endswith("…")
    one = found["worker-0007-" + "x" * 40]
    assert json.loads(one["details"])["why"].startswith(long[:9_000])
    assert len(json.loads(found["supervisor_orion"]["details"])["troubled"]) == 120


@pytest.mark.parametrize(
    "why",
    [
        "naïve café",
        "工人 🧑‍🚒 läuft",
        "a\x00b\nc",
        "half \udce9 of a name",
        "'; DROP TABLE x; --",
        "100 % :x \\",
    ],
)
def test_words_of_any_language_and_no_language_are_written(store, why):
    write_rows(
        store, document(worker("web", why=why, last_error={"code": why, "message": why})), None, NOW
    )
    row = rows(store)["web"]
    assert row["status_summary"]
    assert "\x00" not in row["status_summary"]
    assert json.loads(row["details"])["why"]


def test_a_thousand_workers_are_written_in_one_go(store):
    workers = [worker(f"w{n:04}") for n in range(1_000)]
    assert write_rows(store, document(*workers), None, NOW).rows == 1_001
    assert write_rows(store, document(*workers), None, NOW + 30).rows == 1_001
    assert len(rows(store)) == 1_001
    assert write_rows(store, document(), None, NOW + 60).removed == 1_000
    assert list(rows(store)) == ["supervisor_orion"]


def other(*workers, **about):
    return document(*workers, supervisor_id="s-2", name="lyra", **about)


def test_a_row_of_another_live_supervisor_is_left_alone_and_reported(store):
    introduce(store, other(), NOW)
    write_rows(store, other(worker("web", why="theirs"), worker("x")), None, NOW)
    written = write_rows(store, document(worker("web"), worker("y")), None, NOW + 89)
    (clash,) = written.clashes
    assert (clash.worker_id, clash.owner_id, clash.owner_name) == ("web", "s-2", "lyra")
    assert clash.message == "the row 'web' belongs to the supervisor 'lyra' (s-2), which lives."
    assert "rename the worker" in clash.remedy
    found = rows(store)
    assert (found["web"]["supervisor_id"], found["web"]["status_summary"]) == ("s-2", "theirs")
    assert {name for name, row in found.items() if row["supervisor_id"] == "s-1"} == {
        "supervisor_orion",
        "y",
    }


@pytest.mark.parametrize("ended", [None, "terminated", "failed"])
def test_a_row_is_taken_over_from_one_that_is_silent_for_three_beats_or_has_ended(store, ended):
    introduce(store, other(), NOW)
    introduce(store, document(), NOW)
    write_rows(store, other(worker("web"), worker("x")), None, NOW)
    if ended:
        write_rows(store, other(worker("web"), worker("x"), status=ended), None, NOW + 1)
    later = NOW + (2 if ended else 90)
    assert write_rows(store, document(worker("web", why="ours")), None, later).clashes == ()
    found = rows(store)
    assert (found["web"]["supervisor_id"], found["web"]["status_summary"]) == ("s-1", "ours")
    assert found["x"]["supervisor_id"] == "s-2", "nobody asked for that one"
    revived = write_rows(store, other(worker("web"), worker("x")), None, later + 1)
    assert [clash.worker_id for clash in revived.clashes] == ["web"]
    assert rows(store)["web"]["status_summary"] == "ours"


def test_the_others_own_interval_counts(store):
    slow = other(worker("web"), heartbeat_every=300.0)
    introduce(store, slow, NOW)
    write_rows(store, slow, None, NOW)
    assert write_rows(store, document(worker("web")), None, NOW + 800).clashes
    assert not write_rows(store, document(worker("web")), None, NOW + 900).clashes


def test_one_without_a_row_of_its_own_is_judged_by_what_it_left(store):
    idle = worker("web", state="stopped", last_health_at=utc_text(NOW - 5_000))
    write_rows(store, other(idle), None, NOW)
    written = write_rows(store, document(worker("web")), None, NOW + 89)
    assert written.clashes[0].message == "the row 'web' belongs to the supervisor s-2, which lives."
    assert not write_rows(store, document(worker("web")), None, NOW + 90).clashes


def test_two_supervisors_of_one_name_are_told_to_have_two(store):
    introduce(store, document(), NOW)
    write_rows(store, document(worker("a")), None, NOW)
    twin = document(worker("b"), supervisor_id="s-2")
    introduce(store, twin, NOW)
    (clash,) = write_rows(store, twin, None, NOW).clashes
    assert clash.worker_id == "supervisor_orion"
    assert "[supervisor] name" in clash.remedy
    assert rows(store)["b"]["supervisor_id"] == "s-2"


def test_a_row_that_belongs_to_nobody_becomes_ours(store):
    run(store, "INSERT INTO workers_t (worker_id, status) VALUES ('web', 'ok')")
    write_rows(store, document(worker("web")), None, NOW)
    assert rows(store)["web"]["supervisor_id"] == "s-1"


@pytest.mark.accepts("O-26", "O-27", "O-32")
def test_a_supervisors_row_is_made_once_and_follows_it(store):
    introduce(store, document(worker("a")), NOW)
    again = document(worker("a"), status="paused")
    introduce(store, again, NOW + 5)
    row = rows(store, SUPERVISORS)["s-1"]
    assert (row["name"], row["status"], row["created_at"]) == ("orion", "active", utc_text(NOW))
    for later, status in enumerate(("spawning", "active", "paused", "active"), 10):
        made = document(worker("a"), worker("b", state="backoff"), status=status)
        write_rows(store, {**made, "store": {"pending": 7}}, set(), NOW + later)
        row = rows(store, SUPERVISORS)["s-1"]
        assert row["status"] == status
        assert row["last_heartbeat"] == row["updated_at"] == utc_text(NOW + later)
    assert row["config"] == "/srv/app/uphold.toml"
    assert metrics_in(row["health_metrics"]) == {
        "heartbeat_every": 30.0,
        "loop_lag": 0.004,
        "workers": {"backoff": 1, "running": 1},
        "pending": 7,
    }


@pytest.mark.accepts("O-31", "E-33")
@pytest.mark.parametrize("status", ["terminated", "failed"])
def test_who_has_ended_beats_no_more_and_a_failure_says_why(store, status):
    introduce(store, document(), NOW)
    write_rows(store, document(worker("a")), None, NOW)
    error = {"code": "UPH_SUPERVISOR_BROKEN", "message": "a bug"} if status == "failed" else None
    write_rows(store, document(worker("a"), status=status, last_error=error), None, NOW + 30)
    row = rows(store, SUPERVISORS)["s-1"]
    assert (row["status"], row["last_heartbeat"]) == (status, utc_text(NOW))
    assert metrics_in(row["health_metrics"]).get("error") == (error and "a bug")
    own = rows(store)["supervisor_orion"]
    assert (own["status"], own["state"], own["pid"]) == (status, "stopped", None)


@pytest.mark.accepts("O-28", "O-33")
def test_a_missing_row_is_tolerated_and_nothing_is_written(store):
    write_rows(store, document(worker("a")), None, NOW)
    assert rows(store, SUPERVISORS) == {}
    introduce(store, document(), NOW)
    run(store, "DELETE FROM supervisors_t")
    assert write_rows(store, document(worker("a"), status="paused"), None, NOW).rows == 2
    assert rows(store, SUPERVISORS) == {}


def test_columns_of_others_are_left_as_they_are(store):
    run(store, "ALTER TABLE workers_t ADD COLUMN console_note VARCHAR(40)")
    run(store, "ALTER TABLE supervisors_t ADD COLUMN site VARCHAR(40)")
    introduce(store, document(), NOW)
    write_rows(store, document(worker("web")), None, NOW)
    run(store, "UPDATE workers_t SET console_note = 'call Ann' WHERE worker_id = 'web'")
    run(store, "UPDATE supervisors_t SET site = 'hall 3', description = 'press line'")
    write_rows(store, document(worker("web")), None, NOW + 30)
    with store.begin() as connection:
        noted = connection.execute(text("SELECT worker_id, console_note FROM workers_t"))
        assert {row[0]: row[1] for row in noted} == {"supervisor_orion": None, "web": "call Ann"}
        kept = connection.execute(text("SELECT site, description FROM supervisors_t"))
        assert kept.one() == ("hall 3", "press line")


@pytest.mark.accepts("C-132", "O-29")
def test_a_frozen_server_is_an_error_in_time_and_afterwards_nothing_is_missing(server, url):
    with Store(url, patience=1.0) as store:
        migrate(store, NOW)
        introduce(store, document(), NOW)
        write_rows(store, document(worker("web")), None, NOW)
        with server.frozen(), pytest.raises(StoreUnavailable) as caught:
            write_rows(store, document(worker("web", state="failed")), None, NOW + 30)
        assert caught.value.code == "UPH_STORE_TIMEOUT"
        assert "canary" not in caught.value.message
    with Store(url) as store:
        written = write_rows(store, document(worker("web", state="failed")), None, NOW + 60)
        assert written == (2, 0, ())
        assert rows(store)["web"]["state"] == "failed"
        assert rows(store, SUPERVISORS)["s-1"]["last_heartbeat"] == utc_text(NOW + 60)


@pytest.mark.accepts("C-132")
def test_all_or_nothing_is_written(store):
    workers = [worker(f"w{n:03}") for n in range(300)]
    introduce(store, document(), NOW)
    write_rows(store, document(*workers), None, NOW)
    failed = [worker(f"w{n:03}", state="failed") for n in range(299)]
    broken = document(*failed, worker("w299", generation=2**70))  # no column takes that
    with pytest.raises(StoreUnavailable):
        write_rows(store, broken, None, NOW + 30)
    assert {row["state"] for row in rows(store).values()} == {"running"}
    assert rows(store, SUPERVISORS)["s-1"]["last_heartbeat"] == utc_text(NOW)


def test_metrics_that_somebody_else_wrote_tell_nothing():
    assert metrics_in(None) == {}
    assert metrics_in("") == {}
    assert metrics_in("fine") == {}
    assert metrics_in("[1]") == {}
