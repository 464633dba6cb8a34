"""The `[supervisord]` section: what of the daemon's own settings reaches workers here."""

from __future__ import annotations

from typing import Final

from uphold.config.importing.expansions import expand
from uphold.config.importing.inis import Section
from uphold.config.importing.reports import (
    NO_SUCH_SETTING,
    Book,
    NotImportable,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.supervisord_programs import integer, read_setting
from uphold.core.names import is_worker_name

_FOR_ALL: Final = frozenset({"environment", "umask", "directory"})
"""What every program inherits from the daemon."""
_USUAL_FILES: Final = 1024
_LOST: Final = {
    "logfile": "uphold's own logs are in its home: logs/supervisor.log and logs/runtime.log",
    "logfile_maxbytes": "uphold's own logs are rotated at 10 MB",
    "logfile_backups": "five of uphold's own older logs are kept",
    "loglevel": "uphold's log has one level; `uphold events` and `uphold audit` tell more",
    "pidfile": "there is no pid file; the lock in the home names the owner, `uphold status` tells",
    "childlogdir": "logs of workers are in the home, below logs/",
    "nocleanup": "logs are never removed at a start",
    "strip_ansi": "output is kept as it is",
    "minprocs": "set the limit where uphold is started; limits.processes bounds one worker",
    "user": "start uphold as that user; a worker's own `user` needs root",
}
_BY_COMMAND: Final = {
    "nodaemon": "`uphold run` stays in the foreground, `uphold start` goes to the background",
    "silent": "`uphold run --quiet` prints only errors",
}


def read_daemon(
    section: Section, defaults: Terms, supervisor: Terms, book: Book, source: Source
) -> None:
    """Judge every setting of the daemon."""
    for setting in section.settings:
        try:
            value = expand(setting.value, {"here": source.folder}, {})
        except ValueError as cause:
            raise NotImportable(setting.at, f"{setting.name}: {cause}") from None
        book.judge(setting, _judged(setting, value, defaults, supervisor, source))


def _judged(
    setting: Setting, value: str, defaults: Terms, supervisor: Terms, source: Source
) -> Outcome:
    if setting.name in _FOR_ALL:
        outcome = read_setting(setting, value, defaults, source)
        return outcome._replace(how=f"[defaults] {outcome.how}")
    if setting.name == "identifier":
        return _identifier(value.strip(), supervisor)
    if setting.name == "minfds":
        files = integer(setting, value, 0, 2**30)
        if files <= _USUAL_FILES:
            return translated("nothing to do: uphold raises its own limit as far as it may")
        defaults["limits"] = {"nofile": files}
        return approximated("[defaults] limits.nofile, for the programs; uphold raises its own")
    if setting.name in _BY_COMMAND:
        return approximated(_BY_COMMAND[setting.name])
    return lost(_LOST.get(setting.name, NO_SUCH_SETTING))


def _identifier(value: str, supervisor: Terms) -> Outcome:
    if not is_worker_name(value.replace(".", "-")):
        return lost("it cannot be a name here; write [supervisor] name yourself")
    supervisor["name"] = value
    return translated("[supervisor] name")
