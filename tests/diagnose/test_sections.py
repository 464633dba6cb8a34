"""What each section of a report says."""

from __future__ import annotations

import pytest

from uphold.core.notices import Beat
from uphold.diagnose import sections

ROW = {
    "name": "watcher",
    "pid": 4711,
    "rss_bytes": 20_000_000,
    "cpu_percent": 1.5,
    "uptime": 60.0,
    "state": "running",
}


@pytest.mark.accepts("C-084", "B-68")
def test_the_process_with_memory_processor_and_uptime():
    told = sections.process(ROW)
    assert told["running"] is True
    assert (told["pid"], told["memory_bytes"]) == (4711, 20_000_000)
    assert (told["cpu_percent"], told["uptime_seconds"]) == (1.5, 60.0)
    assert sections.process({"pid": None, "state": "stopped"})["running"] is False


@pytest.mark.accepts("C-085")
@pytest.mark.parametrize(
    ("beat", "age", "fresh", "healthy"),
    [
        (Beat(status="idle"), 10.0, True, True),
        (Beat(status="idle"), 299.9, True, True),
        (Beat(status="idle"), 300.0, False, False),
        (Beat(status="broken"), 10.0, True, False),
        (Beat(status="ok", error="no disk"), 10.0, True, False),
        (None, None, False, False),
    ],
)
def test_the_heartbeat_is_fresh_healthy_and_paused(beat, age, fresh, healthy):
    told = sections.heartbeat(beat, age, paused=True)
    assert (told["fresh"], told["healthy"], told["paused"]) == (fresh, healthy, True)


@pytest.mark.accepts("C-086")
def test_the_database_with_the_servers_time_or_what_is_wrong():
    good = {
        "checks": [
            {"check": "connection", "result": "ok", "detail": "x"},
            {"check": "server", "result": "ok", "server_time": "2026-01-01", "database": "d"},
        ]
    }
    told = sections.database(good)
    assert (told["connected"], told["server_time"], told["problems"]) == (True, "2026-01-01", [])
    bad = {"checks": [{"check": "connection", "result": "fail", "detail": "it is down"}]}
    told = sections.database(bad)
    assert (told["connected"], told["problems"]) == (False, ["it is down"])


@pytest.mark.accepts("C-087", "B-68")
def test_every_path_with_its_own_error():
    wanted = ("00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS")
    found: dict[str, str | None] = dict.fromkeys(wanted)
    assert sections.paths(found, wanted)["all_accessible"] is True
    found["02_WORK"] = "No such file or directory"
    del found["05_LOGS"]
    told = sections.paths(found, wanted)
    assert told["all_accessible"] is False
    assert list(told["paths"]) == list(wanted)
    wrong = [path for path, each in told["paths"].items() if not each["accessible"]]
    assert wrong == ["02_WORK", "05_LOGS"]


@pytest.mark.accepts("C-088", "B-68")
def test_the_room_on_the_share():
    told = sections.disk({"total": 100, "used": 40, "free": 60, "percent_free": 60.0})
    assert (told["total_bytes"], told["used_bytes"], told["free_bytes"]) == (100, 40, 60)
    assert (told["percent_free"], told["warning"]) == (60.0, None)
    little = sections.disk({"total": 100, "used": 92, "free": 8, "percent_free": 8.0})
    assert little["warning"] == "little room is left on the share: 8 %."
    less = sections.disk({"total": 100, "used": 96, "free": 4, "percent_free": 4.0})
    assert str(less["warning"]).startswith("very little")
    with pytest.raises(ValueError, match="room"):
        sections.disk(None)


@pytest.mark.accepts("C-089")
def test_the_last_fifty_lines_of_the_log_safe_to_show():
    raw = b"".join(b"line %d\r\n" % n for n in range(80)) + b"red \x1b[31m\xff and no end"
    told = sections.log_tail("05_LOGS/watcher.log", raw)
    assert len(told["lines"]) == 50
    assert told["lines"][0] == "line 31"
    assert told["lines"][-1].startswith("red \\x1b[31m")
    assert sections.log_tail("x", None) == {"path": "x", "found": False, "lines": []}
    assert sections.log_tail("x", b"")["lines"] == []
    assert len(sections.log_tail("x", b"y" * 1_000_000)["lines"][0]) == 2000


@pytest.mark.accepts("C-090")
def test_what_waits_in_the_inbox():
    told = sections.pending([("supervisor_pause_x.flag", 120, 0.0)])
    assert (told["count"], told["more"]) == (1, False)
    assert told["files"][0]["name"] == "supervisor_pause_x.flag"
    assert told["files"][0]["modified"].startswith("1970-01-01T00:00:00")
    many = sections.pending([(f"{n}.flag", 1, 0.0) for n in range(1000)])
    assert (many["count"], many["more"], len(many["files"])) == (1000, True, 200)


@pytest.mark.accepts("C-091")
def test_the_last_ten_audit_rows():
    told = sections.audit([{"action": f"a{n}"} for n in range(30)])
    assert [row["action"] for row in told["rows"]] == [f"a{n}" for n in range(10)]
