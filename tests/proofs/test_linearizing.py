from __future__ import annotations

import pytest

from proofs.commanding import Record, judge
from proofs.linearizing import Operation, unexplained


def write(invoked, returned, value):
    return Operation(
        invoked=invoked, returned=returned, text=f"write {value}", effect=lambda _: value
    )


def read(invoked, returned, value, after=None):
    return Operation(
        invoked=invoked,
        returned=returned,
        text=f"read {value}",
        effect=lambda state: state if state == value else None,
        looks=True,
        after=after,
    )


@pytest.mark.parametrize(
    "history",
    [
        [],
        [write(0, 1, 1), read(2, 3, 1)],
        [write(0, 9, 1), read(1, 2, 0), read(3, 4, 1)],
        [write(0, 9, 1), write(0, 9, 2), read(1, 2, 2), read(3, 4, 1)],
        [write(0, 3, 1), write(1, 2, 1), read(4, 5, 1)],
        [write(0, 9, 1), read(0, 9, 0), read(0, 9, 1, after=1)],
    ],
)
def test_an_order_that_explains_a_history_is_found(history):
    assert unexplained(history, 0) is None


@pytest.mark.parametrize(
    "history",
    [
        [write(0, 1, 1), read(2, 3, 0)],
        [write(0, 9, 1), read(1, 2, 1), read(3, 4, 0)],
        [write(0, 9, 1), write(0, 9, 2), read(1, 2, 1), read(3, 4, 2), read(5, 6, 1)],
        [write(0, 1, 1), write(2, 3, 2), read(4, 9, 1)],
        [read(0, 1, 7)],
        [write(0, 9, 1), read(0, 9, 1), read(0, 9, 0, after=1)],
    ],
)
def test_a_history_that_no_order_explains_is_refused(history):
    assert "none of" in unexplained(history, 0)


def record(verb, invoked, returned, answer, *, waited=False):
    return Record("web", verb, waited, invoked, returned, answer)


def row(admin="enabled", generation=1):
    return {"result": {"workers": [{"admin": admin, "state": "?", "generation": generation}]}}


def done(state):
    return {"result": {"results": [{"name": "web", "ok": True, "state": state}]}}


TAKEN = {"result": {"results": []}}
REFUSED = {"error": {"code": "UPH_ORDER_REFUSED", "exit_code": 4}}


@pytest.mark.parametrize(
    "records",
    [
        [record("pause", 0, 1, TAKEN), record("status", 2, 3, row("enabled"))],
        [record("pause", 0, 1, TAKEN), record("start", 2, 3, TAKEN)],
        [record("start", 0, 1, REFUSED)],
        [record("status", 0, 1, row(generation=2)), record("status", 2, 3, row(generation=1))],
        [record("stop", 0, 1, TAKEN), record("enable", 2, 3, done("running"))],
        [record("stop", 0, 1, done("running"))],
        [
            record("status", 0, 1, row(generation=4)),
            record("restart", 2, 3, done("running")),
            record("status", 4, 5, row(generation=4)),
        ],
    ],
)
def test_answers_that_contradict_each_other_are_found(records):
    assert list(judge(records))


def test_answers_that_overlapped_are_given_the_benefit_of_their_time():
    records = [
        record("pause", 0, 9, TAKEN),
        record("start", 1, 2, REFUSED),
        record("resume", 3, 9, TAKEN),
        record("restart", 4, 8, done("running")),
        record("status", 8, 9, row(generation=2)),
    ]
    assert list(judge(records)) == []
