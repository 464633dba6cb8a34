"""Every key of the configuration, once: validation, JSON Schema and the manual come from here.

Defaults are written as people write them; a test holds them against `core.specs`.
"""

from __future__ import annotations

from typing import Final

from uphold.config.folders import (
    Accounts,
    Below,
    BelowList,
    FlagPattern,
    GitName,
    Senders,
    WorkerNames,
)
from uphold.config.kinds import (
    Account,
    Choice,
    Condition,
    Duration,
    FilePath,
    Flag,
    Fraction,
    Name,
    Size,
    StopSignal,
    Target,
    Umask,
    Whole,
)
from uphold.config.probes import HEARTBEAT, LIVE, READY
from uphold.config.shapes import Command, ExitCodes, Key, Needs, PassedNames, Table, TextTable
from uphold.config.stores import StoreUrl, TableNames
from uphold.config.timetables import CronText, ZoneName
from uphold.core.specs import (
    Backoff,
    Gate,
    Layout,
    Limits,
    Logs,
    RestartPolicy,
    Schedule,
    StopRule,
)

MINUTE: Final = 60.0
DAY: Final = 86400.0
YEAR: Final = 365 * DAY

SUPERVISOR: Final = Table(
    (
        Key("name", Name(dots=True), None, "What this supervisor is called; the host's name."),
        Key("home", FilePath(), ".uphold", "Where state, logs and sockets lie."),
        Key("reconcile_every", Duration(0.1, DAY), "30s", "Longest time between two full looks."),
        Key("heartbeat_every", Duration(0.1, DAY), "30s", "How often it says that it lives."),
        Key("on_exit", Choice(("stop", "keep")), "stop", "What TERM or INT does to workers."),
    )
)

STORE: Final = Table(
    (
        Key("url", StoreUrl(), None, "The database that gets a copy of everything."),
        Key(
            "critical_tables",
            TableNames(),
            ["jobs_t", "workers_t", "audit_log_t", "events_t"],
            "The tables whose rows verify-db counts.",
        ),
        Key("spool", Size(2**20, 2**44), "256MiB", "Size of events that wait for it at most."),
    ),
)

JOURNAL: Final = Table(
    (
        Key("events_for", Duration(60, 100 * YEAR), "30d", "How long events are kept."),
        Key("events_at_most", Whole(1000, 10**9), 100_000, "How many events are kept."),
        Key("jobs_for", Duration(60, 100 * YEAR), "90d", "How long finished jobs are kept."),
        Key("audit_for", Duration(60, 100 * YEAR), "730d", "How long the audit is kept."),
        Key("max_size", Size(2**20, 2**44), "256MiB", "Size above which older events go."),
    ),
)

LAYOUT: Final = Table(
    (
        Key("state", Below(), "00_STATE", "Heartbeats and markers."),
        Key("logs", Below(), "05_LOGS", "Logs and reports."),
        Key("inbox", Below(), "Worker_Inbox", "Where flags are dropped."),
        Key("outbox", Below(), "Worker_Outbox", "Where receipts are left."),
    ),
    build=Layout,
)

INBOX: Final = Table(
    (
        Key("share", FilePath(), None, "The top folder of the share."),
        Key("poll_every", Duration(0.1, DAY), "5s", "How often the inbox is looked at."),
        Key("require_signature", Flag(), False, "Whether flags without a signature are refused."),
        Key("pattern", FlagPattern(), "supervisor_*.flag", "Which files of the inbox are ours."),
        Key("layout", LAYOUT, {}, "Where things lie on the share."),
        Key(
            "paths",
            BelowList(),
            ["00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS"],
            "Folders of the share that must be there.",
        ),
        Key("owners", Accounts(), [], "Whose files are obeyed besides root's and our own."),
        Key("senders", Senders(), {}, "Who signs flags: a key each, and what they may do."),
    ),
)

