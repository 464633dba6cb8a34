"""Workers that run elsewhere, under a real supervisor."""

from __future__ import annotations

import pytest

from proofs.stuck import FrozenMount

pytestmark = pytest.mark.slow


@pytest.mark.accepts("O-40", "R-15")
def test_a_remote_worker_is_known_by_its_heartbeats(site):
    heartbeat = {"stale_after": "60s"}
    hasty = {"stale_after": "200ms"}
    site.workers(
        probe={"remote": True, "heartbeat": heartbeat},
        quiet={"remote": True, "heartbeat": hasty},
        web={"command": "sleep 1000", "depends_on": {"probe": "healthy"}},
    )
    site.ok("start")
    row = site.worker("probe")
    assert (row["state"], row["health"], row["pid"]) == ("running", "unknown", None)
    assert row["last_heartbeat_at"] is None
    assert site.worker("web")["state"] == "waiting"
    site.ok("beat", "probe", "--seq", "1", "--progress", "5")
    site.until("probe", health="healthy")
    site.until("web", state="running")
    answer = site.run("beat", "probe", "--seq", "1")
    assert answer.code == 4
    assert "already" in answer.err
    site.ok("beat", "probe", "--seq", "4", "--error", "no paper")
    assert "no paper" in site.until("probe", health="unhealthy")["why"]
    site.ok("beat", "probe")
    site.until("probe", health="healthy")
    silent = site.until("quiet", health="unhealthy")
    assert "unresponsive" in silent["why"]
    assert (silent["state"], silent["generation"]) == ("running", 1)
    shown = site.ok("show", "probe", "--json").json["worker"]["heartbeat"]
    assert (shown["gaps"], shown["lost"], shown["refused"]) == (1, 2, {"repeated": 1})
    assert "worker.beat_gap" in site.ok("events", "probe").out
    for verb in ("stop", "start", "restart"):
        answer = site.run(verb, "probe")
        assert answer.code == 4
        assert "runs elsewhere" in answer.err
    site.kill_supervisor()
    site.ok("start")
    assert site.until("probe", state="running")["generation"] == 1
    site.ok("beat", "probe", "--seq", "5")
    site.until("probe", health="healthy")
    site.ok("pause", "probe")
    assert site.worker("probe")["state"] == "stopped"
    assert "paused" in site.run("beat", "probe").err
    site.ok("resume", "probe")
    site.until("probe", state="running", health="unknown")
    site.kill_supervisor()
    site.ok("stop")


@pytest.mark.accepts("P17", "T12")
def test_heartbeats_on_a_share_that_hangs_hold_nobody_up(site):
    def terms(name):
        return {"remote": True, "heartbeat": {"file": f"share/{name}.json", "stale_after": "1s"}}

    many = {name: terms(name) for name in (f"probe{number}" for number in range(20))}
    inbox = '[inbox]\nshare = "share"\n'

    def declare(**more):
        site.workers(**many, **more)
        site.write(site.config.read_text() + inbox)

    silent = FrozenMount(site.folder / "share")
    try:
        silent.__enter__()
    except PermissionError:
        pytest.skip("nothing may be mounted here")
    try:
        declare()
        site.ok("start")
        for name in ("probe0", "probe19"):
            why = site.until(name, health="degraded")["why"]
            assert f"share/{name}.json cannot be read: its file system does not answer" in why
        declare(web="sleep 1000")
        site.ok("reload")
        site.until("web", state="running")
        site.ok("stop")  # a thread that hangs in the kernel would not let it end
    finally:
        silent.__exit__()
