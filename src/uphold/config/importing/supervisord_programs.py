"""The settings of one `[program:x]`: what each becomes as a key of a worker."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Final

from uphold.config import quantities
from uphold.config.importing.reports import (
    NotImportable,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import MARKS, has_variables, seconds, variable, whole, words_of
from uphold.config.shapes import OWN_VARIABLES

DEFAULTS: Final[Terms] = {
    "restart": "on-failure",
    "stable_after": "1s",
    "max_restarts": 3,
    "stop": {"grace": "10s"},
    "logs": {"max_size": "50MiB", "keep": 10, "compress": False, "split": True},
}
"""What holds under supervisord unless a program says otherwise, where uphold differs."""

_TRUE: Final = frozenset({"yes", "true", "on", "1"})
_FALSE: Final = frozenset({"no", "false", "off", "0"})
_SIZES: Final = {"kb": "KiB", "mb": "MiB", "gb": "GiB"}
_MOST_PROCESSES: Final = 1000
_LARGEST: Final = "1TB"
_STREAMS: Final = ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2")
_NO_GROUP: Final = "the signal goes to the whole group here, always"


def read_setting(setting: Setting, value: str, terms: Terms, source: Source) -> Outcome:
    """Put one setting, its value expanded, into the terms and say what became of it."""
    handler = _HANDLERS.get(setting.name)
    if handler is not None:
        return handler(setting, value, terms, source)
    why = _LOST.get(setting.name)
    return lost(why or "supervisord's manual does not know it either, or it is newer than this")


def environment_of(setting: Setting, value: str) -> dict[str, str]:
    """Read `KEY="value",OTHER=value`."""
    lexer = shlex.shlex(value)
    lexer.wordchars += "/.+-():" + MARKS
    try:
        tokens = list(lexer)
    except ValueError as cause:
        raise NotImportable(setting.at, f"environment cannot be read: {cause}") from None
    found: dict[str, str] = {}
    for start in range(0, len(tokens), 4):
        name, *rest = tokens[start : start + 3]
        if len(rest) != 2 or rest[0] != "=":
            raise NotImportable(setting.at, 'environment must be KEY="value",OTHER="value"')
        found[name] = rest[1].strip("'\"")
    return found


def is_limit_of_stream(setting: Setting, settings: Mapping[str, Setting]) -> bool:
    """Tell whether this only says that a terminal or pipe cannot be rotated, as containers do."""
    stream, _, what = setting.name.partition("_")
    file = settings.get(f"{stream}_logfile")
    rotates = what in ("logfile_maxbytes", "logfile_backups") and setting.value.strip() == "0"
    return rotates and file is not None and file.value.strip() in _STREAMS


def boolean(setting: Setting, value: str) -> bool:
    """Read what supervisord takes for yes and no."""
    word = value.strip().lower()
    if word not in _TRUE | _FALSE:
        raise NotImportable(setting.at, f"{setting.name} must be true or false")
    return word in _TRUE


def integer(setting: Setting, value: str, low: int = 0, high: int = 10**6) -> int:
    """Read a whole number within sensible bounds."""
    number = whole(value.strip())
    if number is None or not low <= number <= high:
        raise NotImportable(
            setting.at, f"{setting.name} must be a whole number from {low} to {high}"
        )
    return number


def processes(setting: Setting, value: str) -> int:
    """Read how many of a program there are."""
    return integer(setting, value, 1, _MOST_PROCESSES)


def _command(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    line = " ".join(value.split("\n"))
    try:
        words = words_of(line)
    except ValueError as cause:
        raise NotImportable(setting.at, f"the command cannot be split: {cause}") from None
    if not words or not words[0]:
        raise NotImportable(setting.at, "the command is empty")
    terms["command"] = line
    if has_variables(line):
        return approximated("command; a variable in it stays one word here, also with spaces in it")
    return translated("command")


def _directory(_setting: Setting, value: str, terms: Terms, source: Source) -> Outcome:
    path = value.strip()
    if path == "~" or path.startswith("~/"):
        path = f"{variable('HOME')}{path[1:]}"
    elif path.startswith("~"):
        return lost("uphold does not look up the homes of other users; write working_dir in full")
    terms["working_dir"] = source.path(path)
    if path.startswith(("/", MARKS[0])):
        return translated("working_dir")
    return approximated("working_dir, from the folder of the file; there from supervisord's own")


def _environment(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    found = environment_of(setting, value)
    own = sorted(OWN_VARIABLES & found.keys())
    terms["environment"] = {name: text for name, text in found.items() if name not in own}
    if own:
        return approximated(f"environment, without {', '.join(own)}, which uphold sets itself")
    return translated("environment")


def _user(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms["user"] = value.strip()
    return translated("user; HOME, USER, LOGNAME and SHELL follow it here")


def _umask(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    if quantities.umask(value.strip()) is None:
        raise NotImportable(setting.at, "umask must be octal digits such as 022")
    terms["umask"] = value.strip()
    return translated("umask")


def _autostart(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms["autostart"] = boolean(setting, value)
    return translated("autostart")


def _autorestart(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    if value.strip().lower() == "unexpected":
        terms["restart"] = "on-failure"
    else:
        terms["restart"] = "always" if boolean(setting, value) else "no"
    return translated(f'restart = "{terms["restart"]}"')


def _startsecs(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms["stable_after"] = seconds(integer(setting, value))
    return approximated(
        "stable_after: it decides which runs failed; `running` does not wait for it"
    )


def _startretries(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms["max_restarts"] = integer(setting, value)
    return approximated("max_restarts; waits between the tries grow 0, 1, 2, 4 s, not 1, 2, 3 s")


def _exitcodes(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    words = [word for word in value.replace("\n", ",").split(",") if word.strip()]
    codes = [integer(setting, word, 0, 255) for word in words]
    terms["success_exit_codes"] = codes or [0]
    return translated("success_exit_codes")


def _stopsignal(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    word = value.strip()
    number = whole(word)
    name = quantities.stop_signal(word if number is None else number)
    if name is None:
        raise NotImportable(setting.at, "stopsignal must be a signal that can end a process")
    terms.setdefault("stop", {})["signal"] = name
    return translated("stop.signal")


def _stopwaitsecs(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms.setdefault("stop", {})["grace"] = seconds(integer(setting, value, 0, 86400))
    return translated("stop.grace")


def _as_group(setting: Setting, value: str, _terms: Terms, _source: Source) -> Outcome:
    if boolean(setting, value):
        return translated("always so here; what has left the group is found and ended too")
    return approximated(_NO_GROUP)


def _redirect(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms.setdefault("logs", {})["split"] = not boolean(setting, value)
    return translated("logs.split")


def _logfile(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    word = value.strip()
    if word.lower() == "auto":
        return translated("the log in the home")
    if word.lower() in ("none", "off"):
        terms.setdefault("logs", {}).update({"keep": 0, "max_size": "1MB"})
        return approximated("output is always kept here; logs.max_size and logs.keep are small")
    if word.lower() == "syslog":
        return lost("uphold does not write to syslog; pipe the command into `logger`")
    if word in _STREAMS:
        return approximated("`uphold run` shows it, and it is in the home: `uphold logs NAME`")
    return approximated("logs are in the home, logs/NAME.log; `uphold logs NAME` shows them")


def _maxbytes(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    word = value.strip().lower()
    unit = next((unit for unit in _SIZES if word.endswith(unit)), "")
    amount = integer(setting, word.removesuffix(unit), 0, 10**12)
    size = amount * {"": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}[unit]
    if size and not 1000 <= size <= 10**13:
        raise NotImportable(setting.at, f"{setting.name} is out of range")
    unlimited = size == 0
    written = f"{amount}{_SIZES.get(unit, 'B')}" if not unlimited else _LARGEST
    if terms.setdefault("logs", {}).setdefault("max_size", written) != written:
        return approximated("logs.max_size holds for both files; that of stdout was taken")
    if unlimited:
        return approximated(f"logs.max_size = {_LARGEST}; files without any limit are not there")
    return translated("logs.max_size")


def _backups(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    keep = min(integer(setting, value), 1000)
    if terms.setdefault("logs", {}).setdefault("keep", keep) != keep:
        return approximated("logs.keep holds for both files; that of stdout was taken")
    return translated("logs.keep")


def _off_or_lost(setting: Setting, value: str, _terms: Terms, _source: Source) -> Outcome:
    """Judge what is no loss as long as it is switched off."""
    if value.strip().lower() in _FALSE:
        return translated("nothing to do: it is off")
    return lost(_LOST_IF_ON[setting.name.partition("_")[2]])


_LOST_IF_ON: Final = {
    "events_enabled": "no events are made of output; follow it with `uphold logs -f NAME`",
    "capture_maxbytes": "nothing is captured from output; `uphold logs --grep` finds lines",
    "syslog": "uphold does not write to syslog; pipe the command into `logger`",
}
_LOST: Final = {
    "depends_on": "supervisord ignores it, uphold would not: write depends_on by hand",
    "serverurl": "there is no server URL; the program finds uphold's socket in its home",
}
_HANDLERS: Final[dict[str, Callable[[Setting, str, Terms, Source], Outcome]]] = {
    "command": _command,
    "directory": _directory,
    "environment": _environment,
    "user": _user,
    "umask": _umask,
    "autostart": _autostart,
    "autorestart": _autorestart,
    "startsecs": _startsecs,
    "startretries": _startretries,
    "exitcodes": _exitcodes,
    "stopsignal": _stopsignal,
    "stopwaitsecs": _stopwaitsecs,
    "stopasgroup": _as_group,
    "killasgroup": _as_group,
    "redirect_stderr": _redirect,
    **{
        f"{stream}_{name}": handler
        for stream in ("stdout", "stderr")
        for name, handler in (
            ("logfile", _logfile),
            ("logfile_maxbytes", _maxbytes),
            ("logfile_backups", _backups),
            ("events_enabled", _off_or_lost),
            ("capture_maxbytes", _off_or_lost),
            ("syslog", _off_or_lost),
        )
    },
}
