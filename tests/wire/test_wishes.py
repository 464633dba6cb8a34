from __future__ import annotations

import pytest

from uphold.core import orders
from uphold.errors import Malformed
from uphold.wire.codecs import decode, encode
from uphold.wire.wishes import WISHES, names_in, read_wish, wish_view

NAMES = ("web", "api")


def made(kind):
    if kind is orders.ScaleWorker:
        return kind(name="web", replicas=2)
    return kind(names=NAMES, **({"signal": "HUP"} if kind is orders.SignalWorkers else {}))


@pytest.mark.parametrize("kind", WISHES)
def test_a_wish_comes_back_as_it_was(kind):
    wish = made(kind)
    assert read_wish(decode(dict, encode(wish_view(wish)))) == wish
    assert names_in(wish) == (("web",) if kind is orders.ScaleWorker else NAMES)


@pytest.mark.accepts("P23")
@pytest.mark.parametrize(
    "wish",
    [
        orders.ShutDown(),
        orders.Declare(specs=()),
        orders.PauseSupervisor(),
        orders.ResumeSupervisor(),
        orders.ApproveWorkers(names=NAMES),
        orders.WithholdWorkers(names=NAMES),
        orders.ReleaseWorkers(names=NAMES),
        orders.FinishDeploy(names=NAMES),
        None,
        "restart",
        type("RestartWorkers", (), {"names": NAMES})(),
    ],
)
def test_what_plug_ins_may_not_wish_for_cannot_be_written(wish):
    with pytest.raises(Malformed, match="is no wish of a plug-in"):
        wish_view(wish)


@pytest.mark.accepts("P23")
@pytest.mark.parametrize(
    "view",
    [
        {},
        {"wish": "ShutDown"},
        {"wish": "Declare", "specs": []},
        {"wish": "RestartWorkers"},
        {"wish": "RestartWorkers", "names": "web"},
        {"wish": "RestartWorkers", "names": [1]},
        {"wish": "ScaleWorker", "name": "web", "replicas": "many"},
        {"wish": "RollBackCode", "names": ["web"], "commits": True},
        {"wish": ["RestartWorkers"]},
    ],
)
def test_nor_can_it_be_read(view):
    with pytest.raises(Malformed):
        read_wish(view)


def test_wishes_about_nobody_in_particular_name_nobody():
    assert names_in(orders.PauseSupervisor()) == ()
