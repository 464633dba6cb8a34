"""What the rows of a shared database say in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorder.documents import document, worker
from uphold.recorder.summaries import (
    cut,
    supervisor_details,
    supervisor_summary,
    troubled,
    worker_details,
    worker_summary,
)


@pytest.mark.accepts("C-131")
@pytest.mark.parametrize(
    ("why", "summary"),
    [
        ("up since 12 s", "up since 2026-11-17 03:39:48 UTC"),
        ("up and ready since 2 h 5 min", "up and ready since 2026-11-17 03:39:48 UTC"),
        ("up since 0.2 s; it says: busy", "up since 2026-11-17 03:39:48 UTC; it says: busy"),
        ("stopped 3 d 4 h ago", "stopped since 2026-11-17 03:39:48 UTC"),
        ("paused by ann", "paused by ann"),
        ("degraded: no heartbeat for 5 min", "degraded: no heartbeat for 5 min"),
        ("", "running"),
    ],
)
def test_a_summary_stays_true_when_it_is_read_later(why, summary):
    assert worker_summary(worker("web", why=why)) == summary


@pytest.mark.accepts("C-131")
def test_the_next_attempt_is_a_moment_and_the_last_error_is_told_once():
    row = worker(
        "web",
        state="backoff",
        why="exited with code 1; starts again in 4.0 s, try 3 of 10",
        next_attempt_at="2026-11-17T03:40:04.000Z",
        last_error={"code": "UPH_X", "message": "exited with code 1"},
    )
    assert worker_summary(row) == (
        "exited with code 1; starts again at 2026-11-17 03:40:04 UTC, try 3 of 10"
    )
    other = {**row, "last_error": {"code": "UPH_X", "message": "no such file"}}
    assert worker_summary(other).endswith("; last error: no such file")


@pytest.mark.accepts("C-131")
@pytest.mark.parametrize(
    ("workers", "about", "summary"),
    [
        ((), {}, "no workers"),
        ((worker("a"), worker("@pump")), {}, "1 running"),
        (
            (*(worker(f"w{n}") for n in range(12)), worker("web", state="failed")),
            {},
            "12 running, 1 failed: web",
        ),
        (
            (worker("a", health="unhealthy"), worker("b"), worker("c", state="stopped")),
            {},
            "2 running, 1 stopped, 1 unhealthy: a",
        ),
        ((worker("a"),), {"status": "paused"}, "paused; 1 running"),
        (
            (worker("a"), worker("@recorder", state="backoff", health="unhealthy")),
            {},
            "1 running: @recorder",
        ),
        (
            (worker("a"),),
            {"last_error": {"code": "UPH_JOURNAL_UNAVAILABLE", "message": "the disk is full."}},
            "1 running; the disk is full.",
        ),
    ],
)
def test_a_supervisor_counts_its_workers_and_names_the_bad_ones(workers, about, summary):
    made = document(*workers, **about)
    assert supervisor_summary(made["supervisor"], made["workers"]) == summary


@pytest.mark.accepts("B-79")
def test_what_was_cut_is_in_the_details():
    long = "failed: " + "é" * 9_000
    row = worker("web", state="failed", why=long, exit={"code": 1, "signal": None, "at": None})
    shown = cut(worker_summary(row))
    assert len(shown) == 255
    assert shown.endswith("é…")
    details = json.loads(worker_details(row))
    assert details["why"] == long
    assert details["exit"]["code"] == 1
    endless = json.loads(worker_details(worker("web", why="x" * 100_000)))
    assert len(endless["why"]) == 10_001


@pytest.mark.accepts("B-79")
def test_many_names_make_a_long_summary_and_all_of_them_are_in_the_details():
    workers = [worker(f"worker-{n:03}", state="failed") for n in range(500)]
    made = document(*workers)
    summary = supervisor_summary(made["supervisor"], workers)
    assert len(cut(summary)) <= 255
    assert cut(summary).startswith("500 failed: worker-000, worker-001")
    assert json.loads(supervisor_details(made["supervisor"], workers))["troubled"] == troubled(
        workers
    )
    assert len(troubled(workers)) == 500


def test_companions_stand_in_the_details_of_their_supervisor():
    made = document(worker("@pump"), worker("a"))
    found = json.loads(supervisor_details(made["supervisor"], made["workers"]))
    assert found["companions"] == {"@pump": "running, healthy"}


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("abcd efg", 6, "abcd…"),
        ("two\nlines\tand\x00more", 40, r"two lines and\x00more"),
        ("abcde\u0301fg", 6, "abcd…"),
        ("ab\U0001f44d\U0001f3fdcdef", 4, "ab…"),
    ],
)
def test_a_cut_parts_no_character(text, length, shown):
    assert cut(text, length) == shown


@given(st.text(max_size=400), st.integers(2, 300))
def test_a_line_always_fits_and_is_one_line(text, length):
    shown = cut(text, length)
    assert len(shown) <= length
    assert "\n" not in shown
    assert "\x00" not in shown
    shown.encode()
