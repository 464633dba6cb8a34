"""Documents of `status`, as the control socket gives them, for tests of what is made of them."""

from __future__ import annotations

from uphold.core.times import utc_text

NOW = 1_794_886_800.0


def worker(name, *, slot=None, state="running", health="healthy", **more):
    """Give the row of one slot."""
    conditions = {"running": "running", "backoff": "error", "failed": "error"}
    return {
        "name": name,
        "slot": slot or name,
        "kind": "process",
        "team": None,
        "admin": "enabled",
        "state": state,
        "health": health,
        "condition": conditions.get(state, "stopped"),
        "pid": 4250 if state == "running" else None,
        "generation": 3,
        "since": utc_text(NOW - 12),
        "uptime": 12.0 if state == "running" else 0.0,
        "restarts": 2,
        "exit": None,
        "last_heartbeat_at": None,
        "last_health_at": utc_text(NOW),
        "last_error": None,
        "next_attempt_at": None,
        "why": "up since 12 s" if state == "running" else state,
        **more,
    }


def document(*workers, supervisor_id="s-1", name="orion", **about):
    """Give a whole document."""
    return {
        "schema": 1,
        "supervisor": {
            "id": supervisor_id,
            "name": name,
            "ownership": "running",
            "status": "active",
            "health": "healthy",
            "pid": 4242,
            "started_at": utc_text(NOW - 60),
            "stopped_at": None,
            "version": 17,
            "last_error": None,
            "home": "/srv/app/.uphold",
            "config": "/srv/app/uphold.toml",
            "uphold": "0.1.0",
            "host": "node-1",
            "heartbeat_every": 30.0,
            "loop_lag": 0.004,
            **about,
        },
        "workers": list(workers),
    }
