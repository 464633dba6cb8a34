"""Homes without a supervisor: crafted journals and locks, real processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from uphold.core.overrides import Override
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Fault, Identity, SlotStatus, State
from uphold.host.homes import Home
from uphold.host.locks import HomeLock, Owner
from uphold.host.mirrors import render
from uphold.host.processes.slotlocks import SlotLock, SlotRecord
from uphold.host.proctable import boot_id, read_stat
from uphold.journal.rows import Owner as JournalOwner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.wire.overrides import encode_override

NOW = 1_767_225_600.0


def identity_of(pid: int, **changes: object) -> Identity:
    stat = read_stat(pid)
    assert stat is not None
    known = {
        "pid": pid,
        "start_ticks": stat.start_ticks,
        "boot_id": boot_id(),
        "inode": 0,
        "nonce": "n",
    }
    return Identity(**(known | changes))


def slot_of(name: str, identity: Identity | None, state: State = State.RUNNING) -> SlotStatus:
    return SlotStatus(
        slot=name,
        state=state,
        since=Instant(1.0),
        since_wall=NOW,
        generation=3,
        identity=identity,
        terms=WorkerSpec(name=name.partition(".")[0], command=("sleep", "600")),
        started_wall=NOW,
        proved_wall=NOW,
        restarts=2,
    )


@pytest.fixture
def leave(home: Path) -> Callable[..., None]:
    """Write what a supervisor leaves behind: a journal, and a lock that names a dead owner."""

    def write(*slots: SlotStatus, clean: bool = False, lock: bool = True) -> None:
        async def append() -> None:
            owner = JournalOwner(name="orion", hostname="h", pid=1)
            journal, _ = open_journal(home / "journal.db", boot_id=boot_id(), owner=owner, now=NOW)
            held = json.dumps({"held": True})
            await journal.append(Batch(slots=slots, overrides={"held": held}))
            await journal.close()

        asyncio.run(append())
        if not lock:
            return
        dead = Owner.this_process("5e9a", NOW)._replace(start_ticks=1, pidfd_inode=0)
        held = HomeLock.take(Home(home), dead)
        if clean:
            held.release(NOW + 60)
        else:
            held.let_go()

    return write


@pytest.mark.accepts("E-25", "R-08")
def test_where_nothing_ever_ran_the_answer_is_not_running(uphold, home):
    result = uphold("status", "--json")
    assert result.code == 3
    assert result.json["supervisor"]["ownership"] == "stopped"
    assert result.json["workers"] == []
    assert "not running" in uphold("status").out
    assert list(home.iterdir()) == []


@pytest.mark.accepts("R-07", "R-09", "R-15", "D-39", "E-25")
def test_after_a_kill_every_recorded_process_is_looked_for(uphold, leave, sleeper):
    alive, dead = sleeper(), sleeper()
    gone = slot_of("dead", identity_of(dead.pid))
    dead.kill()
    dead.wait()
    leave(
        slot_of("alive", identity_of(alive.pid)),
        gone,
        slot_of("reused", identity_of(alive.pid, start_ticks=1)),
        slot_of("rebooted", identity_of(alive.pid, boot_id="another boot")),
        slot_of("held", None, State.STOPPED),
    )
    result = uphold("status", "--json")
    assert result.code == 1
    supervisor = result.json["supervisor"]
    assert (supervisor["ownership"], supervisor["status"]) == ("stale", "failed")
    rows = {row["name"]: row for row in result.json["workers"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "alive": "running",
        "dead": "stopped",
        "held": "stopped",
        "rebooted": "stopped",
        "reused": "stopped",
    }
    assert rows["alive"]["why"] == "alive without a supervisor: the next start adopts it"
    assert rows["alive"]["pid"] == alive.pid
    assert rows["reused"]["pid"] is None
    assert rows["held"]["admin"] == "paused"
    assert (rows["alive"]["generation"], rows["alive"]["restarts"]) == (3, 2)


@pytest.mark.accepts("R-09", "B-11")
def test_looking_again_and_again_changes_nothing(uphold, home, leave, sleeper):
    leave(slot_of("alive", identity_of(sleeper().pid)), slot_of("old", None, State.STOPPED))

    def seen() -> tuple[int, str]:
        result = uphold("status", "--kv")
        lines = [line for line in result.out.splitlines() if ".last_health_at=" not in line]
        return result.code, "\n".join(lines)

    files = {path.name: path.read_bytes() for path in home.iterdir()}
    assert len({seen() for _ in range(5)}) == 1
    assert {path.name: path.read_bytes() for path in home.iterdir()} == files


@pytest.mark.accepts("D-36", "R-17")
def test_the_stale_key_value_lines_are_exactly_these(uphold, leave):
    leave(slot_of("old", None, State.STOPPED))
    lines = uphold("status", "--kv").out.splitlines()
    assert lines[:2] == ["ownership=stale", "running=false"]
    assert lines[3:] == [
        "started_at=2026-01-01T00:00:00.000Z",
        "stopped_at=none",
        "last_error=none",
        "worker:old.state=stopped",
        "worker:old.health=unknown",
        "worker:old.last_heartbeat=none",
        "worker:old.last_error=none",
        "worker:old.condition=stopped",
        "worker:old.last_health_at=2026-01-01T00:00:00.000Z",
    ]


def test_after_a_clean_stop_workers_that_were_kept_are_still_seen(uphold, leave, sleeper):
    leave(slot_of("kept", identity_of(sleeper().pid)), clean=True)
    result = uphold("status", "--json")
    assert result.code == 3
    assert result.json["supervisor"]["stopped_at"] == "2026-01-01T00:01:00.000Z"
    assert result.json["workers"][0]["state"] == "running"


@pytest.mark.parametrize(
    ("stopped_at", "began"),
    [
        ("2026-01-01T00:00:59.990Z", "2025-12-31T00:00:00.000Z"),
        ("2025-12-31T12:00:00.000Z", "2026-01-01T00:00:00.000Z"),
        (None, "2026-01-01T00:00:00.000Z"),
    ],
    ids=["ended by somebody else", "an earlier end", "no end known"],
)
def test_a_supervisor_began_when_it_began_whoever_ended_what_it_left(
    uphold, home, leave, stopped_at, began
):
    leave(clean=True)  # the lock names whoever took it last
    said = {"started_at": "2025-12-31T00:00:00.000Z", "stopped_at": stopped_at}
    (home / "runtime.json").write_text(json.dumps(said))
    assert f"started_at={began}" in uphold("status", "--kv").out.splitlines()


@pytest.mark.accepts("B-09", "E-25")
def test_a_lock_nobody_can_read_is_its_own_answer(uphold, home):
    (home / "lock").write_text("garbage")
    result = uphold("status", "--json")
    assert result.code == 4
    assert result.json["supervisor"]["ownership"] == "corrupt"
    assert result.json["supervisor"]["last_error"]["code"] == "UPH_LOCK_CORRUPT"


def test_without_a_journal_the_mirror_is_shown_and_nothing_is_called_alive_unproved(
    uphold, home, leave, sleeper
):
    leave()
    (home / "journal.db").unlink()
    process = sleeper()
    stat = read_stat(process.pid)
    assert stat is not None
    proved = {"pid": process.pid, "start_ticks": stat.start_ticks, "boot_id": boot_id()}
    workers = {
        "web": {"state": "running", "pid": process.pid},
        "api": {"state": "running", **proved},
    }
    (home / "runtime.json").write_text(json.dumps({"workers": workers, "supervisor": {}}))
    rows = {row["name"]: row for row in uphold("status", "--json").json["workers"]}
    assert rows["api"]["state"] == "running"
    assert rows["web"]["state"] == "stopped"


@pytest.mark.accepts("E-25")
def test_an_unknown_name_is_told_the_nearest_one(uphold, leave):
    leave(slot_of("mailer", None, State.STOPPED))
    result = uphold("status", "mialer")
    assert result.code == 5
    assert "Did you mean 'mailer'?" in result.err


def test_why_and_show_work_without_a_supervisor(uphold, leave, sleeper):
    leave(slot_of("api", identity_of(sleeper().pid)))
    why = uphold("why", "api")
    assert why.code == 0
    assert "No supervisor is running here (ownership: stale)" in why.out
    assert "the next start adopts it" in why.out
    shown = uphold("show", "api")
    assert shown.code == 0
    assert "state            running" in shown.out
    assert uphold("show", "api", "--json").json["slots"][0]["slot"] == "api"
    assert uphold("why", "apo").code == 5


def test_the_slots_of_a_worker_stand_together_in_order(uphold, leave):
    names = ["web.10", "web.2", "api", "web"]
    leave(*(slot_of(name, None, State.STOPPED) for name in names))
    rows = uphold("status", "--json").json["workers"]
    assert [row["slot"] for row in rows] == ["api", "web", "web.2", "web.10"]
    assert [row["slot"] for row in uphold("status", "web.2", "--json").json["workers"]] == ["web.2"]


def test_workers_stand_in_the_order_of_the_file_as_with_a_supervisor(uphold, home, leave):
    leave(*(slot_of(name, None, State.STOPPED) for name in ("api", "web", "web.2", "zoo")))
    config = home.parent / "uphold.toml"
    config.write_text("".join(f'[workers.{name}]\ncommand = "x"\n' for name in ("web", "api")))
    rows = uphold("status", "--json").json["workers"]
    assert [row["slot"] for row in rows] == ["web", "web.2", "api", "zoo"]
    config.write_text("[workers.web]\n[workers.api]\ncommand = '${NOT_SET}'\n[nonsense]\n")
    rows = uphold("status", "--json").json["workers"]
    assert [row["slot"] for row in rows] == ["web", "web.2", "api", "zoo"], "right or wrong"
    config.write_text("no file any more")
    rows = uphold("status", "--json").json["workers"]
    assert [row["slot"] for row in rows] == ["api", "web", "web.2", "zoo"], "by name, then"


def test_the_worst_stands_first_without_a_supervisor_too(uphold, home, leave, sleeper):
    fault = Fault(code="UPH_WORKER_EXITED", message="exited with code 1")
    leave(
        slot_of("alive", identity_of(sleeper().pid)),
        replace(slot_of("backing_off", None, State.BACKOFF), error=fault),
        slot_of("given_up", None, State.FAILED),
        slot_of("resting", None, State.STOPPED),
    )
    names = [line.split()[0] for line in uphold("status").out.splitlines()[1:5]]
    assert names == ["given_up", "backing_off", "alive", "resting"]


def test_of_one_that_is_down_the_last_error_is_told_unless_it_was_about_its_process(
    uphold, leave, sleeper
):
    process = sleeper()
    ran = identity_of(process.pid)
    process.kill()
    process.wait()
    exited = Fault(code="UPH_WORKER_EXITED", message="exited with code 1 after 2 s")
    hangs = Fault(code="UPH_STOP_UNKILLABLE", message="still alive after SIGKILL")
    leave(
        replace(slot_of("backing_off", None, State.BACKOFF), error=exited),
        replace(slot_of("ended", None, State.EXITED), error=exited),
        replace(slot_of("hung", ran, State.STOPPING), error=hangs),
        replace(slot_of("held", None, State.BACKOFF), error=exited),
        slot_of("resting", None, State.STOPPED),
    )
    told = {row["name"]: row["why"] for row in uphold("status", "--json").json["workers"]}
    assert told == {
        "backing_off": "exited with code 1 after 2 s",
        "ended": "exited with code 1 after 2 s",
        "hung": "no process; the supervisor that ran it is gone",
        "held": "paused; it stays down when a supervisor starts",
        "resting": "not running",
    }


def test_a_plan_without_a_supervisor_knows_what_people_ordered(uphold, home, leave):
    leave(slot_of("held", None, State.STOPPED))
    config = home.parent / "plan.toml"
    config.write_text("".join(f'[workers.{n}]\ncommand = ["x"]\n' for n in ("held", "free")))
    changes = uphold("plan", "--json", "-c", str(config)).json["changes"]
    assert [(each["name"], each["action"], each["reason"]) for each in changes] == [
        ("held", "none", "paused"),
        ("free", "start", "new"),
    ]


PLANNED = """
[workers.same]
command = ["sleep", "600"]
[workers.other]
command = ["sleep", "601"]
[workers.graceful]
command = ["sleep", "600"]
stop = { grace = "5s" }
[workers.few]
command = ["sleep", "600"]
replicas = 2
[workers.many]
command = ["sleep", "600"]
[workers.off]
command = ["sleep", "600"]
enabled = false
[workers.held]
command = ["sleep", "600"]
[workers.gave_up]
command = ["sleep", "600"]
[workers.mended]
command = ["sleep", "60"]
[workers.old]
command = ["sleep", "600"]
"""


def test_a_plan_without_a_supervisor_knows_what_lives(uphold, home, leave, sleeper):
    alive = ("same", "other", "graceful", "few", "many", "many.2", "off", "held", "gone", "@pump")
    found = [slot_of(name, identity_of(sleeper().pid)) for name in alive]
    folder = str(home.parent)
    terms = {"working_dir": folder}
    found += [slot_of("gave_up", None, State.FAILED), slot_of("mended", None, State.FAILED)]
    found += [slot_of("old", None, State.STOPPED)]
    leave(*(replace(each, terms=replace(each.terms, **terms)) for each in found))
    config = home.parent / "uphold.toml"
    config.write_text(PLANNED)
    changes = uphold("plan", "--json").json["changes"]
    assert [(each["name"], each["action"], each["reason"]) for each in changes] == [
        ("same", "none", "alive, will be adopted"),
        ("other", "restart", "changed: command"),
        ("graceful", "update", "applies in place: stop.grace"),
        ("few", "start", "1 of 2 alive, will be adopted"),
        ("many", "update", "1 of 2 alive will be adopted, the others stopped"),
        ("off", "stop", "alive, but disabled"),
        ("held", "stop", "alive, but paused"),
        ("gave_up", "none", "failed, stays down"),
        ("mended", "start", "changed: command"),
        ("old", "start", "not running"),
        ("gone", "remove", "no longer in the file: alive, will be stopped"),
    ]
    assert "same      none     alive, will be adopted" in uphold("plan").out


def test_a_plan_without_its_journal_goes_by_the_mirror_and_the_slots_own_files(
    uphold, home, sleeper
):
    """As the next supervisor does: what was ordered stands in the one, what lives in the others."""
    for folder in ("slots", "run"):
        (home / folder).mkdir()
    for name in ("api", "held", "gone"):
        lock = SlotLock.take(home / "slots" / f"{name}.lock")
        ran = identity_of(sleeper().pid)
        lock.write(SlotRecord(3, "n", ran.boot_id, ran.pid, ran.start_ticks))
        lock.close()
    (home / "slots" / "off.lock").write_text("garbage")
    orders = {"held": Override(held=True, by="ada"), "off": Override(enabled=False, by="ada")}
    state = {"overrides": {name: encode_override(each) for name, each in orders.items()}}
    (home / "runtime.json").write_bytes(render(state))
    config = home.parent / "uphold.toml"
    names = ("api", "held", "off", "new")
    config.write_text("".join(f'[workers.{name}]\ncommand = ["sleep", "60"]\n' for name in names))
    changes = uphold("plan", "--json").json["changes"]
    assert [(each["name"], each["action"], each["reason"]) for each in changes] == [
        ("api", "none", "alive, will be adopted"),
        ("held", "stop", "alive, but paused by ada"),
        ("off", "none", "disabled by ada"),
        ("new", "start", "new"),
        ("gone", "remove", "no longer in the file: alive, will be stopped"),
    ]


def test_what_is_told_of_one_that_is_down_reads_well(uphold, leave):
    leave(
        replace(slot_of("one", None, State.STOPPED), restarts=1),
        replace(slot_of("new", None, State.STOPPED), restarts=0, proved_wall=0.0),
    )
    told = uphold("show", "one").out
    assert "generation       3, restarted once by itself" in told
    assert "since            2026-01-01T00:00:00.000Z\n" in told
    fresh = uphold("show", "new").out
    assert "restarted never by itself" not in fresh
    assert "generation       3, never restarted by itself" in fresh
    assert "unknown, never seen" in fresh
