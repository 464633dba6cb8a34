"""The table of verbs: what exists and what each does in one line. Nothing is imported here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


VERBS: Final[dict[str, str]] = {
    "init": "write a commented starter configuration",
    "import": "translate the file of another supervisor, and say what became of each setting",
    "export": "print a systemd unit that runs this supervisor",
    "check": "check the configuration file and list every problem",
    "doctor": "look at everything uphold stands on, and say what would mend it",
    "plan": "show what the configuration file would change",
    "run": "supervise in the foreground; Ctrl-C stops everything in reverse order",
    "once": "do one pass and exit, for a task scheduler; workers outlive it",
    "start": "start the supervisor in the background, or the named workers",
    "stop": "stop the supervisor and its workers, or the named workers",
    "restart": "stop and start the supervisor, or the named workers",
    "reload": "apply the configuration file now",
    "status": "show the verified state of everything",
    "show": "show everything known about one worker",
    "why": "say in a paragraph why a worker is as it is, and what happens next",
    "logs": "show what workers wrote, or recent runtime events",
    "events": "show what has happened",
    "audit": "show who ordered what; `audit verify` checks that nothing was altered",
    "jobs": "show where orders stand",
    "sql": "print questions to ask the journal or the shared database in SQL",
    "pause": "hold workers down, or suspend the supervisor itself",
    "resume": "lift a hold, or let the supervisor go on",
    "enable": "allow workers to run",
    "disable": "forbid workers to run",
    "quarantine": "withhold workers until a person approves them",
    "approve": "lift a quarantine",
    "scale": "set how many instances of a worker run: NAME=N",
    "signal": "send a signal to the main process of a worker",
    "beat": "tell that a remote worker lives, and how it does",
    "reset": "clear the failures and counters of workers",
    "flag": "put an order into the inbox of a share, or list what lies there",
    "update": "bring the checkout that workers run from up to date",
    "rollback": "undo the last commits of that checkout",
    "diagnose": "write a report about a worker and everything around it",
    "db": "look after the shared database: its address, its tables, how far the copy is",
    "verify-db": "check the shared database and keep a report",
    "completion": "print a completion script for bash, zsh or fish",
    "version": "print the version",
}
