"""How a status document looks to people (a table) and to old scripts (key=value lines).

Pure: documents in, lines out. All text that came from outside passes `printable`.
"""

from __future__ import annotations

from uphold.cli.screens import Screen
from uphold.cli.times import age, span
from uphold.cli.verdicts import troubled, worst_first
from uphold.core.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    Row = Mapping[str, Any]

PLAIN: Final = Screen()

_COLUMNS: Final = ("NAME", "STATE", "HEALTH", "PID", "UPTIME", "↺", "CPU", "MEM", "SEEN")
_WIDE: Final = ("TEAM", "KIND", "ADMIN", "BEAT", "EXIT")
_TO_THE_RIGHT: Final = frozenset({"PID", "UPTIME", "↺", "CPU", "MEM", "SEEN", "BEAT"})
_GAP: Final = "  "
_LEFT_OUT_FIRST: Final = (
    *("SEEN", "MEM", "CPU", "↺", "UPTIME"),
    *("BEAT", "KIND", "TEAM", "EXIT", "PID", "ADMIN"),
)
"""What a narrow terminal can do without, the least important first."""
_FOR_WHY: Final = 16
"""So much of the reason is worth more than any of these."""
_SHORTEST_NAME: Final = 8

_STATE_COLOURS: Final = {
    "running": "green",
    "failed": "red",
    "backoff": "red",
    "starting": "yellow",
    "waiting": "yellow",
    "stopping": "yellow",
    "stopped": "dim",
    "exited": "dim",
}
_HEALTH_COLOURS: Final = {
    "healthy": "green",
    "degraded": "yellow",
    "unhealthy": "red",
    "unknown": "dim",
}


def table(
    document: Mapping[str, Any], at: float, screen: Screen = PLAIN, *, wide: bool = False
) -> list[str]:
    """Draw the status table, worst first, with the sum in the last line."""
    rows = worst_first(document["workers"])
    columns: tuple[str, ...] = (*_COLUMNS, *_WIDE) if wide else _COLUMNS
    lines = []
    if rows:
        ages: dict[str | None, str] = {}
        cells = [_cells(row, at, ages, wide=wide) for row in rows]
        lengths = zip(*([len(cell) for cell in line] for line in (columns, *cells)), strict=True)
        widths = [max(column) for column in lengths]
        if screen.width is not None:
            columns, cells, widths = _fitted(screen.width, rows, columns, cells, widths)
        header = _GAP.join(_pad(name, widths[i], name) for i, name in enumerate(columns))
        lines.append(screen.paint(screen.cut(f"{header}{_GAP}WHY"), "bold"))
        layout = _GAP.join(
            # State and health are padded when they are painted: colours have no width.
            "{}" if at in (1, 2) else f"{{:{'>' if name in _TO_THE_RIGHT else '<'}{width}}}"
            for at, (name, width) in enumerate(zip(columns, widths, strict=True))
        )
        lines += [
            _line(row, line, layout, widths, screen) for row, line in zip(rows, cells, strict=True)
        ]
    lines.append(_summary(document, at, screen))
    return lines


