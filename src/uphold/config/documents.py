"""Text becomes a document: plain tables and lists, with the line of every part on demand.

The ending of the file's name chooses the language; each language is loaded only when used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from uphold.config.places import LineOf

DEEPEST: Final = 32
"""Deeper nesting has no meaning in a configuration and only serves to hurt parsers."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, before anybody asks whether it makes sense."""

    tables: dict[str, Any]
    line_of: LineOf
    faults: tuple[tuple[int, str], ...] = ()
    """(line, text) of what is wrong with the writing, where reading could go on."""


class Unparsable(Exception):  # noqa: N818 - a state of affairs; becomes a problem at once
    """The text is not of its language; reading ended at this line."""

    def __init__(self, line: int, text: str, before: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(text)
        self.line = line
        self.text = text
        self.before = before
        """(line, text) of what was wrong with the writing above."""


def parse(text: str, path: str) -> Document:
    """Read text in the language that the path's ending names."""
    ending = path.rpartition(".")[2].lower()
    if ending == "toml":
        from uphold.config.toml import parse_toml  # noqa: PLC0415 - one language is enough

        return parse_toml(text)
    if ending in ("yaml", "yml"):
        from uphold.config.yamls import parse_yaml  # noqa: PLC0415 - most files are TOML

        return parse_yaml(text)
    raise Unparsable(1, "the name must end in .toml, .yaml or .yml")
