from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from uphold.core import orders
from uphold.core.declaring import (
    MOST_REPLICAS,
    Declaration,
    Entry,
    declare,
    follow_file,
    unknown,
)
from uphold.core.orders import Order, Refusal
from uphold.core.overrides import PLAIN, Override
from uphold.core.specs import Kind, WorkerSpec
from uphold.core.statuses import Admin
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))
db = WorkerSpec(name="db", command=("store",))
WEB = ("web",)

HOLDS = {
    Admin.PAUSED: (orders.PauseWorkers, orders.ResumeWorkers, "resume"),
    Admin.DISABLED: (orders.DisableWorkers, orders.EnableWorkers, "enable"),
    Admin.QUARANTINED: (orders.QuarantineWorkers, orders.ApproveWorkers, "approve"),
}
ABOUT_WEB = [
    orders.StartWorkers(names=WEB),
    orders.StopWorkers(names=WEB),
    orders.RestartWorkers(names=WEB),
    orders.PauseWorkers(names=WEB),
    orders.ResumeWorkers(names=WEB),
    orders.EnableWorkers(names=WEB),
    orders.DisableWorkers(names=WEB),
    orders.QuarantineWorkers(names=WEB),
    orders.ApproveWorkers(names=WEB),
    orders.ResetWorkers(names=WEB),
    orders.SignalWorkers(names=WEB, signal="HUP"),
    orders.ScaleWorker(name="web", replicas=2),
    orders.WithholdWorkers(names=WEB),
    orders.ReleaseWorkers(names=WEB),
    orders.UpdateCode(names=WEB),
    orders.RollBackCode(names=WEB, commits=3),
    orders.FinishDeploy(names=WEB),
    orders.RestartSlowly(names=WEB),
    orders.Diagnose(names=WEB),
    orders.VerifyDatabase(names=WEB),
]


def entry(scenario: Scenario, name: str = "web") -> Entry:
    return scenario.declaration.workers[name]


def test_a_worker_follows_the_file_until_somebody_orders_otherwise():
    worker = Entry(spec=web)
    assert worker.override == PLAIN == Override()
    assert (worker.admin, worker.up, worker.replicas) == (Admin.ENABLED, True, 1)
    assert worker.wanted
    assert worker.ordered_down == ""


def test_a_slot_that_was_scaled_away_is_not_wanted_nor_is_any_of_a_worker_kept_down():
    worker = Entry(spec=replace(web, replicas=2))
    assert [worker.wants(slot) for slot in ("web", "web.2", "web.3")] == [True, True, False]
    assert not Entry(spec=replace(web, replicas=2, enabled=False)).wants("web")


@pytest.mark.accepts("M-16", "M-17", "B-45")
@pytest.mark.parametrize(
    ("spec", "admin", "up"),
    [
        (replace(web, enabled=False), Admin.DISABLED, True),
        (replace(web, quarantined=True), Admin.QUARANTINED, True),
        (replace(web, autostart=False), Admin.ENABLED, False),
        (replace(web, enabled=False, quarantined=True), Admin.QUARANTINED, True),
    ],
)
def test_the_file_can_hold_a_worker_back(spec, admin, up):
    worker = Entry(spec=spec)
    assert (worker.admin, worker.up) == (admin, up)
    assert not worker.wanted
    assert worker.ordered_down == "", "the file did it, nobody ordered it"


def test_the_first_slot_carries_the_name_and_the_others_a_number():
    assert Entry(spec=web).slots() == ("web",)
    assert Entry(spec=replace(web, replicas=3)).slots() == ("web", "web.2", "web.3")
    assert Entry(spec=replace(web, replicas=0)).slots() == ()


@pytest.mark.accepts("M-35")
@pytest.mark.parametrize("wish", ABOUT_WEB, ids=lambda wish: type(wish).__name__)
def test_every_order_that_is_taken_makes_a_new_version(wish):
    scenario = Scenario(web)
    version = scenario.declaration.version
    scenario.orders(wish)
    assert scenario.declaration.version == version + 1


@pytest.mark.accepts("M-33", "M-34")
@pytest.mark.parametrize("wish", ABOUT_WEB, ids=lambda wish: type(wish).__name__)
def test_a_declaration_once_obtained_never_changes(wish):
    scenario = Scenario(web)
    before = scenario.declaration
    copy = (before.version, dict(before.workers))
    scenario.orders(wish).declares(db)
    assert (before.version, dict(before.workers)) == copy


