"""YAML becomes a document: built from parser events, so that hostile text costs little.

Follows YAML 1.2 where 1.1 surprises: `no`, `on` and `022` are text, not false, true and 18.
Tags are refused, keys given twice are problems, aliases may not multiply.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from uphold.config.documents import DEEPEST, Document, Unparsable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uphold.config.places import Where

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_FAULTS: Final = 100
"""Reading ends after so many mistakes of writing: nobody reads more."""
_MOST_ALIASED: Final = 100_000
"""How many values aliases may add to those written out."""
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
)
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_STARTS: Final = frozenset("0123456789+-.")
_TEXT_TAGS: Final = ("!", "tag:yaml.org,2002:str")


def parse_yaml(text: str) -> Document:
    """Read one YAML document."""
    composer = _Composer(yaml.parse(text, Loader=_LOADER))
    try:
        tables = composer.document()
    except yaml.YAMLError as cause:
        raise _explained(text, cause) from cause
    if tables is None:
        tables = {}
    if not isinstance(tables, dict):
        raise Unparsable(1, "the file must be a table of keys (key: value)")
    return Document(tables, lambda where: composer.line_of(tables, where), tuple(composer.faults))


class _Composer:
    """Builds plain tables and lists from events, and keeps the line of every part."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.faults: list[tuple[int, str]] = []
        self._events = events
        self._lines: dict[int, dict[str | int, int]] = {}
        """By the id of a table or list: the line of each of its parts."""
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._made = 0
        """Values so far, those repeated by aliases counted each time."""
        self._aliased = 0

    def document(self) -> Any:
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 0)
        next(self._events)  # the document ends
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise Unparsable(_line(after), "only one document per file; remove the second '---'")
        return value

    def line_of(self, tables: Any, where: Where) -> int:
        line, value = 1, tables
        for part in where:
            lines = self._lines.get(id(value), {})
            if part not in lines:
                break
            line, value = lines[part], value[part]
        return line

    def _value(self, event: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise Unparsable(_line(event), "tables or lists are nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._made
        self._made += 1
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            self._fault(_line(event), f"tags are not allowed here ({event.tag[:60]}).")
        if isinstance(event, yaml.ScalarEvent):
            value = _plain(event.value) if event.implicit[0] else event.value
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._table(depth)
        else:
            value = self._list(depth)
        if event.anchor is not None:
            # Only now: inside itself an anchor is unknown, so nothing can contain itself.
            self._anchors[event.anchor] = (value, self._made - before)
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise Unparsable(_line(event), f"nothing above is marked '&{event.anchor[:60]}'")
        value, size = self._anchors[event.anchor]
        self._made += size
        self._aliased += size
        if self._aliased > _MOST_ALIASED:
            raise Unparsable(_line(event), f"aliases repeat more than {_MOST_ALIASED} values")
        return value

    def _table(self, depth: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        lines: dict[str | int, int] = {}
        merged: list[tuple[Any, int]] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise Unparsable(line, "a key must be plain text")
            key, plain = event.value, event.implicit[0]
            value = self._value(next(self._events), depth + 1)
            if key == "<<" and plain:
                merged.append((value, line))
            elif key in table:
                self._fault(line, f"the key {key[:60]!r} is given twice.")
            else:
                table[key] = value
                lines[key] = line
        for value, line in merged:
            self._merge(table, lines, value, line)
        self._lines[id(table)] = lines
        return table

    def _merge(
        self, table: dict[str, Any], lines: dict[str | int, int], value: Any, line: int
    ) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                self._fault(line, "'<<' takes a table, or a list of tables.")
                continue
            for key, item in source.items():
                if key not in table:
                    table[key] = item
                    lines[key] = self._lines[id(source)][key]

    def _fault(self, line: int, text: str) -> None:
        if len(self.faults) >= _MOST_FAULTS:
            more = f"reading ended after {_MOST_FAULTS} problems; there may be more"
            raise Unparsable(line, more, tuple(self.faults))
        self.faults.append((line, text))

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        lines: dict[str | int, int] = {}
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            lines[len(items)] = _line(event)
            items.append(self._value(event, depth + 1))
        self._lines[id(items)] = lines
        return items


def _plain(text: str) -> Any:
    """Tell what an unquoted word means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBER_STARTS and len(text) <= 64:
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _explained(text: str, cause: yaml.YAMLError) -> Unparsable:
    mark = getattr(cause, "problem_mark", None)
    position = getattr(cause, "position", None)
    last = text.count("\n") + (not text.endswith("\n"))
    if mark is not None:
        line = min(mark.line + 1, max(last, 1))
    elif position is not None:
        # The C parser counts bytes.
        line = text.encode()[:position].count(b"\n") + 1
    else:
        line = 1
    problem = getattr(cause, "problem", None) or getattr(cause, "reason", None) or str(cause)
    context = getattr(cause, "context", None)
    return Unparsable(line, f"not valid YAML: {problem}" + (f" ({context})" if context else ""))