GATE: Final = Table(
    (
        Key("healthy_for", Duration(0, DAY), "30s", "How long workers must be well afterwards."),
        Key("rollback", Flag(), True, "Whether the old commit comes back if they are not."),
    ),
    build=Gate,
)

DEPLOY: Final = Table(
    (
        Key("repo", FilePath(), ".", "The checkout that is updated."),
        Key("remote", GitName(), "origin", "Where updates come from."),
        Key("branch", GitName(), "main", "The branch that is followed."),
        Key("requirements", Below(), "requirements.txt", "What update --deps installs."),
        Key("workers", WorkerNames(), [], "Who is stopped meanwhile, as they run from there."),
        Key("gate", GATE, {}, "What an update must come to before it counts."),
        Key("pip", Choice(("usual", "strict")), "usual", "How strictly packages are installed."),
        Key("python", FilePath(), "python3", "The interpreter that packages are installed for."),
        Key("worker_log", Below(), "05_LOGS/watcher.log", "The log that diagnostics show."),
    ),
)

BACKOFF: Final = Table(
    (
        Key("first", Duration(0, DAY), "0s", "Wait before the first restart."),
        Key("base", Duration(0, DAY), "1s", "Wait before the second; it doubles each time."),
        Key("max", Duration(0, YEAR), "5m", "The longest wait."),
        Key("jitter", Fraction(0, 1), 0.1, "How much waits differ, as a part of them."),
    ),
    build=Backoff,
)

STOP: Final = Table(
    (
        Key("signal", StopSignal(), "TERM", "The signal that asks it to end."),
        Key("grace", Duration(0, DAY), "30s", "How long it may take before it is killed."),
        Key("command", Command(may_be_empty=True), [], "A command that ends it, if one does."),
    ),
    build=StopRule,
)

LIMITS: Final = Table(
    (
        Key("nofile", Whole(3, 2**30), None, "How many files it may have open."),
        Key("nice", Whole(-20, 19), None, "Its niceness."),
        Key("processes", Whole(1, 2**22), None, "How many processes and threads it may be."),
        Key("memory", Size(2**20, 2**50), None, "How much memory all of it may use."),
        Key("cpu", Fraction(0.01, 4096), None, "How many processors it may keep busy."),
    ),
    build=Limits,
)

LOGS: Final = Table(
    (
        Key("mode", Choice(("pump", "file")), "pump", "Through the pump, or straight to a file."),
        Key("max_size", Size(1000, 10**13), "10MB", "Size at which a new file is begun."),
        Key("keep", Whole(0, 1000), 5, "How many older files are kept."),
        Key("compress", Flag(), True, "Whether older files are compressed."),
        Key("split", Flag(), False, "Whether stderr gets a file of its own."),
        Key("overflow", Choice(("block", "drop")), "block", "What happens when the disk is slow."),
    ),
    build=Logs,
)

SCHEDULE: Final = Table(
    (
        Key("every", Duration(0.1, YEAR), None, "From one start to the next."),
        Key("cron", CronText(), None, "Five fields as in a crontab, or @daily and the like."),
        Key("timezone", ZoneName(), "UTC", "The zone whose clock cron goes by."),
        Key(
            "overlap",
            Choice(("skip", "queue", "kill")),
            "skip",
            "What becomes of a run that is due while the last one goes on.",
        ),
        Key("at_load", Flag(), False, "Whether it also runs when it is declared."),
    ),
    build=Schedule,
    meant={"interval": "every", "tz": "timezone", "zone": "timezone", "run_at_load": "at_load"},
)