@pytest.mark.accepts("M-33", "M-34")
def test_nobody_can_change_a_declaration_behind_our_back():
    declaration = Scenario(web).declaration
    with pytest.raises(FrozenInstanceError):
        declaration.paused = True  # type: ignore[misc]
    with pytest.raises(TypeError):
        declaration.workers["web"] = Entry(spec=db)  # type: ignore[index]
    with pytest.raises(TypeError):
        Declaration().workers["web"] = Entry(spec=db)  # type: ignore[index]


def test_start_and_stop_are_opposites_and_the_last_one_holds():
    scenario = Scenario(web).orders(orders.StopWorkers(names=WEB))
    assert not entry(scenario).wanted
    assert entry(scenario).ordered_down == "stopped by ann"
    scenario.orders(orders.StartWorkers(names=WEB))
    assert entry(scenario).wanted
    assert entry(scenario).override.kick == scenario.declaration.version


@pytest.mark.parametrize("wish", [orders.EnableWorkers, orders.ApproveWorkers])
def test_to_allow_what_was_allowed_before_asks_nothing_of_it(wish):
    scenario = Scenario(web).orders(wish(names=WEB))
    assert entry(scenario).override.kick == 0


@pytest.mark.parametrize(("hold", "lift", "_verb"), HOLDS.values())
def test_what_is_allowed_to_run_again_shall_start(hold, lift, _verb):
    scenario = Scenario(web).orders(hold(names=WEB)).orders(lift(names=WEB))
    assert entry(scenario).override.kick == scenario.declaration.version


def test_a_restart_is_a_declaration_too_and_wants_the_worker_up():
    scenario = Scenario(web).orders(orders.StopWorkers(names=WEB))
    scenario.orders(orders.RestartWorkers(names=WEB))
    assert entry(scenario).wanted
    assert entry(scenario).override.nudge == scenario.declaration.version


def test_a_stop_that_comes_after_a_restart_wins():
    scenario = Scenario(web).orders(orders.RestartWorkers(names=WEB))
    assert not entry(scenario.orders(orders.StopWorkers(names=WEB))).wanted


def test_a_reset_is_noted_and_wants_nothing_else():
    scenario = Scenario(web).orders(orders.StopWorkers(names=WEB))
    scenario.orders(orders.ResetWorkers(names=WEB))
    assert entry(scenario).override.pardon == scenario.declaration.version
    assert not entry(scenario).wanted


@pytest.mark.accepts("M-18", "M-19", "B-45")
@pytest.mark.parametrize("admin", HOLDS)
def test_a_hold_keeps_a_worker_down_until_the_opposite_verb(admin):
    hold, release, _ = HOLDS[admin]
    scenario = Scenario(web).orders(hold(names=WEB), reason="too loud")
    assert entry(scenario).admin is admin
    assert not entry(scenario).wanted
    assert entry(scenario).ordered_down == f"{admin} by ann: too loud"
    scenario.orders(release(names=WEB))
    assert entry(scenario).admin is Admin.ENABLED
    assert entry(scenario).wanted


@pytest.mark.accepts("B-45")
@pytest.mark.parametrize("admin", HOLDS)
@pytest.mark.parametrize("wish", [orders.StartWorkers, orders.RestartWorkers])
def test_what_is_held_cannot_be_started_and_the_refusal_names_the_verb_that_lifts_it(admin, wish):
    hold, _, verb = HOLDS[admin]
    scenario = Scenario(web).orders(hold(names=WEB))
    version = scenario.declaration.version
    scenario.orders(wish(names=WEB))
    assert scenario.refusal is not None
    assert scenario.refusal.exit_code == 4
    assert scenario.refusal.message == (
        f"worker 'web' is {admin}, so it cannot be told to {wish.VERB}."
    )
    assert f"uphold {verb} web" in scenario.refusal.remedy
    assert scenario.declaration.version == version


def test_a_pause_survives_every_order_but_resume():
    for wish in ABOUT_WEB:
        if isinstance(wish, orders.ResumeWorkers):
            continue
        scenario = Scenario(web).orders(orders.PauseWorkers(names=WEB)).orders(wish)
        assert entry(scenario).override.held, wish
        assert not entry(scenario).wanted, wish


def test_the_strongest_hold_is_shown_and_the_others_stay_underneath():
    scenario = Scenario(web)
    for hold, _, _ in HOLDS.values():
        scenario.orders(hold(names=WEB))
    assert entry(scenario).admin is Admin.QUARANTINED
    scenario.orders(orders.ApproveWorkers(names=WEB))
    assert entry(scenario).admin is Admin.PAUSED
    scenario.orders(orders.ResumeWorkers(names=WEB))
    assert entry(scenario).admin is Admin.DISABLED


