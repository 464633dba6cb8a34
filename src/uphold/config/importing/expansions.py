"""The `%(name)s` of supervisord, expanded as far as it can be known; the rest becomes variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from uphold.config.importing.wording import variable

_EXPANSION: Final = re.compile(r"%(?:%|\(([^()]*)\)([-0 +#]{0,5}[0-9]{0,2})([sdi])|)")
_ENV: Final = "ENV_"


def expand(text: str, known: Mapping[str, str | int], own: Mapping[str, str]) -> str:
    """Expand a value; ValueError names what cannot be.

    `own` are the program's own variables: known here, so put in as they are. Other `ENV_` names
    become marks for variables.
    """

    def one(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if match[1] is None:
            raise ValueError(
                f"'{text[match.start() : match.start() + 20]}' is no expansion; a"
                " percent sign is written %%"
            )
        value = _value(match[1], known, own)
        try:
            return f"%{match[2]}{match[3]}" % value
        except (TypeError, ValueError):
            raise ValueError(f"'{match[0]}' does not suit what it stands for") from None

    return _EXPANSION.sub(one, text)


def uses(text: str, name: str) -> bool:
    """Tell whether a value asks for this expansion."""
    return f"%({name})" in text


def _value(name: str, known: Mapping[str, str | int], own: Mapping[str, str]) -> str | int:
    if name in known:
        return known[name]
    if name.startswith(_ENV):
        wanted = name.removeprefix(_ENV)
        if wanted in own:
            return own[wanted]
        mark = variable(wanted)
        if mark is not None:
            return mark
    raise ValueError(f"'%({name})s' is not known")
