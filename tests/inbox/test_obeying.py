"""Flags on a real share, through the real helper; only who carries them out is made up."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from uphold.core.specs import InboxSpec
from uphold.errors import HostFailure, StoreUnavailable
from uphold.host.clock import MachineClock
from uphold.inbox.flags import Rules
from uphold.inbox.obeying import Answer, Dealings, Obedience
from uphold.inbox.reaching import UNREACHABLE, Reach
from uphold.inbox.shares import Inbox, Share
from uphold.ports.logs import NoLog

FOLDERS = ("00_STATE", "05_LOGS", "Worker_Inbox", "Worker_Outbox")


class Site:
    """One share and one supervisor's view of it."""

    def __init__(self, folder, owner="orion"):
        self.top = folder
        self.inbox = folder / "Worker_Inbox"
        self.outbox = folder / "Worker_Outbox"
        for name in FOLDERS:
            (folder / name).mkdir(exist_ok=True)
        self.carried = []
        self.told = []
        self.heard = []
        self.deaf = 0
        """How many of the next refusals cannot be heard of."""
        self.first = {}
        self.rules = Rules(workers=frozenset({"OrionMX"}), fallback=("OrionMX",))
        self.answer = Answer(success=True, details={"state": "stopped"}, job_id="job_1")
        spec = InboxSpec(share=str(folder))
        self.reach = Reach(spec, owner=owner, clock=MachineClock())
        self.share = Share(spec, self.reach)
        self.clerk = Obedience(
            inbox=Inbox(self.reach),
            share=self.share,
            owner=owner,
            supervisor_id="id-1",
            dealings=Dealings(
                rules=lambda: self.rules,
                carry=self.carry,
                known=self.known,
                tell=self.tell,
                refused=self.refused,
            ),
            clock=MachineClock(),
            log=NoLog(),
        )

    async def carry(self, flag):
        self.carried.append(flag)
        if isinstance(self.answer, Exception):
            raise self.answer
        self.first[flag.task_id] = self.answer
        return self.answer

    async def known(self, task_id):
        return self.first.get(task_id)

    async def tell(self, kind, told):
        self.told += [(kind, about) for about, _ in told]

    async def refused(self, rejected):
        if self.deaf:
            self.deaf -= 1
            raise StoreUnavailable("the journal is away", code="UPH_STORE_UNREACHABLE")
        self.heard.append(rejected.task_id)

    def drop(self, name="supervisor_pause_OrionMX.flag", **content):
        given = {"task_id": f"task_{len(list(self.inbox.iterdir()))}", "handler": "pause_watcher"}
        (self.inbox / name).write_text(json.dumps({**given, **content}))

    def receipts(self):
        return [json.loads(path.read_text()) for path in sorted(self.outbox.iterdir())]

    def pending(self):
        return sorted(path.name for path in self.inbox.iterdir() if path.is_file())


def play(site, story):
    async def go():
        try:
            return await story()
        finally:
            await site.reach.close()

    return asyncio.run(go())


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.mark.accepts("C-026", "C-031", "C-046", "E-28")
def test_a_flag_is_carried_out_answered_and_gone(site):
    site.drop(label="disk swap", task_id="task_7")
    (deed,) = play(site, site.clerk.look)
    assert (deed.handler, deed.label, deed.success) == ("pause_watcher", "disk swap", True)
    (receipt,) = site.receipts()
    assert list(receipt) == [
        *("timestamp", "supervisor_id", "worker_id", "task_id", "job_id", "handler", "label"),
        *("success", "error", "details", "log_path"),
    ]
    assert (receipt["task_id"], receipt["job_id"], receipt["success"]) == ("task_7", "job_1", True)
    assert site.pending() == []
    assert list((site.inbox / "processing").iterdir()) == []
    assert site.told == [("flag.claimed", "task_7")]


@pytest.mark.accepts("C-032", "C-104", "C-105", "B-64")
def test_a_failed_order_is_answered_too_and_the_next_one_is_carried_out(site):
    site.answer = Answer(success=False, error="it would not stop")
    site.drop("supervisor_a_OrionMX.flag")
    site.drop("supervisor_b_OrionMX.flag", handler="restart_watcher")
    deeds = play(site, site.clerk.look)
    assert [deed.success for deed in deeds] == [False, False]
    assert {receipt["error"] for receipt in site.receipts()} == {"it would not stop"}
    assert site.pending() == []


@pytest.mark.accepts("C-040", "C-045")
def test_code_comes_before_operations_and_those_before_reports(site):
    for handler in ("diagnostics", "restart_watcher", "update_code", "pause_watcher"):
        site.drop(f"supervisor_{handler}_OrionMX.flag", handler=handler)
    play(site, site.clerk.look)
    assert [flag.handler for flag in site.carried] == [
        *("update_code", "pause_watcher", "restart_watcher", "diagnostics")
    ]