def test_approving_overrides_a_quarantine_of_the_file():
    scenario = Scenario(replace(web, quarantined=True))
    scenario.orders(orders.ApproveWorkers(names=WEB))
    assert entry(scenario).wanted


def test_scaling_sets_the_number_of_slots():
    scenario = Scenario(web).orders(orders.ScaleWorker(name="web", replicas=3))
    assert entry(scenario).slots() == ("web", "web.2", "web.3")
    scenario.orders(orders.ScaleWorker(name="web", replicas=0))
    assert entry(scenario).slots() == ()
    assert entry(scenario).replicas == 0


@pytest.mark.parametrize("replicas", [-1, MOST_REPLICAS + 1])
def test_a_worker_cannot_be_scaled_beyond_reason(replicas):
    scenario = Scenario(web).orders(orders.ScaleWorker(name="web", replicas=replicas))
    assert scenario.refusal is not None
    assert scenario.refusal.exit_code == 2
    assert str(replicas) in scenario.refusal.message
    assert entry(scenario).replicas == 1


@pytest.mark.parametrize("replicas", [0, MOST_REPLICAS])
def test_the_limits_of_scaling_are_allowed(replicas):
    scenario = Scenario(web).orders(orders.ScaleWorker(name="web", replicas=replicas))
    assert entry(scenario).replicas == replicas


@pytest.mark.parametrize(
    "wish",
    [orders.SignalWorkers(names=WEB, signal="HUP"), orders.ScaleWorker(name="web", replicas=2)],
)
def test_who_paused_a_worker_is_not_forgotten_when_another_signals_or_scales_it(wish):
    scenario = Scenario(web).orders(orders.PauseWorkers(names=WEB), author="ann")
    scenario.orders(wish, author="bob")
    assert entry(scenario).ordered_down == "paused by ann"


def test_a_signal_leaves_the_declaration_of_the_worker_as_it_is():
    scenario = Scenario(web)
    before = entry(scenario)
    scenario.orders(orders.SignalWorkers(names=WEB, signal="HUP"))
    assert entry(scenario) == before


def test_an_order_for_several_workers_is_taken_whole_or_not_at_all():
    scenario = Scenario(web, db).orders(orders.DisableWorkers(names=("db",)))
    scenario.orders(orders.StartWorkers(names=("web", "db")))
    assert scenario.refusal is not None
    assert entry(scenario).override == PLAIN
    scenario.orders(orders.StopWorkers(names=("web", "db")))
    assert not entry(scenario).wanted
    assert not entry(scenario, "db").up


@pytest.mark.accepts("P12", "M-48")
@pytest.mark.parametrize("wish", ABOUT_WEB, ids=lambda wish: type(wish).__name__)
def test_an_order_about_one_worker_leaves_the_others_alone(wish):
    scenario = Scenario(web, db)
    before = entry(scenario, "db")
    assert entry(scenario.orders(wish), "db") is before


def test_pausing_the_supervisor_changes_no_worker():
    scenario = Scenario(web)
    before = entry(scenario)
    assert scenario.orders(orders.PauseSupervisor()).declaration.paused
    assert entry(scenario) is before
    assert not scenario.orders(orders.ResumeSupervisor()).declaration.paused


@pytest.mark.parametrize(("keep", "closing"), [(True, "keep"), (False, "stop")])
def test_a_supervisor_that_ends_takes_no_more_orders(keep, closing):
    scenario = Scenario(web).orders(orders.ShutDown(keep_workers=keep))
    assert scenario.declaration.closing == closing
    before = scenario.declaration
    for wish in (*ABOUT_WEB, orders.Declare(specs=()), orders.ShutDown()):
        scenario.orders(wish)
        assert scenario.refusal is not None
        assert scenario.refusal.code == "UPH_SUPERVISOR_STOPPING"
    assert scenario.declaration is before


def test_an_end_that_is_asked_for_again_in_a_hurry_allows_no_more_grace():
    scenario = Scenario(web).orders(orders.ShutDown(hurry=True))
    assert not scenario.declaration.hurried, "the first time everybody gets it"
    version = scenario.declaration.version
    scenario.orders(orders.ShutDown(hurry=True))
    assert scenario.declaration.hurried
    assert scenario.declaration.version == version + 1


