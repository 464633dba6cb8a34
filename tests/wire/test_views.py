from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.events import Exited, Gone, Moment, Started
from uphold.core.specs import Backoff, Instant, RestartPolicy, WorkerSpec
from uphold.core.statuses import Exit, Identity, SlotStatus, State
from uphold.testing.scenarios import EPOCH, Scenario
from uphold.wire.views import row, rows

KEYS = [
    "name",
    "slot",
    "kind",
    "team",
    "admin",
    "state",
    "health",
    "condition",
    "pid",
    "generation",
    "since",
    "uptime",
    "restarts",
    "exit",
    "last_heartbeat_at",
    "last_health_at",
    "cpu_percent",
    "rss_bytes",
    "tools",
    "last_error",
    "next_attempt_at",
    "why",
]
WEB = WorkerSpec(name="web", command=("web",), team="front", backoff=Backoff(jitter=0.0))
FAILED = Exit(code=1, signal=None, at=EPOCH)


def identity(pid=4250):
    return Identity(pid=pid, start_ticks=1, boot_id="b", inode=1, nonce="n")


def up(scenario, slot="web", generation=1):
    return scenario.happens(Started(slot=slot, generation=generation, identity=identity()))


def shown(scenario, **more):
    return list(rows(scenario.declaration, scenario.observed, scenario.now, **more))


def begin(scenario):
    from uphold.core.actions import Start

    return scenario.expects(Start(slot="web", spec=WEB, why=""))


@pytest.mark.parametrize("state", [State.STARTING, State.RUNNING, State.STOPPING])
def test_a_process_under_our_eyes_is_proved_alive_at_every_moment(state):
    status = SlotStatus(slot="web", state=state, identity=identity(), proved_wall=EPOCH)
    seen = row(None, status, Moment(mono=Instant(60.0), wall=EPOCH + 60))
    assert seen["last_health_at"] == "2026-01-01T00:01:00.000Z"


@pytest.mark.parametrize(
    "status",
    [
        SlotStatus(slot="web", state=State.STARTING, proved_wall=EPOCH),
        SlotStatus(slot="web", state=State.BACKOFF, identity=identity(), proved_wall=EPOCH),
        SlotStatus(
            slot="web",
            state=State.STOPPING,
            identity=identity(),
            exit=Exit(code=0, signal=None, at=EPOCH),
            proved_wall=EPOCH,
        ),
    ],
    ids=["not begun", "ended", "only what it left behind is being ended"],
)
def test_without_a_main_process_the_last_proof_of_life_counts(status):
    seen = row(None, status, Moment(mono=Instant(60.0), wall=EPOCH + 60))
    assert seen["last_health_at"] == "2026-01-01T00:00:00.000Z"


@pytest.mark.accepts("D-36", "R-17", "D-33")
def test_a_running_worker_has_every_key_in_a_fixed_order():
    (row,) = shown(up(begin(Scenario(WEB)).at(1)).at(13.5))
    assert list(row) == KEYS
    assert row["pid"] == 4250
    assert row["team"] == "front"
    assert (row["state"], row["health"], row["condition"]) == ("running", "healthy", "running")
    assert row["uptime"] == 12.5
    assert row["since"] == "2026-01-01T00:00:01.000Z"
    assert row["last_health_at"] == "2026-01-01T00:00:13.500Z"
    assert row["exit"] is None
    assert row["why"] == "up since 12 s"


def test_a_worker_in_back_off_says_how_it_ended_and_when_it_starts_again():
    scenario = up(begin(Scenario(WEB)).at(1)).at(2)
    for generation in (1,):
        scenario.happens(
            Exited(slot="web", generation=generation, exit=Exit(code=3, signal=None, at=EPOCH + 2))
        )
    (row,) = shown(scenario)
    assert (row["state"], row["health"], row["condition"]) == ("backoff", "unhealthy", "error")
    assert row["exit"] == {"code": 3, "signal": None, "at": "2026-01-01T00:00:02.000Z"}
    assert row["last_error"]["code"] == "UPH_WORKER_EXITED"
    assert row["next_attempt_at"] == "2026-01-01T00:00:02.000Z"
    assert row["pid"] is None
    assert row["uptime"] == 0.0


@pytest.mark.parametrize(
    ("spec", "wish"),
    [
        (replace(WEB, max_restarts=0), orders.PauseSupervisor()),
        (WEB, orders.Declare(specs=(replace(WEB, restart=RestartPolicy.NO),))),
        (replace(WEB, replicas=2), orders.ScaleWorker(name="web", replicas=1)),
        (replace(WEB, replicas=2), orders.StopWorkers(names=("web",))),
    ],
)
def test_what_is_not_tried_again_has_no_next_attempt(spec, wish):
    """As it stays while the supervisor is paused."""
    scenario = Scenario(spec).orders(wish)
    slot = f"web.{spec.replicas}".removesuffix(".1")
    ended = SlotStatus(slot=slot, state=State.BACKOFF, terms=spec, failures=1, exit=FAILED)
    scenario.observed = scenario.observed.with_changes([ended], ())
    shown_as = {row["slot"]: row for row in shown(scenario)}[slot]
    assert (shown_as["state"], shown_as["next_attempt_at"]) == ("backoff", None)


def test_a_worker_never_started_is_shown_as_stopped():
    (row,) = shown(Scenario(WorkerSpec(name="off", command=("x",), enabled=False)))
    assert (row["state"], row["admin"], row["since"]) == ("stopped", "disabled", None)
    assert row["why"] == "disabled in the file"


def test_companions_are_shown_only_on_request():
    pump = WorkerSpec(name="@pump", command=("pump",))
    scenario = Scenario(WEB, pump)
    assert [row["name"] for row in shown(scenario)] == ["web"]
    assert [row["name"] for row in shown(scenario, companions=True)] == ["web", "@pump"]


def test_a_slot_that_is_no_longer_declared_is_shown_until_it_is_gone():
    scenario = up(begin(Scenario(WEB)).at(1)).at(2).declares()
    (row,) = shown(scenario)
    assert (row["name"], row["admin"], row["state"]) == ("web", "disabled", "running")


def test_an_order_in_force_is_named_with_its_author():
    scenario = up(begin(Scenario(WEB)).at(1)).orders(orders.PauseWorkers(names=("web",)))
    from uphold.core.actions import Stop

    scenario.expects(Stop(slot="web", why="paused by ann"))
    scenario.at(3).happens(Gone(slot="web", generation=1, proof="seen"))
    (row,) = shown(scenario)
    assert (row["admin"], row["why"]) == ("paused", "paused by ann")


def test_a_worker_that_was_scaled_to_0_is_still_shown_with_the_way_back():
    scenario = Scenario(WEB).orders(orders.ScaleWorker(name="web", replicas=0))
    (row,) = shown(scenario)
    assert (row["slot"], row["state"], row["pid"]) == ("web", "stopped", None)
    assert row["why"] == "scaled to 0; back with: uphold scale web=1"


def test_tables_of_a_spec_are_shown_as_tables():
    from uphold.core.specs import Need
    from uphold.wire.views import spec_view

    spec = WorkerSpec(
        name="web",
        command=("x",),
        environment=(("LEVEL", "info"),),
        labels=(("tier", "front"),),
        depends_on=(("db", Need.STARTED),),
    )
    view = spec_view(spec)
    assert view["environment"] == {"LEVEL": "info"}
    assert view["labels"] == {"tier": "front"}
    assert view["depends_on"] == {"db": "started"}
    assert view["stop"]["grace"] == 30.0
