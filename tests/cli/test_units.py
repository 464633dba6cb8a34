from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from uphold.cli.units import Unit, current_user, own_program
from uphold.core.specs import Limits, Need, Settings, StopRule, SupervisorSpec, WorkerSpec

WORKERS = (
    WorkerSpec(name="db", command=("x",), stop=StopRule(grace=60)),
    WorkerSpec(
        name="api",
        command=("x",),
        depends_on=(("db", Need.STARTED),),
        stop=StopRule(grace=20),
    ),
)
UNIT = Unit(
    program=("/opt/my tools/uphold",),
    config="/srv/100%/uphold.toml",
    home="/srv/$x/.uphold",
    settings=Settings(supervisor=SupervisorSpec(name="shop"), workers=WORKERS),
    user="shop",
    for_user=False,
)


def settings_of(unit: Unit) -> dict[str, str]:
    lines = [line for line in unit.text().splitlines() if "=" in line and line[0] != "#"]
    return dict(line.split("=", 1) for line in lines)


def test_a_unit_has_the_limits_of_the_file_it_is_for():
    found = settings_of(UNIT)
    assert found["Type"] == "notify"
    assert found["NotifyAccess"] == "main"
    assert found["User"] == "shop"
    assert found["TimeoutStopSec"] == "95"
    assert found["WatchdogSec"] == "90"
    assert found["WantedBy"] == "multi-user.target"
    assert found["RestartPreventExitStatus"] == "2 4 6"
    assert "Delegate" not in found


def test_words_are_written_as_systemd_reads_them():
    assert settings_of(UNIT)["ExecStart"] == (
        '"/opt/my tools/uphold" -c /srv/100%%/uphold.toml --home /srv/$$x/.uphold run --quiet'
    )


@pytest.mark.parametrize("on_exit", ["stop", "keep"])
def test_the_death_of_the_supervisor_is_not_that_of_its_workers(on_exit):
    supervisor = SupervisorSpec(name="shop", on_exit=on_exit, reconcile_every=60.0)
    unit = replace(UNIT, settings=replace(UNIT.settings, supervisor=supervisor))
    found = settings_of(unit)
    assert found["KillMode"] == "process"
    assert found["WatchdogSec"] == "180"


def test_workers_with_groups_need_delegation():
    grouped = replace(WORKERS[0], limits=Limits(processes=5))
    unit = replace(UNIT, settings=replace(UNIT.settings, workers=(grouped,)))
    assert settings_of(unit)["Delegate"] == "yes"


def test_for_a_user_it_stands_elsewhere_and_names_no_user():
    unit = replace(UNIT, user=None, for_user=True)
    assert "User" not in settings_of(unit)
    assert settings_of(unit)["WantedBy"] == "default.target"
    assert unit.text().startswith("# ~/.config/systemd/user/uphold-shop.service\n")


def test_the_unit_of_a_real_file_names_its_paths(uphold, home):
    result = uphold("export", "systemd")
    assert result.code == 0
    assert f"-c {home.parent / 'uphold.toml'} --home {home} run --quiet" in result.out
    assert uphold("export", "systemd", "--user").out != result.out
    shown = uphold("export", "systemd", "--json").json
    assert shown["unit"] == result.out
    assert shown["name"].endswith(".service")


def test_a_file_with_mistakes_gives_no_unit(uphold, home):
    (home.parent / "uphold.toml").write_text("[workers.a]\ncomand = 'x'\n")
    assert uphold("export", "systemd").code == 6


def test_the_program_is_named_by_its_full_path():
    assert own_program()[0].startswith("/")
    assert current_user()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_nothing_wrong_with_it(uphold, home, tmp_path):
    path = tmp_path / "uphold-test.service"
    path.write_text(uphold("export", "systemd").out)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "uphold-test" not in done.stderr