def test_a_hurry_does_not_end_workers_that_are_to_be_kept():
    scenario = Scenario(web).orders(orders.ShutDown(keep_workers=True))
    scenario.orders(orders.ShutDown(hurry=True))
    assert scenario.refusal is not None
    assert scenario.declaration.closing == "keep"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("wbe", "Did you mean 'web'?"),
        ("zzz", "See the names with: uphold status"),
        ("web.2", "'web.2' is one slot of 'web'; orders take the worker: 'web'."),
        ("zzz.2", "See the names with: uphold status"),
        ("no name", "See the names with: uphold status"),
    ],
)
def test_an_unknown_name_is_refused_with_the_one_that_was_meant(name, remedy):
    scenario = Scenario(web).orders(orders.StartWorkers(names=(name,)))
    assert scenario.refusal == unknown(name, scenario.declaration.workers)
    assert scenario.refusal == Refusal(
        code="UPH_WORKER_UNKNOWN",
        message=f"no worker is called '{name}'.",
        remedy=remedy,
        exit_code=5,
    )
    assert Scenario(web).orders(orders.ScaleWorker(name=name, replicas=2)).refusal is not None


def test_a_companion_can_be_restarted_or_signalled_and_no_more():
    pump = WorkerSpec(name="@pump")
    for wish in ABOUT_WEB:
        if isinstance(wish, orders.ScaleWorker):
            about_pump = replace(wish, name="@pump")
        else:
            about_pump = replace(wish, names=("@pump",))
        scenario = Scenario(pump).orders(about_pump)
        allowed = isinstance(wish, orders.RestartWorkers | orders.SignalWorkers)
        assert (scenario.refusal is None) is allowed, wish


def test_a_worker_that_runs_elsewhere_can_be_left_out_of_account_and_no_more():
    remote = WorkerSpec(name="web", kind=Kind.REMOTE)
    for wish in ABOUT_WEB:
        refusal = Scenario(remote).orders(wish).refusal
        refused = wish.VERB in ("start", "stop", "restart", "scale", "signal")
        assert (refusal is not None) is refused, wish
        if refusal is not None:
            assert f"runs elsewhere: it is listened to, and cannot be told to {wish.VERB}." in (
                refusal.message
            )
            assert "uphold pause web" in refusal.remedy


@pytest.mark.accepts("P12", "M-35")
def test_a_new_file_touches_only_the_workers_it_changes():
    scenario = Scenario(web, db)
    before = scenario.declaration
    changed = replace(web, command=("serve", "--fast"))
    scenario.declares(changed, db)
    after = scenario.declaration
    assert after.config_version == before.config_version + 1
    assert after.workers["db"] is before.workers["db"]
    assert after.workers["web"].spec == changed


@pytest.mark.accepts("M-08")
def test_a_worker_tells_which_version_of_the_file_brought_its_spec():
    scenario = Scenario(web, db)
    scenario.declares(web, replace(db, shell=True))
    assert entry(scenario).desired_version == 1
    assert entry(scenario, "db").desired_version == 2 == scenario.declaration.config_version


@pytest.mark.accepts("M-21", "P12")
def test_what_is_no_longer_in_the_file_is_no_longer_declared_but_companions_are():
    scenario = Scenario(WorkerSpec(name="@pump"), web, db).declares(db)
    assert set(scenario.declaration.workers) == {"@pump", "db"}


def test_companions_follow_the_file_where_it_says_which():
    pump, recorder = WorkerSpec(name="@pump"), WorkerSpec(name="@recorder", command=("a",))
    scenario = Scenario(pump, web)

    def declares(*companions):
        return scenario.orders(orders.Declare(specs=(web,), companions=companions)).declaration

    before = scenario.declaration.workers["@pump"]
    declared = declares(pump, recorder)
    assert set(declared.workers) == {"@pump", "@recorder", "web"}
    assert declared.workers["@pump"] == before
    changed = replace(recorder, command=("b",))
    assert declares(pump, changed).workers["@recorder"].spec == changed
    assert set(declares(pump).workers) == {"@pump", "web"}


def test_a_worker_that_returns_to_the_file_begins_without_old_orders():
    scenario = Scenario(web).orders(orders.StopWorkers(names=WEB)).declares().declares(web)
    assert entry(scenario).override == PLAIN


KEYS = {
    "autostart": (orders.StopWorkers(names=WEB), {"autostart": False}, "up"),
    "enabled": (orders.DisableWorkers(names=WEB), {"enabled": False}, "enabled"),
    "quarantined": (orders.QuarantineWorkers(names=WEB), {"quarantined": True}, "quarantined"),
    "replicas": (orders.ScaleWorker(name="web", replicas=2), {"replicas": 4}, "replicas"),
}


