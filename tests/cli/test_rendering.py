from __future__ import annotations

import pytest

from uphold.cli.rendering import columns, key_values, memory, share_line, table
from uphold.cli.screens import Screen

NOW = 1_767_225_660.0  # 2026-01-01T00:01:00Z
FAULT = {"code": "UPH_WORKER_EXITED", "message": "exit code 3"}


@pytest.fixture
def mixed(document, row):
    return document(
        row(
            "api",
            pid=4250,
            uptime=750.0,
            cpu_percent=0.1,
            rss_bytes=9_011_200,
            last_health_at="2026-01-01T00:00:57.000Z",
        ),
        row(
            "mailer",
            state="backoff",
            health="unhealthy",
            condition="error",
            uptime=0.0,
            exit={"code": 3, "signal": None, "at": "2026-01-01T00:00:10.000Z"},
            last_error=FAULT,
            why="exit code 3; starts again in 4 s, try 2 of 10",
        ),
        row("old", state="stopped", health="unknown", admin="paused", why="paused by ada@orion"),
        health="degraded",
    )


@pytest.mark.accepts("D-33", "D-34", "D-36", "D-37", "R-17")
def test_the_table_is_exactly_this(mixed):
    assert table(mixed, NOW) == [
        "NAME    STATE    HEALTH      PID  UPTIME  ↺   CPU   MEM  SEEN  WHY",
        (
            "mailer  backoff  unhealthy     -       -  2     -     -     -  "
            "exit code 3; starts again in 4 s, try 2 of 10"
        ),
        "api     running  healthy    4250  12m30s  2  0.1%  8.6M    3s  up since 12 s",
        "old     stopped  unknown       -       -  2     -     -     -  paused by ada@orion",
        (
            "3 workers: 1 backoff, 1 running, 1 stopped · "
            "supervisor orion (pid 4242): active, degraded, up 1m"
        ),
    ]


def test_the_wide_table_adds_five_columns(mixed):
    header, first, *_ = table(mixed, NOW, wide=True)
    assert header.split() == (
        "NAME STATE HEALTH PID UPTIME ↺ CPU MEM SEEN TEAM KIND ADMIN BEAT EXIT WHY".split()
    )
    assert "code 3" in first


@pytest.mark.accepts("D-36", "R-17")
def test_the_key_value_lines_are_exactly_these(mixed):
    mixed["workers"] = mixed["workers"][:2]
    assert key_values(mixed) == [
        "ownership=running",
        "running=true",
        "pid=4242",
        "started_at=2026-01-01T00:00:00.000Z",
        "stopped_at=none",
        "last_error=none",
        "worker:api.state=running",
        "worker:api.health=healthy",
        "worker:api.last_heartbeat=none",
        "worker:api.last_error=none",
        "worker:api.condition=running",
        "worker:api.last_health_at=2026-01-01T00:00:57.000Z",
        "worker:mailer.state=backoff",
        "worker:mailer.health=unhealthy",
        "worker:mailer.last_heartbeat=none",
        "worker:mailer.last_error=UPH_WORKER_EXITED: exit code 3",
        "worker:mailer.condition=error",
        "worker:mailer.last_health_at=none",
    ]


@pytest.mark.accepts("R-08", "D-39")
@pytest.mark.parametrize(
    ("ownership", "told"),
    [
        ("stale", "stale (pid 4242 is dead and left traces"),
        ("stopped", "not running since 2026-01-01T00:00:30.000Z"),
        ("corrupt", "corrupt (the lock file cannot be read"),
    ],
)
def test_the_last_line_says_plainly_that_nobody_supervises(document, ownership, told):
    shown = document(ownership=ownership, stopped_at="2026-01-01T00:00:30.000Z")
    (line,) = table(shown, NOW)
    assert told in line
    assert "active" not in line


def test_on_a_terminal_the_reason_is_cut_and_nothing_else(mixed):
    lines = table(mixed, NOW, Screen(terminal=True, width=80))
    assert all(len(part) <= 80 for line in lines for part in line.split("\n"))
    assert lines[1].endswith("…")
    assert lines[2].startswith("api     running  healthy    4250  12m30s  2  0.1%  8.6M    3s")


SUMMARY = [
    "3 workers: 1 backoff, 1 running, 1 stopped",
    "supervisor orion (pid 4242): active, degraded, up 1m",
]


