"""Which acceptance ids no test quotes yet: `make acceptance`.

Tests say what they prove with `@pytest.mark.accepts("R-01", "P9")`. They are read here, not
imported, so this works while some of them are broken. The statements behind the ids are kept
outside the project; beside the checkout they are read if they are there, and the plain list of
ids in `docs/acceptance-ids.txt` stands in for them if not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parent.parent
OUTSIDE: Final = ROOT.parent / "shared" / "spec" / "acceptance.md"
COMMITTED: Final = ROOT / "docs" / "acceptance-ids.txt"
QUOTING: Final = ("tests", "src/uphold/testing")
"""Where tests live: the suites, and the contracts that uphold ships for drivers of your own."""

LATER: Final = frozenset({"E-19", "E-24"})
"""Acceptance ids that come with the gateway."""
LATER_PROMISES: Final = (
    "P19",
    *(f"S{number}" for number in range(14, 21)),
    "S40",
    "S41",
    "T14",
    "T17",
    "T19",
)
"""Promises, threats and faults that come with the gateway and the fleet."""
VOID: Final = frozenset({"E-03"})
"""Ids that were withdrawn: nothing is to be proved."""

_LISTED: Final = re.compile(r"(?:^- |· )([MODRCE]-T?\d+[a-z]?)\b", re.MULTILINE)
_ACCEPTANCE_ID: Final = re.compile(r"[MODRCE]-T?\d+[a-z]?")
_PARTS: Final = re.compile(r"([A-Z])-(T?)(\d+)([a-z]?)")
_WIDTH: Final = 96


class Quote(NamedTuple):
    """One place where a test says what it proves."""

    id: str
    where: str


class Tally(NamedTuple):
    """The ids of the list, by what tests say about them."""

    quoted: tuple[str, ...]
    open: tuple[str, ...]
    later: tuple[str, ...]
    void: tuple[str, ...]
    unknown: tuple[Quote, ...]
    """Quotes that look like acceptance ids and are not in the list: slips of the pen."""


def main() -> int:
    """Print where acceptance stands."""
    ids, source = known_ids()
    quotes = tuple(quotes_under(ROOT / folder for folder in QUOTING))
    sys.stdout.write("\n".join([*report(tally(ids, quotes), quotes, source), ""]))
    return 0


def known_ids() -> tuple[tuple[str, ...], str]:
    """Give the ids, and say where they were found."""
    if OUTSIDE.is_file():
        return listed_in(OUTSIDE.read_text(encoding="utf-8")), "the list beside the checkout"
    name = COMMITTED.relative_to(ROOT)
    return committed_ids(), f"{name} (there is no list beside the checkout)"


def listed_in(text: str) -> tuple[str, ...]:
    """Find the ids that a page of statements defines, not those it merely mentions."""
    return tuple(dict.fromkeys(_LISTED.findall(text)))


def committed_ids() -> tuple[str, ...]:
    """Read the plain list: one id per line."""
    return tuple(COMMITTED.read_text(encoding="utf-8").split())


def quotes_under(folders: Iterable[Path]) -> Iterator[Quote]:
    """Find every quoted id, without importing anything."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
            yield from quotes_in(path.read_text(encoding="utf-8"), name)


def quotes_in(source: str, name: str) -> Iterator[Quote]:
    """Find the ids quoted in one file: as decorator, as `pytestmark`, on a parameter."""
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Call) and _is_mark(node.func):
            for word in _words(node.args):
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    yield Quote(word.value, f"{name}:{node.lineno}")


def tally(ids: Iterable[str], quotes: Iterable[Quote]) -> Tally:
    """Hold what is quoted against what is listed."""
    listed = tuple(ids)
    said = {quote.id: quote for quote in quotes}
    rest = [each for each in listed if each not in said]
    return Tally(
        quoted=tuple(each for each in listed if each in said),
        open=tuple(each for each in rest if each not in LATER | VOID),
        later=tuple(each for each in rest if each in LATER),
        void=tuple(each for each in rest if each in VOID),
        unknown=tuple(
            quote
            for quote in said.values()
            if _ACCEPTANCE_ID.fullmatch(quote.id) and quote.id not in listed
        ),
    )


def report(found: Tally, quotes: Iterable[Quote], source: str) -> Iterator[str]:
    """Write the tally for people."""
    total = len(found.quoted) + len(found.open) + len(found.later) + len(found.void)
    yield f"Acceptance ids from {source}."
    yield (
        f"{total} ids: {len(found.quoted)} quoted by a test, {len(found.open)} without one, "
        f"{len(found.later)} deferred, {len(found.void)} void."
    )
    yield ""
    yield "Without a test:" if found.open else "Every id has a test."
    quoted = by_letter(found.quoted)
    for letter, ids in by_letter(found.open).items():
        of = len(ids) + len(quoted.get(letter, ()))
        yield from _wrapped(f"  {letter} ({len(ids)} of {of})", ids)
    yield ""
    yield from _wrapped(
        "Deferred, with the gateway and the fleet:", (*found.later, *LATER_PROMISES)
    )
    yield from _wrapped("Void:", found.void)
    others = {quote.id for quote in quotes} - {*found.quoted}
    beside = sorted(each for each in others if not _ACCEPTANCE_ID.fullmatch(each))
    yield f"Promises, lessons, threats and faults quoted as well: {len(beside)}."
    for quote in found.unknown:
        yield f"Not in the list: {quote.id}, quoted at {quote.where}."


def by_letter(ids: Iterable[str]) -> Mapping[str, list[str]]:
    """Group ids by their letter, each group in its order."""
    groups: dict[str, list[str]] = defaultdict(list)
    for each in sorted(ids, key=_order):
        groups[each[0]].append(each)
    return groups


def _order(acceptance_id: str) -> tuple[str, str, int, str]:
    match = _PARTS.fullmatch(acceptance_id)
    assert match is not None, f"{acceptance_id} is no acceptance id"
    return match[1], match[2], int(match[3]), match[4]


def _wrapped(head: str, ids: Iterable[str]) -> Iterator[str]:
    line = head
    for each in ids:
        if len(line) + len(each) + 1 > _WIDTH:
            yield line
            line = "   "
        line += f" {each}"
    if line != head:
        yield line


def _words(given: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Give what a mark is called with; long lists are written as several in brackets."""
    for word in given:
        if isinstance(word, ast.Starred) and isinstance(word.value, ast.Tuple | ast.List):
            yield from word.value.elts
        else:
            yield word


def _is_mark(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "accepts"
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )


if __name__ == "__main__":
    sys.exit(main())
