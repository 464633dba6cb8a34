from __future__ import annotations

import pytest

from uphold.cli.verdicts import exit_code, worst_first

FAULT = {"code": "UPH_STOP_UNKILLABLE", "message": "pid 7 survives"}


@pytest.mark.accepts("E-25", "R-08")
@pytest.mark.parametrize(
    ("supervisor", "worker", "code"),
    [
        ({}, {}, 0),
        ({"ownership": "stale"}, {}, 1),
        ({"ownership": "stopped"}, {}, 3),
        ({"ownership": "corrupt"}, {}, 4),
        ({"ownership": "a word from the future"}, {}, 4),
        ({}, {"state": "stopped", "health": "unknown"}, 0),
        ({}, {"state": "exited", "health": "unknown"}, 0),
        ({}, {"state": "exited", "health": "unhealthy"}, 150),
        ({}, {"state": "waiting", "health": "unknown"}, 151),
        ({}, {"state": "starting", "health": "unknown"}, 151),
        ({}, {"state": "stopping", "health": "unknown"}, 151),
        ({}, {"state": "stopping", "health": "unknown", "last_error": FAULT}, 150),
        ({}, {"state": "backoff", "health": "unhealthy"}, 150),
        ({}, {"state": "failed", "health": "unhealthy"}, 150),
        ({}, {"health": "degraded"}, 150),
        ({}, {"health": "unhealthy"}, 150),
        ({}, {"state": "stopped", "admin": "paused"}, 0),
        ({}, {"state": "stopping", "admin": "paused"}, 0),
        ({}, {"state": "stopping", "admin": "paused", "last_error": FAULT}, 150),
        ({}, {"state": "failed", "admin": "disabled", "health": "unhealthy"}, 0),
        ({}, {"state": "stopped", "admin": "quarantined"}, 0),
        ({"health": "degraded"}, {}, 150),
        ({"health": "unhealthy"}, {}, 150),
        ({"status": "spawning"}, {}, 151),
        ({"status": "paused"}, {}, 0),
        ({"status": "failed"}, {}, 150),
        ({"ownership": "stale"}, {"state": "failed", "health": "unhealthy"}, 1),
    ],
)
def test_the_exit_code_says_what_the_document_says(document, row, supervisor, worker, code):
    assert exit_code(document(row(**worker), **supervisor)) == code


def test_trouble_outranks_a_start_in_progress(document, row):
    rows = [row("a", state="starting"), row("b", state="failed", health="unhealthy")]
    assert exit_code(document(*rows)) == 150


def test_a_named_worker_is_judged_by_itself(document, row):
    """`status api` must not fail because another worker makes the whole degraded."""
    assert exit_code(document(row(), health="degraded"), named=True) == 0
    assert exit_code(document(row(), health="degraded"), named=False) == 150


def test_the_worst_stands_first_and_equals_keep_their_order(row):
    rows = [
        row("a"),
        row("b", state="stopped"),
        row("c", state="starting"),
        row("d", state="failed", health="unhealthy"),
        row("e"),
        row("f", health="degraded"),
        row("g", state="backoff", health="unhealthy"),
    ]
    order = [each["name"] for each in worst_first(rows)]
    assert order == ["d", "g", "f", "c", "a", "e", "b"]