@pytest.mark.parametrize(
    ("width", "header", "mailer"),
    [
        (
            67,
            "NAME    STATE    HEALTH      PID  UPTIME  ↺   CPU  WHY",
            "mailer  backoff  unhealthy     -       -  2     -  exit code 3; st…",
        ),
        (
            61,
            "NAME    STATE    HEALTH      PID  UPTIME  ↺  WHY",
            "mailer  backoff  unhealthy     -       -  2  exit code 3; st…",
        ),
        (
            50,
            "NAME    STATE    HEALTH      PID  WHY",
            "mailer  backoff  unhealthy     -  exit code 3; st…",
        ),
        (
            40,
            "NAME    STATE    HEALTH     WHY",
            "mailer  backoff  unhealthy  exit code 3…",
        ),
    ],
)
def test_a_narrow_terminal_loses_the_least_important_columns_first(mixed, width, header, mailer):
    lines = table(mixed, NOW, Screen(terminal=True, width=width))
    assert lines[:2] == [header, mailer]
    assert all(len(part) <= width for line in lines for part in line.split("\n"))


def test_reasons_that_are_short_cost_no_column(document, row):
    shown = document(row("api", pid=4250, why="up"))
    header, *_ = table(shown, NOW, Screen(terminal=True, width=65))
    assert "SEEN" in header


def test_the_columns_that_wide_adds_are_left_out_where_they_do_not_fit(mixed):
    header, *rows, _ = table(mixed, NOW, Screen(terminal=True, width=60), wide=True)
    assert header.split() == "NAME STATE HEALTH PID ADMIN WHY".split()
    assert all(len(line) <= 60 for line in rows)


def test_a_name_that_leaves_no_room_is_shortened(document, row):
    shown = document(row("a-name-that-is-far-too-long-for-this", pid=4250))
    _, line, _ = table(shown, NOW, Screen(terminal=True, width=40))
    assert line.startswith("a-name-that-is-fa")
    assert "…  running  healthy" in line
    assert len(line) <= 40


def test_the_supervisor_has_a_line_of_its_own_where_one_is_too_short(mixed):
    assert table(mixed, NOW, Screen(terminal=True, width=80))[-1].split("\n") == SUMMARY


def test_what_is_said_of_the_supervisor_is_folded_rather_than_cut(mixed):
    mixed["supervisor"]["last_error"] = FAULT
    last = table(mixed, NOW, Screen(terminal=True, width=30))[-1].split("\n")
    assert last == [
        "3 workers: 1 backoff, 1",
        "  running, 1 stopped",
        "supervisor orion (pid 4242):",
        "  active, degraded, up 1m",
        "last error: UPH_WORKER_EXITED:",
        "  exit code 3",
    ]


def test_colour_means_something_and_is_absent_when_piped(mixed):
    plain = "".join(table(mixed, NOW))
    coloured = table(mixed, NOW, Screen(terminal=True, colour=True))
    assert "\x1b" not in plain
    assert "\x1b[31mbackoff" in coloured[1]
    assert "\x1b[32mrunning" in coloured[2]
    assert "\x1b[2mstopped" in coloured[3]


@pytest.mark.accepts("S21")
@pytest.mark.parametrize("evil", ["\x1b[2J", "a\nb", "\r", "\u202e", "\u200b", "\x9b31m", "\x07"])
def test_text_from_outside_cannot_command_the_terminal(document, row, evil):
    shown = document(row(why=evil, last_error={"code": "X", "message": evil}), name=evil)
    shown["supervisor"]["last_error"] = {"code": "X", "message": evil}
    text = "".join([*table(shown, NOW, wide=True), *key_values(shown)]).replace("\n", "", 1)
    assert evil not in text


def test_columns_leave_the_last_one_as_long_as_it_is():
    lines = columns([("a", "x" * 200), ("bbb", "y")], ("NAME", "TEXT"), Screen())
    assert lines == ["NAME  TEXT", f"a     {'x' * 200}", "bbb   y"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "-"), (512, "512B"), (2048, "2K"), (9_011_200, "8.6M"), (3 << 30, "3.0G")],
)
def test_memory_is_said_in_binary_units(size, text):
    assert memory(size) == text


SHARE = {
    "path": "/mnt/share",
    "state": "reachable",
    "since": "2026-01-01T00:00:00.000Z",
    "watched": True,
    "polled_because": None,
    "poll_seconds": 0.5,
    "last_error": None,
}


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["share /mnt/share: reachable for 1m, watched"]),
        (
            {"watched": False, "polled_because": "there is no inbox"},
            [
                "share /mnt/share: reachable for 1m, looked at every 0.5 s",
                "  not watched: there is no inbox",
            ],
        ),
        (
            {"state": "unreachable", "watched": None, "last_error": FAULT},
            ["share /mnt/share: unreachable for 1m", "  exit code 3 [UPH_WORKER_EXITED]"],
        ),
        ({"state": "unknown", "watched": None, "since": None}, ["share /mnt/share: unknown"]),
    ],
)
def test_a_line_says_how_the_share_stands(changes, lines):
    assert share_line({"share": {**SHARE, **changes}}, NOW) == lines


def test_where_there_is_no_share_nothing_is_said_of_it():
    assert share_line({}, NOW) == []
