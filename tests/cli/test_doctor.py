"""`uphold doctor`: every check by what it says of a home that is so and so."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
from contextlib import closing
from typing import NamedTuple

import pytest

from uphold.cli.checkups import findings, homes, machines, workers
from uphold.cli.checkups.findings import Level
from uphold.core.specs import Kind, WorkerSpec
from uphold.errors import ConfigInvalid, HostFailure, Problem
from uphold.host import processes as here
from uphold.host.environments import Account
from uphold.host.processes import containment
from uphold.host.processes.slotlocks import SlotRecord
from uphold.host.proctable import boot_id
from uphold.journal.rows import Owner
from uphold.journal.tables import AUDIT_COUNT
from uphold.journal.writing import open_journal


def levels(result):
    return {each["check"]: each["level"] for each in result.json["checks"]}


def found(result, check):
    return next(each for each in result.json["checks"] if each["check"] == check)


def write_journal(home):
    owner = Owner(name="orion", hostname="host-1", pid=1, id="s-1")
    journal, _ = open_journal(home / "journal.db", boot_id="b", owner=owner, now=1.0)
    journal.prepare()
    asyncio.run(journal.close())
    return home / "journal.db"


@pytest.mark.accepts("E-21")
def test_a_home_that_is_well_passes_every_check(uphold, home):
    write_journal(home)
    result = uphold("doctor")
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[0].startswith(("ok", "warn"))
    assert lines[-1].startswith(f"{sum(not line.startswith(' ') for line in lines) - 1} checks: ")
    assert "fail" not in result.out
    assert "/sleep." in result.out


@pytest.mark.accepts("E-21")
def test_each_check_has_a_level_a_detail_and_a_remedy_where_something_is_wrong(uphold, home):
    result = uphold("doctor", "--json")
    assert result.json["ok"] is True
    for each in result.json["checks"]:
        assert set(each) == {"check", "level", "detail", "remedy"}
        assert each["detail"].endswith((".", ")")), each
        assert (each["remedy"] is None) == (each["level"] == "ok"), each
    assert {"python", "sqlite", "kernel", "exits", "orphans", "containment", "clock"} <= set(
        levels(result)
    )
    assert {"home", "file system", "disk space", "supervisor", "journal", "left-overs"} <= set(
        levels(result)
    )
    assert {"config", "inotify", "open files", "worker api"} <= set(levels(result))


@pytest.mark.accepts("E-21")
def test_nothing_is_made_or_changed_by_looking(uphold, home):
    write_journal(home)
    (home / "lock").write_text("nonsense")

    def everything():
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_mode, path.stat().st_size)
            for path in [home, *home.rglob("*")]
        }

    before = everything()
    uphold("doctor")
    assert everything() == before


def test_without_a_home_only_that_it_will_be_made(uphold, home):
    home.rmdir()
    result = uphold("doctor", "--json")
    assert result.code == 0
    assert "the first start makes it" in found(result, "home")["detail"]
    assert not home.exists()


def test_without_a_configuration_the_machine_is_looked_at_all_the_same(uphold, home):
    (home.parent / "uphold.toml").unlink()
    home.rmdir()
    result = uphold("doctor", "--json")
    assert result.code == 1
    assert found(result, "config")["level"] == "fail"
    assert "uphold init" in found(result, "config")["remedy"]
    assert levels(result)["clock"] == "ok"


def test_a_configuration_with_problems_fails_and_names_them(uphold, home):
    (home.parent / "uphold.toml").write_text("[workers.api]\ncomand = 'x'\n")
    told = found(uphold("doctor", "--json"), "config")
    assert (told["level"], "comand" in told["detail"]) == ("fail", True)
    assert "uphold check" in told["remedy"]


def test_a_home_that_others_may_write_to_fails(uphold, home):
    home.chmod(0o770)
    result = uphold("doctor", "--json")
    assert result.code == 1
    assert found(result, "home")["remedy"].endswith(f"chmod 700 {home}")
    home.chmod(0o750)
    assert levels(uphold("doctor", "--json"))["home"] == "warn"


def test_a_home_that_is_no_folder_or_cannot_be_made_fails(tmp_path):
    (tmp_path / "file").write_text("")
    (each,) = homes.home(str(tmp_path / "file"))
    assert each.level is Level.FAIL
    (each,) = homes.home(str(tmp_path / "nowhere" / "home"))
    assert each.level is Level.FAIL


def test_a_home_of_somebody_else_names_its_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    first, *_ = homes.home(str(tmp_path))
    assert first.level is Level.FAIL
    assert "sudo -u" in first.remedy


class Room(NamedTuple):
    f_bavail: int
    f_frsize: int
    f_files: int
    f_favail: int


@pytest.mark.parametrize(
    ("room", "check", "level"),
    [
        (Room(1_000_000, 4096, 0, 0), "disk space", Level.OK),
        (Room(10_000, 4096, 0, 0), "disk space", Level.WARN),
        (Room(10, 4096, 0, 0), "disk space", Level.FAIL),
        (Room(1_000_000, 4096, 5000, 3), "disk files", Level.FAIL),
    ],
)
def test_a_disk_without_room_is_told(tmp_path, monkeypatch, room, check, level):
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    assert (check, level) in {(each.check, each.level) for each in homes.home(str(tmp_path))}


def test_a_network_file_system_fails(tmp_path, monkeypatch):
    def refuse(path):
        raise HostFailure(f"{path} lies on NFS.", remedy="Choose a local disk.")

    monkeypatch.setattr(homes, "refuse_network_filesystem", refuse)
    assert Level.FAIL in {each.level for each in homes.home(str(tmp_path))}


def test_a_lock_that_cannot_be_read_fails(uphold, home):
    (home / "lock").write_text("{nonsense")
    result = uphold("doctor", "--json")
    assert (result.code, levels(result)["supervisor"]) == (1, "fail")


def test_a_supervisor_that_answers_is_well(uphold, supervisor, home):
    os.chmod(home / "control.sock", 0o600)
    result = uphold("doctor", "--json")
    assert levels(result)["supervisor"] == "ok"
    assert levels(result)["control socket"] == "ok"
    assert "left-overs" not in levels(result)
    os.chmod(home / "control.sock", 0o666)
    assert levels(uphold("doctor", "--json"))["control socket"] == "fail"


def test_a_supervisor_that_cannot_be_reached_fails(uphold, own):
    own()
    result = uphold("doctor", "--json")
    assert (result.code, levels(result)["control socket"]) == (1, "fail")


def test_a_damaged_journal_fails_and_old_ones_are_told(uphold, home):
    path = write_journal(home)
    (home / "journal.db.corrupt-20260101T000000Z").write_text("x")
    assert found(uphold("doctor", "--json"), "old journals")["level"] == "warn"
    path.write_bytes(b"SQLite format 3\0" + b"\xaa" * 4000)
    result = uphold("doctor", "--json")
    assert (result.code, levels(result)["journal"]) == (1, "fail")


def test_an_altered_audit_fails(uphold, home):
    path = write_journal(home)
    with closing(sqlite3.connect(path, isolation_level=None)) as hand:
        hand.execute("INSERT OR REPLACE INTO meta_t (key, value) VALUES (?, '7')", (AUDIT_COUNT,))
    result = uphold("doctor", "--json")
    assert (result.code, levels(result)["audit"]) == (1, "fail")
    assert "audit verify" in found(result, "audit")["remedy"]


def test_a_large_journal_is_told(tmp_path, monkeypatch):
    file = tmp_path / "journal.db"
    file.write_text("x" * 100)
    monkeypatch.setattr(homes, "_LARGE", 50)
    assert homes._size_of(file).level is Level.WARN


def test_processes_without_a_supervisor_are_named(uphold, home):
    (home / "slots").mkdir()
    child = subprocess.Popen(["sleep", "600"], env={**os.environ, "UPHOLD_NONCE": "n0nce"})
    try:
        record = SlotRecord(1, "n0nce", boot_id(), child.pid, 1, 0)
        text = " ".join(str(part) for part in record)
        (home / "slots" / "api.lock").write_text(f"{text}\n")
        told = found(uphold("doctor", "--json"), "left-overs")
        assert told["level"] == "warn"
        assert str(child.pid) in told["detail"]
    finally:
        child.kill()
        child.wait()


# Programs


def spec(tmp_path, *command, **terms):
    return WorkerSpec(name="api", command=command, working_dir=str(tmp_path), **terms)


def level_of(one):
    (each,) = workers.program(one)
    return each.level, each.detail


@pytest.mark.accepts("B-91", "B-95")
def test_a_program_is_shown_by_its_full_path(tmp_path):
    level, detail = level_of(spec(tmp_path, "sleep", "1"))
    assert level is Level.OK
    assert detail.startswith("/")
    assert level_of(spec(tmp_path, "echo $X", shell=True)) == (Level.OK, "/bin/sh.")


@pytest.mark.accepts("B-91")
def test_a_file_that_is_not_executable_is_not_available(tmp_path):
    (tmp_path / "serve").write_text("#!/bin/sh\n")
    level, detail = level_of(spec(tmp_path, "./serve"))
    assert level is Level.FAIL
    assert "not executable" in detail
    (tmp_path / "serve").chmod(0o755)
    assert level_of(spec(tmp_path, "./serve"))[0] is Level.OK


@pytest.mark.accepts("B-91")
@pytest.mark.parametrize("first", ["#!/no/such/program\n", "#!/etc\n", ""])
def test_a_script_that_nothing_can_run_is_not_available(tmp_path, first):
    (tmp_path / "serve").write_text(first)
    (tmp_path / "serve").chmod(0o755)
    assert level_of(spec(tmp_path, "./serve"))[0] is Level.FAIL


def test_a_missing_program_folder_or_user_fails(tmp_path):
    assert level_of(spec(tmp_path, "no-such-program"))[0] is Level.FAIL
    assert level_of(spec(tmp_path / "nowhere", "sleep"))[0] is Level.FAIL
    assert level_of(spec(tmp_path, "sleep", user="nobody-at-all"))[0] is Level.FAIL


def test_a_program_is_judged_by_the_user_who_is_to_run_it(tmp_path):
    somebody = Account(uid=54321, gid=54321, name="somebody")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    program = private / "serve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert "may not enter" in str(workers._unusable(str(program), somebody))
    assert workers._unusable("/bin/sh", somebody) is None
    assert workers._unusable(str(program), None) is None
    member = Account(uid=54321, gid=1, groups=(os.stat(program).st_gid,))
    assert workers._may_enter(str(program), member)
    program.chmod(0o744)
    assert not workers._may_enter(str(program), somebody)
    own = Account(uid=os.geteuid(), gid=54321)
    assert workers._may_enter(str(program), own)


def test_workers_without_a_program_are_left_alone(tmp_path):
    assert list(workers.program(spec(tmp_path, kind=Kind.REMOTE))) == []


def test_what_fails_is_not_warned_of_too(uphold, home):
    (home.parent / "uphold.toml").write_text("[workers.api]\ncommand = 'no-such-program'\n")
    result = uphold("doctor", "--json")
    about = [each for each in result.json["checks"] if "no-such-program" in each["detail"]]
    assert [each["check"] for each in about] == ["worker api"]


# The machine


def test_too_few_open_files_fail(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    assert [each.level for each in machines.limits(1000)] == [Level.FAIL]
    assert [each.level for each in machines.limits(30)] == [Level.WARN]
    assert [each.level for each in machines.limits(1)] == [Level.OK]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    assert [each.level for each in machines.limits(1000)] == [Level.OK]


def test_a_clock_that_cannot_be_right_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(machines, "now", lambda: 0.0)
    assert [each.level for each in machines.clock("")] == [Level.FAIL]
    (tmp_path / "lock").write_text("")
    monkeypatch.setattr(machines, "now", lambda: machines._FROM + 5)
    assert [each.level for each in machines.clock(str(tmp_path))] == [Level.WARN]


def test_a_poorer_kernel_is_told_what_is_missing(monkeypatch):
    poor = containment()._replace(sure_identity=False, exits_of_adopted=False)
    monkeypatch.setattr(here, "containment", lambda: poor)
    monkeypatch.setattr(here, "can_reap", lambda: False)
    told = {each.check: each.level for each in machines.kernel()}
    assert told["kernel"] is told["exits"] is told["orphans"] is Level.WARN

    def refuse():
        raise OSError("no pidfd")

    monkeypatch.setattr(here, "containment", refuse)
    assert [each.level for each in machines.kernel()] == [Level.FAIL]


def test_an_old_interpreter_is_told(monkeypatch):
    monkeypatch.setattr(machines, "_OLDEST_PYTHON", (99, 0))
    monkeypatch.setattr(machines, "_OLDEST_SQLITE", (99, 0))
    assert [each.level for each in machines.interpreter()] == [Level.FAIL, Level.WARN]


def test_a_configuration_that_cannot_be_watched_is_told():
    (told,) = machines.news_of_files("/no/such/folder/uphold.toml")
    assert told.level is Level.WARN


def test_a_check_that_breaks_is_a_finding_and_nothing_more():
    def breaks():
        raise RuntimeError("oops")
        yield

    def refuses():
        raise ConfigInvalid([Problem("a:1", "wrong.")])
        yield

    (told,) = findings.look("x", breaks)
    assert told.level is Level.FAIL
    assert "oops" in told.detail
    (told,) = findings.look("x", refuses)
    assert "a:1: wrong." in told.detail
