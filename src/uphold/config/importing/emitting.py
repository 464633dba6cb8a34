"""An import becomes a TOML file: keys in the manual's order, remarks where they concern."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from uphold.config.importing.reports import Verdict
from uphold.config.keys import SUPERVISOR, WORKER
from uphold.core.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.config.importing.reports import Import, Line

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_WIDEST: Final = 100
_UNSAFE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def toml_of(imported: Import, *, source: str) -> str:
    """Write the configuration; every remark that is no plain translation stands in it too."""
    counts = imported.counts()
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    lines = [
        f"# Imported from {printable(source)} ({imported.kind}): {told}.",
        "# What was approximated or lost is said below. Look at it, then: uphold check",
        *(_remark(line) for line in imported.report if _shown(line, None, imported)),
    ]
    if imported.supervisor:
        lines += ["", "[supervisor]", *_keys(imported.supervisor, ("supervisor",), _order_of())]
    if imported.defaults:
        lines += ["", "[defaults]    # what holds for each of them unless it says otherwise"]
        lines += _keys(imported.defaults, ("defaults",), _worker_order())
    for draft in imported.workers:
        lines += ["", f"[workers.{draft.name}]"]
        lines += [_remark(line) for line in imported.report if _shown(line, draft.name, imported)]
        lines += _keys(draft.terms, ("workers", draft.name), _worker_order())
    return "\n".join(lines) + "\n"


def _shown(line: Line, worker: str | None, imported: Import) -> bool:
    if line.verdict is Verdict.TRANSLATED:
        return False
    known = any(draft.name == line.worker for draft in imported.workers)
    return line.worker == worker if worker is not None else not known


def _remark(line: Line) -> str:
    name = f"{line.section} {line.setting}".strip()
    return printable(f"# {line.verdict}: {name} ({line.at}): {line.how}")


def _order_of() -> tuple[str, ...]:
    return tuple(key.name for key in SUPERVISOR.keys)


def _worker_order() -> tuple[str, ...]:
    return tuple(key.name for key in WORKER.keys)


def _keys(
    terms: Mapping[str, Any], above: tuple[str, ...], order: tuple[str, ...]
) -> Iterator[str]:
    """Write the keys of one table; tables too wide for a line come last, on their own."""
    known = {name: number for number, name in enumerate(order)}
    wide: list[tuple[str, Mapping[str, Any]]] = []
    for name in sorted(terms, key=lambda key: known.get(key, len(known))):
        value = terms[name]
        line = f"{_key(name)} = {_value(value)}"
        if isinstance(value, dict) and len(line) > _WIDEST:
            wide.append((name, value))
        else:
            yield line
    for name, table in wide:
        yield ""
        yield f"[{'.'.join(map(_key, (*above, name)))}]"
        yield from (f"{_key(key)} = {_value(item)}" for key, item in table.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, str):
        return _script(value) if "\n" in value.strip() else _text(value)
    return repr(value)


def _text(value: str) -> str:
    return _UNSAFE.sub(_escape, json.dumps(value, ensure_ascii=False))


def _script(value: str) -> str:
    """Write several lines as lines; where three quotes would meet, one is escaped."""
    body = value.replace("\\", "\\\\").replace('"""', '""\\"')
    if body.endswith('"'):
        body = f'{body[:-1]}\\"'
    return f'"""\n{_UNSAFE.sub(_escape, body)}"""'


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