WORKER: Final = Table(
    (
        Key("command", Command(), None, "What to run: a list of words, or text to be split."),
        Key("python", Target(), None, "What to run instead: a Python class, an uphold.Worker."),
        Key("remote", Flag(), False, "Whether it runs elsewhere; only its heartbeats are heard."),
        Key("shell", Flag(), False, "Whether the command is a line for /bin/sh."),
        Key("working_dir", FilePath(), ".", "The folder it runs in."),
        Key("user", Account(), None, "The user it runs as."),
        Key("group", Account(), None, "The group it runs as."),
        Key("umask", Umask(), None, "Its umask, in octal."),
        Key("environment", TextTable(variables=True), {}, "Variables it gets."),
        Key("env_file", FilePath(), None, "A file of further variables."),
        Key("clear_environment", Flag(), False, "Whether it gets declared variables only."),
        Key("pass_environment", PassedNames(), [], "Variables handed on from the supervisor."),
        Key("when", Condition(), True, "Whether it is there at all; left out if false or empty."),
        Key("enabled", Flag(), True, "Whether it may run."),
        Key("quarantined", Flag(), False, "Whether it is withheld until a person approves."),
        Key("autostart", Flag(), True, "Whether it starts with the supervisor."),
        Key("replicas", Whole(0, 1000), 1, "How many of it run."),
        Key("team", Name(), None, "The group it is shown with."),
        Key(
            "essential",
            Flag(),
            False,
            "Whether all else ends when this one has ended for good.",
        ),
        Key(
            "restart",
            Choice(tuple(policy.value for policy in RestartPolicy), RestartPolicy),
            "always",
            "When it is started again after it ended.",
        ),
        Key("backoff", BACKOFF, {}, "How long to wait before it is started again."),
        Key("stable_after", Duration(0, YEAR), "60s", "Up this long, its failures are forgotten."),
        Key("max_restarts", Whole(0, 10**6, unlimited=True), 10, "Failures before giving up."),
        Key("success_exit_codes", ExitCodes(), [0], "Exit codes that are no failure."),
        Key("stop", STOP, {}, "How it is ended."),
        Key("depends_on", Needs(), {}, "Workers that must have started first."),
        Key("ready", READY, None, "How it is found out that it is up."),
        Key("live", LIVE, None, "How it is found out that it still works."),
        Key("heartbeat", HEARTBEAT, None, "How it shows by itself that it works."),
        Key("limits", LIMITS, {}, "Resource limits."),
        Key(
            "containment",
            Choice(("marks", "group")),
            "marks",
            "What keeps its processes together: marks, or a control group of its own.",
        ),
        Key("logs", LOGS, {}, "Where its output goes and how much is kept."),
        Key("schedule", SCHEDULE, None, "When it runs, if it does not run all the time."),
        Key("labels", TextTable(), {}, "Free notes for people and programs."),
    ),
    later=frozenset({"mcp"}),
    meant={
        "cmd": "command",
        "exec": "command",
        "cwd": "working_dir",
        "dir": "working_dir",
        "directory": "working_dir",
        "env": "environment",
        "numprocs": "replicas",
        "instances": "replicas",
        "autorestart": "restart",
        "startretries": "max_restarts",
        "exitcodes": "success_exit_codes",
        "stopsignal": "stop.signal",
        "stop_signal": "stop.signal",
        "stopwaitsecs": "stop.grace",
        "stop_timeout": "stop.grace",
        "grace": "stop.grace",
        "nofile": "limits.nofile",
        "nice": "limits.nice",
        "pids_limit": "limits.processes",
        "mem_limit": "limits.memory",
        "memory": "limits.memory",
        "cpus": "limits.cpu",
        "cpu": "limits.cpu",
        "cgroup": "containment",
        "max_size": "logs.max_size",
        "keep": "logs.keep",
        "log": "logs",
        "after": "depends_on",
        "healthcheck": "live",
        "health_check": "live",
        "liveness_probe": "live",
        "readiness_probe": "ready",
        "watchdog": "heartbeat.stale_after",
        "cron": "schedule.cron",
        "every": "schedule.every",
    },
)

SECTIONS: Final = ("supervisor", "journal", "store", "inbox", "deploy", "defaults", "workers")
LATER_SECTIONS: Final = frozenset({"teams", "policies", "gateway", "fleet"})
WRAPPER: Final = "uphold"
"""A file with a table of this name may be some application's own; only that part is read."""