@pytest.mark.parametrize("key", KEYS)
def test_what_people_ordered_holds_until_the_file_changes_that_very_key(key):
    wish, changed, held_in = KEYS[key]
    scenario = Scenario(web).orders(wish)
    ordered = getattr(entry(scenario).override, held_in)
    assert ordered is not None

    for other in KEYS:
        if other != key:
            scenario.declares(replace(web, **KEYS[other][1])).declares(web)
    scenario.declares(replace(web, command=("x",))).declares(web)
    assert getattr(entry(scenario).override, held_in) == ordered

    scenario.declares(replace(web, **changed))
    assert getattr(entry(scenario).override, held_in) is None


def test_a_pause_is_no_key_of_the_file_so_no_file_lifts_it():
    scenario = Scenario(web).orders(orders.PauseWorkers(names=WEB))
    for _, changed, _ in KEYS.values():
        scenario.declares(replace(web, **changed))
        assert entry(scenario).override.held


def test_the_file_is_followed_in_one_place():
    held = Entry(spec=web, override=Override(up=False, replicas=2, held=True), desired_version=7)
    after = follow_file(held, replace(web, replicas=5))
    assert after.spec.replicas == after.replicas == 5
    assert after.override == Override(up=False, held=True)


def test_the_author_and_the_reason_of_the_last_order_are_kept():
    scenario = Scenario(web).orders(orders.StopWorkers(names=WEB), author="bob", reason="repair")
    assert entry(scenario).override.by == "bob: repair"
    scenario.orders(orders.StartWorkers(names=WEB), author="cal")
    assert entry(scenario).override.by == "cal"


def test_what_is_no_wish_is_an_error_and_changes_nothing():
    strange = Order(id="o", wish=_Strange(names=WEB), author="ann", origin="test", at=0.0)
    with pytest.raises(AssertionError):
        declare(Scenario(web).declaration, strange)


class _Strange(orders.Workers):
    VERB = "befriend"


@pytest.mark.accepts("P24")
def test_a_worker_is_kept_down_while_what_it_runs_from_is_changed():
    scenario = Scenario(web).at(0).orders(orders.WithholdWorkers(names=WEB))
    assert not entry(scenario).wanted
    assert entry(scenario).admin is Admin.ENABLED
    for wish in (orders.StartWorkers(names=WEB), orders.RestartWorkers(names=WEB)):
        refusal = declare(
            scenario.declaration, Order(id="o", wish=wish, author="ann", origin="t", at=0.0)
        )
        assert isinstance(refusal, Refusal)
        assert "being changed" in refusal.message
    assert entry(scenario.orders(orders.ReleaseWorkers(names=WEB))).wanted


@pytest.mark.accepts("P24")
def test_whoever_is_kept_down_stays_so_out_of_the_file_and_back_in_it():
    scenario = Scenario(web).at(0).orders(orders.WithholdWorkers(names=WEB))
    scenario.orders(orders.Declare(specs=()))
    assert scenario.declaration.withheld == scenario.declaration.absent == {"web"}
    scenario.orders(orders.Declare(specs=(web,)))
    assert (entry(scenario).wanted, scenario.declaration.absent) == (False, frozenset())
    scenario.orders(orders.ReleaseWorkers(names=WEB)).orders(orders.Declare(specs=()))
    assert not scenario.declaration.withheld
    scenario.orders(orders.WithholdWorkers(names=WEB))  # whoever is not there can be kept down too
    assert scenario.declaration.withheld == {"web"}
    scenario.orders(orders.ReleaseWorkers(names=WEB)).orders(orders.Declare(specs=(web,)))
    assert entry(scenario).wanted


@pytest.mark.accepts("C-149")
def test_what_was_held_or_stopped_before_stays_so_when_it_is_released():
    for wish in (orders.PauseWorkers(names=WEB), orders.StopWorkers(names=WEB)):
        scenario = Scenario(web).at(0).orders(wish)
        by = entry(scenario).override.by
        scenario.orders(orders.WithholdWorkers(names=WEB)).orders(orders.ReleaseWorkers(names=WEB))
        assert not entry(scenario).wanted
        assert entry(scenario).override.by == by


def test_an_errand_changes_nothing_that_is_wanted():
    before = Scenario(web).at(0)
    for wish in (orders.UpdateCode(names=WEB), orders.VerifyDatabase(names=())):
        order = Order(id="o", wish=wish, author="ann", origin="t", at=0.0)
        after = declare(before.declaration, order)
        assert dict(after.workers) == dict(before.declaration.workers)
