"""Where the configuration file is, and where its home is. Light, and never refuses.

The command line needs this for every verb, also when the file is broken: a supervisor that runs
must stay within reach of `status` and `stop`. So nothing here validates, and parsers are loaded
only if the file seems to say something about its home, or is asked for names. Paths are text:
pathlib is loaded only by callers who want a `Path`.
"""
# ruff: noqa: PTH100, PTH113, PTH117, PTH118, PTH120

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any, Final

CONFIG_NAMES: Final = ("uphold.toml", "uphold.yaml", "uphold.yml")
HOME_NAME: Final = ".uphold"
# Patterns as text: most files need none of them, and `re` makes and keeps what is used.
_MAY_SAY_HOME: Final = r"""(?m)^[ \t]*["']?home["']?[ \t]*[=:]|supervisor["']?[ \t]*[.=:]"""
# For files that do not parse: the first home after the supervisor's heading.
_HOME_IN_TOML: Final = (
    r"""(?ms)^[ \t]*+\[(?:uphold\.)?supervisor\][^\[]*?^[ \t]*+home[ \t]*+=[ \t]*+(["'])"""
    r"""([^\n]{1,4096}?)\1"""
)
_HOME_IN_YAML: Final = (
    # Each line can be matched in one way only, and not too many of them: else this takes for ever.
    r"""(?m)^[ \t]*+supervisor:[ \t]*+(?:\#[^\n]*+)?\n(?:[ \t]++[^\n]*+\n|\n){0,100}?"""
    r"""[ \t]++home:[ \t]*+(["']?)([^\n"'#]{1,4096}?)\1[ \t]*(?:\#[^\n]*+)?$"""
)


def find(start: str | os.PathLike[str], environ: Mapping[str, str]) -> Path | None:
    """Look for the configuration from a folder upwards, then among the user's own."""
    from pathlib import Path  # noqa: PLC0415 - see the module's docstring

    found = find_file(os.fspath(start), environ)
    return None if found is None else Path(found)


def home_for(
    config: str | os.PathLike[str] | None,
    settings_home: str | None = None,
    *,
    flag: str | None = None,
    environ: Mapping[str, str],
) -> Path:
    """Tell the home: the flag, $UPHOLD_HOME, the file's own word, else `.uphold` beside it."""
    from pathlib import Path  # noqa: PLC0415 - see the module's docstring

    told = flag or environ.get("UPHOLD_HOME")
    if told:
        return Path(os.path.abspath(told))
    if config is None:
        return Path(os.path.abspath(HOME_NAME))
    path = os.path.abspath(config)
    home = settings_home or declared_home(path, environ) or HOME_NAME
    return Path(os.path.normpath(os.path.join(os.path.dirname(path), home)))


def find_file(start: str, environ: Mapping[str, str]) -> str | None:
    """Do what `find` does, with text only."""
    for folder in _folders(os.path.abspath(start), environ):
        for name in CONFIG_NAMES:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    return None


def declared_home(config: str, environ: Mapping[str, str]) -> str | None:
    """Read `[supervisor] home`, variables replaced; None if it is not there or not to be read."""
    from uphold.config.files import NotRead, Shelf  # noqa: PLC0415 - often not needed

    try:
        text = Shelf().read(config)
    except NotRead:
        return None
    # Looking for plain words first: the pattern takes 10 ms for a thousand workers.
    if not ("home" in text or "supervisor" in text) or not re.search(_MAY_SAY_HOME, text):
        return None
    home = _home_in(text, config)
    if not isinstance(home, str) or not home.strip() or "\0" in home:
        return None
    return _substituted(home, config, environ) if "$" in home else home


def declared_names(config: str) -> list[str]:
    """Name the workers of a file in its order, right or wrong; none if it cannot be read."""
    from uphold.config.documents import Unparsable  # noqa: PLC0415 - often not needed
    from uphold.config.files import NotRead, Shelf  # noqa: PLC0415

    try:
        workers = _tables_in(Shelf().read(config), config).get("workers")
    except (NotRead, Unparsable):
        return []
    return [str(name) for name in workers] if isinstance(workers, dict) else []


def _folders(start: str, environ: Mapping[str, str]) -> Iterator[str]:
    folder = start
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    own = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(own) and environ.get("HOME"):
        own = os.path.join(environ["HOME"], ".config")
    if os.path.isabs(own):
        yield os.path.join(own, "uphold")


def _home_in(text: str, config: str) -> Any:
    from uphold.config.documents import Unparsable  # noqa: PLC0415 - often not needed

    try:
        supervisor = _tables_in(text, config).get("supervisor")
    except Unparsable:
        pattern = _HOME_IN_TOML if config.endswith(".toml") else _HOME_IN_YAML
        match = re.search(pattern, text)
        return match[2] if match else None
    return supervisor.get("home") if isinstance(supervisor, dict) else None


def _tables_in(text: str, config: str) -> dict[str, Any]:
    """Read the tables of a file, or of its part that is ours."""
    from uphold.config.documents import parse  # noqa: PLC0415 - often not needed

    tables = parse(text, config).tables
    part = tables.get("uphold")
    return part if isinstance(part, dict) else tables


def _substituted(home: str, config: str, environ: Mapping[str, str]) -> str | None:
    from uphold.config.dotenv import parse_env  # noqa: PLC0415 - often not needed
    from uphold.config.files import NotRead, Shelf  # noqa: PLC0415
    from uphold.config.variables import substitute  # noqa: PLC0415

    try:
        beside, _ = parse_env(Shelf().read(os.path.join(os.path.dirname(config), ".env")))
    except NotRead:
        beside = {}
    result = substitute(home, {**beside, **environ}, lambda _: None)
    return str(result) if result else None
