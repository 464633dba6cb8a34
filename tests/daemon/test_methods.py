from __future__ import annotations

import pytest

from uphold.core import orders
from uphold.daemon.methods import wish_of
from uphold.errors import UpholdError


@pytest.mark.parametrize(
    ("params", "wish"),
    [
        ({"verb": "start", "names": ["a"]}, orders.StartWorkers(names=("a",))),
        ({"verb": "stop", "names": ["a", "b"]}, orders.StopWorkers(names=("a", "b"))),
        ({"verb": "restart", "names": ["a"]}, orders.RestartWorkers(names=("a",))),
        ({"verb": "pause"}, orders.PauseSupervisor()),
        ({"verb": "pause", "names": ["a"]}, orders.PauseWorkers(names=("a",))),
        ({"verb": "resume"}, orders.ResumeSupervisor()),
        ({"verb": "resume", "names": ["a"]}, orders.ResumeWorkers(names=("a",))),
        ({"verb": "enable", "names": ["a"]}, orders.EnableWorkers(names=("a",))),
        ({"verb": "disable", "names": ["a"]}, orders.DisableWorkers(names=("a",))),
        ({"verb": "quarantine", "names": ["a"]}, orders.QuarantineWorkers(names=("a",))),
        ({"verb": "approve", "names": ["a"]}, orders.ApproveWorkers(names=("a",))),
        ({"verb": "reset", "names": ["a"]}, orders.ResetWorkers(names=("a",))),
        (
            {"verb": "scale", "names": ["a"], "replicas": 3},
            orders.ScaleWorker(name="a", replicas=3),
        ),
        (
            {"verb": "signal", "names": ["a"], "signal": "sighup"},
            orders.SignalWorkers(names=("a",), signal="HUP"),
        ),
        (
            {"verb": "signal", "names": ["a"], "signal": 10},
            orders.SignalWorkers(names=("a",), signal="USR1"),
        ),
    ],
)
def test_a_request_becomes_the_wish_it_says(params, wish):
    assert wish_of(params) == wish


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"verb": "start"},
        {"verb": "explode", "names": ["a"]},
        {"verb": "scale", "names": ["a"]},
        {"verb": "scale", "names": ["a"], "replicas": "3"},
        {"verb": "scale", "names": ["a"], "replicas": True},
        {"verb": "signal", "names": ["a"]},
        {"verb": "signal", "names": ["a"], "signal": "NOPE"},
        {"verb": "signal", "names": ["a"], "signal": 999},
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(params):
    with pytest.raises(UpholdError) as refused:
        wish_of(params)
    assert refused.value.exit_code == 2