def _fitted(
    width: int,
    rows: Sequence[Row],
    columns: tuple[str, ...],
    cells: list[list[str]],
    widths: list[int],
) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Leave out columns, and shorten names if need be, until a row fits with some of its reason."""
    room = width - min(_FOR_WHY, max(len(str(row["why"] or "")) for row in rows))
    kept = list(range(len(columns)))
    for name in _LEFT_OUT_FIRST:
        if sum(widths[i] + len(_GAP) for i in kept) <= room:
            break
        if name in columns:
            kept.remove(columns.index(name))
    if len(kept) < len(columns):
        columns = tuple(columns[i] for i in kept)
        cells = [[line[i] for i in kept] for line in cells]
        widths = [widths[i] for i in kept]
    most = max(_SHORTEST_NAME, width - sum(widths[1:]) - len(_GAP) * len(widths))
    if widths[0] > most:
        widths[0] = most
        for line in cells:
            if len(line[0]) > most:
                line[0] = f"{line[0][: most - 1]}…"
    return columns, cells, widths


def store_line(document: Mapping[str, Any]) -> list[str]:
    """Say in a line how the copy in the shared database stands, where there is one."""
    store = document.get("store")
    if not isinstance(store, dict):
        return []
    state = str(store.get("state")).replace("_", " ")
    words = [f"store {store.get('shown_url') or ''}".rstrip() + f": {state}"]
    if store.get("pending"):
        words.append(f"{store['pending']} rows wait, behind by {span(store.get('lag_seconds'))}")
    words += [
        f"{store[key]} {what}"
        for key, what in (("lost", "events lost"), ("set_aside", "rows set aside"))
        if store.get(key)
    ]
    lines = [printable(", ".join(words))]
    fault = store.get("last_error")
    if isinstance(fault, dict):
        lines.append(printable(f"  {fault.get('message')} [{fault.get('code')}]"))
        lines.append(printable(f"  → {fault.get('remedy')}"))
    return lines


def share_line(document: Mapping[str, Any], at: float) -> list[str]:
    """Say in a line how the share stands, where there is one."""
    share = document.get("share")
    if not isinstance(share, dict):
        return []
    words = [f"share {share.get('path')}: {share.get('state')}"]
    if share.get("since"):
        words[0] += f" for {age(share['since'], at)}"
    if share.get("watched") is not None:
        every = f"looked at every {share.get('poll_seconds'):g} s"
        words.append("watched" if share["watched"] else every)
    lines = [printable(", ".join(words))]
    if share.get("polled_because"):
        lines.append(printable(f"  not watched: {share['polled_because']}"))
    fault = share.get("last_error")
    if isinstance(fault, dict):
        lines.append(printable(f"  {fault.get('message')} [{fault.get('code')}]"))
    return lines


def key_values(document: Mapping[str, Any]) -> list[str]:
    """Write the fixed `key=value` lines: same keys, same order, `none` for nothing."""
    supervisor = document["supervisor"]
    pairs: list[tuple[str, object]] = [
        ("ownership", supervisor["ownership"]),
        ("running", supervisor["ownership"] == "running"),
        ("pid", supervisor["pid"]),
        ("started_at", supervisor["started_at"]),
        ("stopped_at", supervisor["stopped_at"]),
        ("last_error", fault_text(supervisor["last_error"])),
    ]
    for row in document["workers"]:
        name = f"worker:{row['slot']}"
        pairs += [
            (f"{name}.state", row["state"]),
            (f"{name}.health", row["health"]),
            (f"{name}.last_heartbeat", row["last_heartbeat_at"]),
            (f"{name}.last_error", fault_text(row["last_error"])),
            (f"{name}.condition", row.get("condition")),
            (f"{name}.last_health_at", row.get("last_health_at")),
        ]
    return [f"{printable(key)}={_plain(value)}" for key, value in pairs]


def columns(rows: Sequence[Sequence[str]], header: Sequence[str], screen: Screen) -> list[str]:
    """Set text in columns; the last one may be as long as it likes."""
    texts = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in (header, *texts)) for i in range(len(header) - 1)]
    lines = []
    for line in (header, *texts):
        start = _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        text = screen.cut(f"{start}{_GAP}{line[-1]}" if widths else line[-1]).rstrip()
        lines.append(screen.paint(text, "bold") if line is header else text)
    return lines


def exit_text(ending: Mapping[str, Any] | None) -> str:
    """Say how a process ended."""
    if ending is None:
        return "-"
    if ending.get("signal") is not None:
        return f"signal {ending['signal']}"
    return "unknown" if ending.get("code") is None else f"code {ending['code']}"


def fault_text(fault: object) -> str | None:
    """Say what went wrong in one line; None if nothing did."""
    if isinstance(fault, dict):
        return f"{fault.get('code', 'UPH_FAILED')}: {fault.get('message', '')}"
    return None if fault is None else str(fault)


def memory(size: int | None) -> str:
    """Write a size in the largest binary unit that leaves something before the point."""
    if size is None:
        return "-"
    amount = float(size)
    for unit in ("B", "K", "M", "G"):
        if amount < 1024:
            return f"{amount:.0f}{unit}" if unit in "BK" else f"{amount:.1f}{unit}"
        amount /= 1024
    return f"{amount:.1f}T"


def _cells(row: Row, at: float, ages: dict[str | None, str], *, wide: bool) -> list[str]:
    """Write the cells of a row; most rows were seen at the same time, so that is read once."""
    seen = row.get("last_health_at")
    if seen not in ages:
        ages[seen] = age(seen, at)
    cells = [
        row["slot"],
        row["state"],
        row["health"],
        _or_dash(row["pid"]),
        "-" if row["pid"] is None else span(row["uptime"]),
        str(row["restarts"]),
        "-" if row["cpu_percent"] is None else f"{row['cpu_percent']:.1f}%",
        memory(row["rss_bytes"]),
        ages[seen],
    ]
    if wide:
        cells += [
            _or_dash(row["team"]),
            row["kind"],
            row["admin"],
            age(row["last_heartbeat_at"], at),
            exit_text(row["exit"]),
        ]
    texts = [str(cell) for cell in cells]
    together = "".join(texts)
    if together.isascii() and together.isprintable():
        return texts
    return [printable(text) for text in texts]


def _line(row: Row, cells: list[str], layout: str, widths: Sequence[int], screen: Screen) -> str:
    used = sum(widths) + len(_GAP) * len(widths)
    why = printable(str(row["why"] or ""))
    if screen.width is not None and len(why) > screen.width - used:
        why = f"{why[: max(0, screen.width - used - 1)]}…" if screen.width > used else ""
    slot, state, health, *rest = cells
    colour = "red" if troubled(row) else _STATE_COLOURS.get(state)
    state = screen.paint(state.ljust(widths[1]), colour)
    health = screen.paint(health.ljust(widths[2]), _HEALTH_COLOURS.get(health))
    return f"{layout.format(slot, state, health, *rest)}{_GAP}{why}".rstrip()


def _summary(document: Mapping[str, Any], at: float, screen: Screen) -> str:
    rows, supervisor = document["workers"], document["supervisor"]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    total = "1 worker" if len(rows) == 1 else f"{len(rows)} workers"
    told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    text = f"{total}: {told}" if told else total
    about = _about_supervisor(supervisor, at)
    fault = fault_text(supervisor["last_error"])
    more = [printable(f"last error: {fault}")] if fault else []
    if screen.width is None or len(text) + len(about) + 3 <= screen.width:
        lines = [f"{text} · {about}", *more]
    else:
        lines = [text, about, *more]
    return "\n".join(folded for line in lines for folded in _folded(line, screen.width))


def _folded(line: str, width: int | None) -> list[str]:
    """Break a line that is too long: what stands in the last ones matters to the end."""
    if width is None or len(line) <= width:
        return [line]
    from textwrap import wrap

    return wrap(line, width, subsequent_indent="  ")


def _about_supervisor(supervisor: Mapping[str, Any], at: float) -> str:
    name = printable(str(supervisor["name"] or ""))
    who = f"supervisor {name}".rstrip()
    if supervisor["ownership"] == "running":
        since = age(supervisor["started_at"], at)
        return (
            f"{who} (pid {supervisor['pid']}): "
            f"{supervisor['status']}, {supervisor['health']}, up {since}"
        )
    if supervisor["ownership"] == "stale":
        return (
            f"{who}: stale (pid {_or_dash(supervisor['pid'])} is dead and left traces; "
            "`uphold start` adopts what lives, `uphold stop` ends it)"
        )
    if supervisor["ownership"] == "corrupt":
        return f"{who}: corrupt (the lock file cannot be read; `uphold start` repairs it)"
    stopped = supervisor["stopped_at"]
    return f"{who}: not running" + (f" since {stopped}" if stopped else "")


def _pad(text: str, width: int, column: str) -> str:
    return text.rjust(width) if column in _TO_THE_RIGHT else text.ljust(width)


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(str(value))
