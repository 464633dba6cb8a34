"""The files one process-compose project is made of, laid over each other, with lines of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from uphold.config.documents import Document, Unparsable
from uphold.config.importing.reports import Book, NotImportable, Setting, Source, lost, translated
from uphold.config.yamls import parse_yaml

_MAIN: Final = re.compile(r"((?:process-)?compose)\.ya?ml")
_DEEPEST: Final = 8
"""How many files, or processes, may extend each other in a row."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One file."""

    name: str
    document: Document


class Layers:
    """A project as a whole."""

    def __init__(self, source: Source, book: Book) -> None:
        self._layers = _extended(source, book, 0)
        override = _override(source, book)
        if override is not None:
            self._layers.append(override)
        tables: dict[str, Any] = {}
        for layer in self._layers:
            tables = merged(tables, layer.document.tables)
        self.tables = tables
        processes = tables.get("processes") or {}
        if not isinstance(processes, dict):
            raise NotImportable(self.at("processes"), "processes must be a table")
        self.processes = {name: self._whole(name, processes, 0) for name in processes}

    def at(self, *where: str) -> str:
        """Name the line of a part: in the topmost file that says it."""
        for layer in reversed(self._layers):
            if _has(layer.document.tables, where):
                return f"{layer.name}:{layer.document.line_of(where)}"
        main = self._layers[-1] if where[:-1] == () else self._nearest(where)
        return f"{main.name}:{main.document.line_of(where)}"

    def _nearest(self, where: tuple[str, ...]) -> Layer:
        """Find the file that says the most of what leads to a part that was taken over."""
        for end in range(len(where) - 1, 0, -1):
            for layer in reversed(self._layers):
                if _has(layer.document.tables, where[:end]):
                    return layer
        return self._layers[-1]

    def _whole(self, name: str, processes: dict[str, Any], depth: int) -> Any:
        """Give a process together with what it extends."""
        own = processes.get(name)
        if not isinstance(own, dict) or not isinstance(own.get("extends"), str):
            return own
        if own["extends"] not in processes or depth > _DEEPEST:
            at = self.at("processes", name, "extends")
            raise NotImportable(at, f"'{name}' extends '{own['extends']}', which cannot be")
        below = self._whole(own["extends"], processes, depth + 1)
        return merged(below, own) if isinstance(below, dict) else own


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lay one table over another: tables key by key, environments added up, the rest replaced."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            result[key] = merged(under, value)
        elif key == "environment" and isinstance(under, list) and isinstance(value, list):
            result[key] = [*under, *value]
        else:
            result[key] = value
    return result


def _extended(source: Source, book: Book, depth: int) -> list[Layer]:
    """Read a file, and below it the one that it extends."""
    document = _parsed(source)
    layer = Layer(source.name, document)
    other = document.tables.get("extends")
    if not isinstance(other, str):
        return [layer]
    setting = Setting(source.at(document.line_of(("extends",))), "", "extends", other)
    text = source.read(other) if depth < _DEEPEST else None
    if text is None:
        book.judge(setting, lost(f"{other} cannot be read; import it too"))
        return [layer]
    book.judge(setting, translated(f"read: {other}; this file lies over it"))
    return [*_extended(_beside(source, other, text), book, depth + 1), layer]


def _override(source: Source, book: Book) -> Layer | None:
    match = _MAIN.fullmatch(source.name.rpartition("/")[2])
    for ending in ("yml", "yaml") if match else ():
        name = f"{match[1] if match else ''}.override.{ending}"
        text = source.read(name)
        if text is not None:
            setting = Setting(name, "", "(override)", None)
            book.judge(setting, translated("it lies over this file, as process-compose lays it"))
            return Layer(name, _parsed(_beside(source, name, text)))
    return None


def _beside(source: Source, name: str, text: str) -> Source:
    return Source(name=name, text=text, folder=source.folder, read=source.read)


def _parsed(source: Source) -> Document:
    try:
        document = parse_yaml(source.text)
    except Unparsable as cause:
        raise NotImportable(source.at(cause.line), cause.text) from cause
    if document.faults:
        line, text = document.faults[0]
        raise NotImportable(source.at(line), text.rstrip("."))
    return document


def _has(tables: Any, where: tuple[str, ...]) -> bool:
    for part in where:
        if not isinstance(tables, dict) or part not in tables:
            return False
        tables = tables[part]
    return True
