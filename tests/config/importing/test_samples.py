"""Whole files as they are found on servers: every line of their reports, and what they become."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from uphold.config.importing.emitting import toml_of
from uphold.config.importing.reading import import_file
from uphold.config.loading import load

SAMPLES = Path(__file__).parent / "samples"
NAMES = ("supervisord.conf", "process-compose.yaml", "Procfile", "shop@eu.service")
ENVIRON = {"SHOP_SECRET": "x", "HOME": "/somewhere"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The samples in a folder of their own, with what they refer to."""
    for name in NAMES:
        shutil.copy(SAMPLES / name, tmp_path)
    (tmp_path / "search.env").write_text("SHARDS=3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(imported):
    lines = []
    for line in imported.report:
        number = line.at.rpartition(":")[2] if ":" in line.at else "-"
        name = f"{line.section} {line.setting}".strip()
        lines.append(f"{line.verdict} {number} {name} = {line.how}")
    return lines


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_the_report_is_as_expected(place, name):
    assert told(import_file(name)) == (SAMPLES / f"{name}.report").read_text().splitlines()


def workers_of(place, name):
    imported = import_file(name)
    file = place / "imported.toml"
    file.write_text(toml_of(imported, source=name))
    return {spec.name: spec for spec in load(file, environ=ENVIRON).workers}


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_a_configuration_without_mistakes(place, name):
    assert workers_of(place, name)


@pytest.mark.parametrize("name", ["supervisord.conf", "shop@eu.service"])
def test_no_setting_of_the_source_is_without_a_verdict(place, name):
    numbers = [
        number
        for number, line in enumerate((place / name).read_text().splitlines(), start=1)
        if re.match(r"[A-Za-z_.]+\s*=", line)
    ]
    judged = {line.at for line in import_file(name).report}
    assert len(numbers) > 25
    assert [number for number in numbers if f"{name}:{number}" not in judged] == []


def test_no_value_is_shown_in_a_report(place):
    report = "\n".join(told(import_file("supervisord.conf")))
    assert "not-shown-anywhere" not in report
    assert "a,b=c" not in report


def test_supervisord_programs_mean_the_same_as_before(place):
    workers = workers_of(place, "supervisord.conf")
    assert list(workers) == ["queue", "web_01", "web_02", "mails", "report"]
    web = workers["web_02"]
    assert web.command[:3] == ("/srv/shop/venv/bin/gunicorn", "--bind", "127.0.0.1:8002")
    assert dict(web.environment) == {
        "LANG": "C.UTF-8",
        "REGION": "eu",
        "SECRET_KEY": "x",
        "PORT": "8002",
        "HASH": "a,b=c",
    }
    assert (web.user, web.team, web.working_dir) == ("www-data", "shop", "/srv/shop")
    assert (web.stable_after, web.max_restarts, web.success_exit_codes) == (5.0, 10, (0, 2))
    assert (web.stop.signal, web.stop.grace) == ("TERM", 30.0)
    assert (web.logs.split, web.logs.max_size, web.logs.keep) == (False, 10 * 1024**2, 3)
    assert web.depends_on == (("queue", "started"),)
    queue = workers["queue"]
    assert (queue.restart, queue.stop.signal, queue.stop.grace) == ("always", "INT", 10.0)
    assert (queue.logs.split, queue.umask, queue.limits.nofile) == (True, 0o022, 4096)
    mails = workers["mails"]
    assert (mails.replicas, mails.restart, mails.umask) == (4, "on-failure", 0o027)
    report = workers["report"]
    assert report.command == ("bash", "-c", "sleep 5 && echo %")
    assert (report.autostart, report.restart) == (False, "no")
    assert report.working_dir == str(place / "reports")


def test_processes_of_process_compose_mean_the_same_as_before(place):
    workers = workers_of(place, "process-compose.yaml")
    assert [*workers] == [
        "postgres", "migrate", "api", "queue-0", "queue-1", "search", "notes", "cache",
    ]  # fmt: skip
    postgres = workers["postgres"]
    assert postgres.command == ("postgres", "-D", "data", "-p", "5433")
    assert postgres.working_dir == str(place / "db")
    assert dict(postgres.environment) == {"STAGE": "dev", "PGTZ": "UTC"}
    assert (postgres.restart, postgres.max_restarts) == ("always", None)
    assert (postgres.backoff.first, postgres.backoff.max) == (2.0, 2.0)
    assert (postgres.stop.signal, postgres.stop.grace) == ("INT", 20.0)
    assert (postgres.ready.way, postgres.ready.command) == (
        "exec",
        ("sh", "-c", "pg_isready -p 5433"),
    )
    assert (postgres.ready.every, postgres.ready.timeout, postgres.ready.failures) == (5.0, 4.0, 5)
    assert postgres.ready.initial_delay == 2.0
    api = workers["api"]
    script = 'echo "hello from ${HOSTNAME}"\nexec ./serve --port 8001\n'
    assert api.command == ("bash", "-c", script)
    assert dict(api.depends_on) == {"migrate": "completed", "postgres": "healthy"}
    assert (api.ready.target, api.live.target) == (
        "http://127.0.0.1:8001/healthz",
        "http://127.0.0.1:8001/live",
    )
    assert (api.essential, api.restart, api.team) == (True, "no", "web")
    assert workers["queue-1"].command[-1] == "1"
    assert dict(workers["queue-1"].depends_on)["search"] == "healthy"
    assert workers["search"].ready.target == r"listening \(all shards\)"
    assert workers["notes"].schedule.cron == "0 2 * * *"
    assert (workers["notes"].autostart, workers["cache"].enabled) == (False, False)


def test_a_procfile_means_the_same_as_before(place):
    (place / ".env").write_text("PORT=3000\nRACK_ENV=test\n")
    workers = workers_of(place, "Procfile")
    assert workers["web"].command == ("bundle exec puma -p $PORT -C config/puma.rb",)
    assert workers["web"].shell
    assert dict(workers["web"].environment) == {"PORT": "3000", "RACK_ENV": "test"}
    assert dict(workers["worker"].environment)["PORT"] == "3100"
    assert workers["worker"].command == ("bundle", "exec", "sidekiq")
    assert workers["release"].restart == "no"


def test_a_unit_means_the_same_as_before(place):
    (unit,) = workers_of(place, "shop@eu.service").values()
    assert unit.name == "shop-eu"
    assert unit.shell
    assert unit.command[0].endswith("exec /srv/shop/bin/serve --port 8001 $OPTIONS --name eu")
    assert (unit.user, unit.group, unit.umask) == ("shop", "shop", 0o027)
    assert dict(unit.environment)["GREETING"] == "hello world"
    assert (unit.restart, unit.backoff.first, unit.max_restarts) == ("on-failure", 0.5, 5)
    assert (unit.stop.signal, unit.stop.grace) == ("INT", 90.0)
    assert unit.stop.command == ("/srv/shop/bin/ctl", "stop")
    assert (unit.limits.nofile, unit.limits.nice) == (65536, 5)
    assert (unit.limits.memory, unit.limits.cpu) == (1024**3, 0.5)
    assert (unit.ready.way, unit.heartbeat.stale_after) == ("notify", 30.0)
