"""What runs while supervisors crash: workers of every kind, and what is done to which."""

from __future__ import annotations

TERMS = """
[supervisor]
name = "crash"
[defaults]
max_restarts = "unlimited"
backoff = {{ base = "5ms", max = "10ms" }}
stop = {{ grace = "10s" }}
environment = {{ CRASH_HOME = "{home}" }}
[workers.steady]
command = "sleep 10000"
replicas = 2
[workers.plain]
command = "sleep 10000"
logs = {{ mode = "file" }}
[workers.closer]
command = "exec 3>&-; exec sleep 10000"
shell = true
depends_on = ["steady"]
[workers.family]
command = "sleep 10000 & sleep 10000 & wait"
shell = true
[workers.stubborn]
command = "trap '' TERM; exec sleep 10000"
shell = true
stop = {{ grace = "20ms" }}
[workers.pair]
command = "sleep 10000"
replicas = 2
[workers.brief]
command = "sleep 0.03"
[workers.edited]
command = "sleep 10000"
environment = {{ CRASH_EDIT = "{edit}" }}
"""
EXTRA = '[workers.extra]\ncommand = "sleep 10000"\n'
ORDERED = ("plain", "closer", "family", "stubborn", "pair")
"""Workers that get orders; they and those of `edited`, `extra`, `brief` and the pump get kills."""
SETTLED = {
    **dict.fromkeys(("@pump", "steady", "steady.2", "edited", "pair.2"), "up"),
    **dict.fromkeys(("pair.3", "pair.4"), "down"),
}
"""What holds of the other slots once all is as the file says."""
FORGOTTEN = {"extra", "pair.2", "pair.3", "pair.4"}
"""Slots that come and go with the file and with orders; each time they begin anew."""
RESTLESS = "brief"