@pytest.mark.accepts("C-033", "C-034", "E-30", "P21")
def test_poison_is_moved_aside_with_a_reason_and_a_receipt(site):
    site.drop("supervisor_x_OrionMX.flag", handler="format_disk")
    bad = site.inbox / "supervisor_y_OrionMX.flag"
    bad.write_text("{not json")
    os.utime(bad, (1, 1))  # nobody will finish this
    site.drop("supervisor_z_OrionMX.flag")
    deeds = play(site, site.clerk.look)
    assert sorted(deed.success for deed in deeds) == [False, False, True]
    assert site.pending() == []
    kept = [path.name for path in (site.inbox / "rejected").iterdir()]
    assert len(kept) == 4
    assert len(site.receipts()) == 3
    assert [kind for kind, _ in site.told].count("flag.rejected") == 2


@pytest.mark.accepts("C-037", "P21")
def test_what_may_still_be_written_is_left_alone(site):
    (site.inbox / "supervisor_y_OrionMX.flag").write_text('{"task_id": "t')
    (site.inbox / "supervisor_y_OrionMX.flag.tmp").write_text("{}")
    assert play(site, site.clerk.look) == []
    assert len(site.pending()) == 2
    assert site.receipts() == []


@pytest.mark.accepts("C-035", "B-58")
def test_what_is_for_somebody_else_or_no_flag_is_never_touched(site):
    site.drop("supervisor_pause_Other.flag", worker_id="Other")
    (site.inbox / "invoice.task.json").write_text("{}")
    before = {path.name: path.stat().st_mtime_ns for path in site.inbox.iterdir()}
    assert play(site, site.clerk.look) == []
    after = {path.name: path.stat().st_mtime_ns for path in site.inbox.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.accepts("P20", "P22")
def test_the_same_task_has_one_effect_and_the_copy_gets_the_first_outcome(site):
    site.drop("supervisor_a_OrionMX.flag", task_id="task_7")
    site.drop("supervisor_b_OrionMX.flag", task_id="task_7")
    play(site, site.clerk.look)
    assert len(site.carried) == 1
    assert [receipt["success"] for receipt in site.receipts()] == [True, True]


@pytest.mark.accepts("C-036", "E-31", "B-59")
def test_what_a_dead_supervisor_had_claimed_is_finished_and_not_repeated(site, tmp_path):
    site.drop("supervisor_a_OrionMX.flag", task_id="task_7")
    site.drop("supervisor_b_OrionMX.flag", task_id="task_8")

    async def die_after_the_first():
        site.answer = RuntimeError("killed")
        with pytest.raises(RuntimeError):
            await site.clerk.look()

    play(site, die_after_the_first)
    assert len(list((site.inbox / "processing").iterdir())) == 2
    begun = site.carried[0].task_id
    next_one = Site(tmp_path)
    next_one.first[begun] = Answer(success=False, error="interrupted", job_id="job_1")
    deeds = play(next_one, next_one.clerk.look)
    assert {deed.task_id: deed.success for deed in deeds} == {
        begun: False,
        ({"task_7", "task_8"} - {begun}).pop(): True,
    }
    assert len(next_one.carried) == 1
    assert list((site.inbox / "processing").iterdir()) == []


@pytest.mark.accepts("C-036", "E-31", "P22")
@pytest.mark.parametrize(
    "rules",
    [
        Rules(workers=frozenset({"OrionMX"}), fallback=("OrionMX",), require_signature=True),
        Rules(workers=frozenset({"OrionMX"}), fallback=("OrionMX",), handlers=()),
        Rules(workers=frozenset({"Other"}), fallback=("Other",)),
    ],
    ids=["signatures", "handlers", "workers"],
)
def test_what_was_carried_out_is_not_refused_by_rules_that_came_later(site, rules):
    site.drop(task_id="task_7", worker_id="OrionMX")
    site.drop("supervisor_x_OrionMX.flag", task_id="task_8", handler="diagnostics", label="a\nb")

    async def lose_the_outbox():
        site.outbox.rmdir()
        with pytest.raises(HostFailure):
            await site.clerk.look()
        site.outbox.mkdir()
        site.rules = rules
        return await site.clerk.look()

    deeds = play(site, lose_the_outbox)
    assert {deed.task_id: deed.success for deed in deeds} == {"task_7": True, "task_8": False}
    assert {each["task_id"]: each["success"] for each in site.receipts()} == {
        "task_7": True,
        "task_8": False,
    }
    assert len(site.carried) == 1
    assert [about for kind, about in site.told if kind == "flag.rejected"] == ["task_8"]
    assert len(list((site.inbox / "rejected").iterdir())) == 2
    assert list((site.inbox / "processing").iterdir()) == []


@pytest.mark.accepts("C-036")
def test_another_supervisors_claims_are_its_own(site, tmp_path):
    site.answer = RuntimeError("killed")
    site.drop()

    async def die():
        with pytest.raises(RuntimeError):
            await site.clerk.look()

    play(site, die)
    stranger = Site(tmp_path, owner="vega")
    assert play(stranger, stranger.clerk.look) == []
    assert len(list((site.inbox / "processing").iterdir())) == 1


def test_a_receipt_that_could_not_be_left_is_left_at_the_next_poll(site):
    site.drop(task_id="task_7")

    async def lose_the_outbox():
        site.outbox.rmdir()
        with pytest.raises(HostFailure):
            await site.clerk.look()
        site.outbox.mkdir()
        return await site.clerk.look()

    (deed,) = play(site, lose_the_outbox)
    assert (deed.task_id, deed.success) == ("task_7", True)
    assert len(site.carried) == 1
    assert len(site.receipts()) == 1


@pytest.mark.accepts("C-038")
def test_without_an_inbox_nothing_is_done(site):
    site.inbox.rmdir()
    assert play(site, site.clerk.look) == []


@pytest.mark.accepts("C-012", "B-71")
def test_once_told_to_end_it_begins_no_further_flag_and_the_next_look_does(tmp_path):
    site = Site(tmp_path)
    site.drop("supervisor_pause_OrionMX.flag", task_id="first")
    site.drop("supervisor_resume_OrionMX.flag", task_id="second", handler="resume_watcher")

    async def story():
        cut = await site.clerk.look(lambda: len(site.carried) > 0)
        assert [deed.task_id for deed in cut] == ["first"]
        assert [each["task_id"] for each in site.receipts()] == ["first"]
        rest = await site.clerk.look()
        assert [deed.task_id for deed in rest] == ["second"]

    play(site, story)
    assert [flag.task_id for flag in site.carried] == ["first", "second"]
    assert site.pending() == []


@pytest.mark.accepts("E-28", "E-30", "S07")
def test_what_cannot_be_moved_away_is_told_once_and_keeps_no_order_waiting(site):
    (site.inbox / "rejected").symlink_to(site.top)

    async def look_twice():
        for number in range(3):
            site.drop(f"supervisor_a{number}.flag", handler="nonsense")
            site.drop(f"supervisor_b{number}.flag", task_id=f"order_{number}")
            with pytest.raises(HostFailure):
                await site.clerk.look()
            assert site.carried[-1].task_id == f"order_{number}"
        (site.inbox / "rejected").unlink()
        return await site.clerk.look()

    play(site, look_twice)
    assert [flag.task_id for flag in site.carried] == ["order_0", "order_1", "order_2"]
    assert sorted(receipt["success"] for receipt in site.receipts()) == [False] * 3 + [True] * 3
    assert list((site.inbox / "processing").iterdir()) == []
    assert len(list((site.inbox / "rejected").iterdir())) == 6


def test_refused_flags_of_the_same_name_have_a_receipt_each(site):
    async def drop_and_look():
        for _ in range(5):
            (site.inbox / "supervisor_x.flag").write_text("[]")
            await site.clerk.look()

    play(site, drop_and_look)
    assert len(site.receipts()) == 5


@pytest.mark.accepts("E-28", "E-30")
def test_a_refusal_that_somebody_could_not_hear_of_is_on_record_once_and_heard_later(site):
    tasks = ["task_1", "task_2", "task_3"]
    for task in tasks:
        site.drop(f"supervisor_{task}.flag", task_id=task, handler="nonsense")

    async def look_twice():
        site.deaf = 1
        with pytest.raises(StoreUnavailable):
            await site.clerk.look()
        return await site.clerk.look()

    deeds = play(site, look_twice)
    assert sorted(deed.task_id for deed in deeds) == tasks
    assert sorted(about for _, about in site.told) == tasks
    assert sorted(site.heard) == tasks
    assert len(site.receipts()) == 3


def given_up(site, monkeypatch, *, done):
    """Have the next dismissal take too long; `done`: all of it is done nevertheless."""
    asked, real = [], site.reach.ask_each

    async def ask_each(what, each):
        asked.append((what, list(each)))
        late = what == "dismiss" and [kind for kind, _ in asked].count("dismiss") == 1
        answers = await real(what, each) if done or not late else []
        if late:
            raise HostFailure("it took too long", code=UNREACHABLE)
        return answers

    monkeypatch.setattr(site.reach, "ask_each", ask_each)
    return lambda: [each["kept"] for what, few in asked if what == "dismiss" for each in few]


async def look_until_done(site):
    with pytest.raises(HostFailure):
        await site.clerk.look()
    deeds = await site.clerk.look()
    return [*deeds, *await site.clerk.look()]


@pytest.mark.accepts("E-28", "E-30", "S07")
@pytest.mark.parametrize("done", [True, False])
def test_refusals_that_took_too_long_are_counted_once_and_moved_away_once(site, monkeypatch, done):
    for task in ("task_1", "task_2"):
        site.drop(f"supervisor_{task}.flag", task_id=task, handler="nonsense")
    kept = given_up(site, monkeypatch, done=done)
    deeds = play(site, lambda: look_until_done(site))
    assert sorted(deed.task_id for deed in deeds) == ["task_1", "task_2"]
    assert sorted(about for _, about in site.told) == ["task_1", "task_2"]
    assert len(site.receipts()) == 2
    assert len(set(kept())) == 2, "whatever is asked again is asked for with the same name"
    moved = {path.name for path in (site.inbox / "rejected").glob("*.flag")}
    assert moved == set(kept())
