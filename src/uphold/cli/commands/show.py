"""`uphold show NAME`: everything known about one worker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.owners import owner_of
from uphold.cli.places import Place, locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.rendering import exit_text, fault_text, memory
from uphold.cli.speaking import print_document, say
from uphold.cli.times import age, now, span
from uphold.cli.usage import add_processes, add_usage
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

_ABOUT_SLOTS: Final = frozenset(
    (
        "slot",
        "state",
        "health",
        "condition",
        "pid",
        "generation",
        "since",
        "uptime",
        "restarts",
        "exit",
        "last_heartbeat_at",
        "last_health_at",
        "cpu_percent",
        "rss_bytes",
        "last_error",
        "next_attempt_at",
        "why",
    )
)
"""What is told slot by slot below, and not twice."""
_LONGEST_COMMAND: Final = 100


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("name", metavar="NAME", help="a worker")


def run(args: argparse.Namespace) -> int:
    """Ask the supervisor, or show what was recorded."""
    place = locate(args)
    if owner_of(place.home).standing == "running":
        with reach(place, patience_of(args)) as connection:
            document = connection.call("show", {"name": args.name}, patience=patience_of(args))
    else:
        document = _without_supervisor(place, args.name)
    add_processes(document["slots"], add_usage(document["slots"]))
    if args.json:
        print_document(document)
    else:
        say(args, *_lines(document))
    return EXIT_DONE


def _without_supervisor(place: Place, name: str) -> dict[str, Any]:
    from uphold.cli.declared import look_by_name

    seen = look_by_name(place, [name], companions=True)
    rows = seen["workers"]
    return {"schema": 1, "worker": dict(rows[0]), "slots": rows}


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    worker = document["worker"]
    yield printable(str(worker["name"]))
    for key, value in worker.items():
        if key not in _ABOUT_SLOTS and key not in ("name", "config"):
            yield f"  {key:<18} {_value(value)}"
    config = worker.get("config")
    if isinstance(config, dict):
        yield "  config"
        for key, value in config.items():
            yield f"    {printable(str(key)):<16} {_value(value)}"
    for row in document["slots"]:
        yield from _slot_lines(row)


def _slot_lines(row: Mapping[str, Any]) -> Iterator[str]:
    at = now()
    yield f"  slot {printable(row['slot'])}"
    pairs = {
        "state": f"{row['state']} ({row['why']})",
        "health": f"{row['health']}, {_seen(row.get('last_health_at'), at)}",
        "pid": _value(row["pid"]),
        "since": f"{row['since'] or '-'}" + (f", up {span(row['uptime'])}" if row["pid"] else ""),
        "generation": f"{row['generation']}, {_restarted(row['restarts'])} by itself",
        "exit": exit_text(row["exit"]),
        "memory": memory(row["rss_bytes"]),
        "last_error": fault_text(row["last_error"]) or "-",
        "next_attempt_at": _value(row["next_attempt_at"]),
    }
    for key, text in pairs.items():
        yield f"    {key:<16} {printable(text)}"
    yield from _process_lines(row.get("processes") or ())


def _seen(proved: str | None, at: float) -> str:
    return "never seen" if proved is None else f"seen {age(proved, at)} ago"


def _restarted(count: int) -> str:
    return {0: "never restarted", 1: "restarted once"}.get(count, f"restarted {count} times")


def _process_lines(processes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Show the tree as a small table; the main process comes first."""
    if processes:
        yield f"    {'processes':<16} {'PID':>7} {'CPU':>6} {'MEM':>7}  COMMAND"
    for process in processes:
        share = f"{process['cpu_percent']:.1f}%"
        command = printable(process["command"])
        if len(command) > _LONGEST_COMMAND:
            command = f"{command[:_LONGEST_COMMAND]}..."
        yield (
            f"    {'':<16} {process['pid']:>7} {share:>6} {memory(process['rss_bytes']):>7}"
            f"  {command}"
        )


def _value(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(value if isinstance(value, str) else json.dumps(value))
