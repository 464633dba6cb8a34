"""The plain settings of a process of process-compose: one function each, and what is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from uphold.config import quantities
from uphold.config.importing.compose_texts import Texts, as_text, variables_of
from uphold.config.importing.reports import (
    NO_SUCH_SETTING,
    Names,
    NotImportable,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import has_variables, seconds

_IN_HOME: Final = "logs are in the home, logs/NAME.log; `uphold logs NAME` shows them"
_SPECIAL: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_FOREGROUND: Final = (
    "uphold needs the program in the foreground, so it is enabled = false; find the"
    " option that keeps it there, and enable it"
)


def read_plain(setting: Setting, terms: Terms, texts: Texts, source: Source) -> Outcome:
    """Put one setting into the terms and say what became of it."""
    handler = _HANDLERS.get(setting.name)
    if handler is not None:
        return handler(setting, terms, texts, source)
    if setting.name.startswith("x-"):
        return translated("nothing to do: notes of your own")
    return lost(_LOST.get(setting.name, NO_SUCH_SETTING))


def _environment(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    terms["environment"] = variables_of(setting, texts)
    return translated("environment")


def _env_file(setting: Setting, terms: Terms, texts: Texts, source: Source) -> Outcome:
    files = setting.value if isinstance(setting.value, list) else [setting.value]
    if not files or not as_text(files[0]):
        return translated("nothing to do: it is empty")
    terms["env_file"] = source.path(texts.read(files[0]))
    if len(files) > 1:
        return approximated("env_file takes one file; the first was taken")
    return translated("env_file")


def _working_dir(setting: Setting, terms: Terms, texts: Texts, source: Source) -> Outcome:
    terms["working_dir"] = source.path(texts.read(setting.value))
    return translated("working_dir")


def _namespace(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    several = isinstance(setting.value, list)
    if several and not setting.value:
        return translated("nothing to do: it is empty")
    wanted = texts.read(setting.value[0] if several else setting.value)
    terms["team"] = Names().give(wanted)
    if terms["team"] == wanted and not (several and len(setting.value) > 1):
        return translated("team")
    return approximated(f"team {terms['team']}; a worker has one")


def _description(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    terms["labels"] = {"description": texts.read(setting.value)}
    return translated("labels.description")


def _disabled(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    terms["autostart"] = setting.value is not True
    return translated("autostart")


def _is_disabled(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    word = texts.read(setting.value).lower()
    if has_variables(word):
        return lost("autostart cannot depend on a text; write it by hand")
    terms["autostart"] = word not in ("true", "1", "t")
    return translated("autostart")


def _success(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    codes = setting.value if isinstance(setting.value, list) else []
    good = [code for code in codes if type(code) is int and 0 <= code <= 255]
    if not codes or len(good) < len(codes):
        raise NotImportable(setting.at, "success_exit_codes must be a list of exit codes")
    terms["success_exit_codes"] = list(dict.fromkeys([0, *good]))
    return translated("success_exit_codes")


def _is_daemon(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    if setting.value is not True:
        return translated("nothing to do: it is off")
    terms["enabled"] = False
    return lost(_FOREGROUND)


def _is_foreground(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    if setting.value is not True:
        return translated("nothing to do: it is off")
    terms["autostart"] = False
    return lost("workers have no terminal; autostart = false, run it by hand where you need it")


def _replicas(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    terms["replicas"] = _whole(setting, 0, 1000)
    return translated("replicas; slots are called NAME, NAME.2, …")


def _ready_log_line(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    if "ready" in terms:
        return lost("the readiness_probe is used; a worker has one of them")
    terms["ready"] = {"log": _SPECIAL.sub(r"\\\g<0>", texts.read(setting.value))}
    return translated("ready.log")


def _restart(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    word = as_text(setting.value)
    if word == "exit_on_failure":
        terms.update(restart="no", essential=True)
        return approximated('restart = "no", essential = true: all ends when it ends, also well')
    # YAML knows `no` as a word here; other readers make false of it.
    policy = {"no": "no", "false": "no", "on_failure": "on-failure", "always": "always"}.get(word)
    if policy is None:
        raise NotImportable(setting.at, "restart must be no, on_failure, exit_on_failure or always")
    terms["restart"] = policy
    if policy != "no":
        terms.setdefault("max_restarts", "unlimited")
    return translated("restart")


def _backoff(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    wait = seconds(_whole(setting, 0, 86400))
    terms["backoff"] = {"first": wait, "base": wait, "max": wait, "jitter": 0}
    return translated("backoff, always the same")


def _max_restarts(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    count = _whole(setting, 0, 10**6)
    terms["max_restarts"] = count or "unlimited"
    if not count:
        return translated('max_restarts = "unlimited"')
    return approximated(
        "max_restarts counts failures in a row; a run of 60 s (stable_after) ends it"
    )


def _exit_on(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    if setting.value is not True:
        return translated("nothing to do: it is off")
    if setting.name.endswith("exit_on_skipped"):
        return lost("uphold skips no worker: one that waits for a failed one goes on waiting")
    terms["essential"] = True
    return translated("essential")


def _stop_command(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    terms.setdefault("stop", {})["command"] = ["sh", "-c", texts.read(setting.value)]
    return translated("stop.command")


def _stop_timeout(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    terms.setdefault("stop", {})["grace"] = seconds(_whole(setting, 0, 86400))
    return translated("stop.grace")


def _stop_signal(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    name = quantities.stop_signal(_whole(setting, 1, 64))
    if name is None:
        raise NotImportable(setting.at, "signal must be one that can end a process")
    terms.setdefault("stop", {})["signal"] = name
    return translated("stop.signal")


def _parent_only(setting: Setting, _terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    if setting.value is not True:
        return translated("always so here: the whole group gets the signal")
    return approximated("the signal goes to the whole group here, always")


def _log_configuration(setting: Setting, terms: Terms, _texts: Texts, _source: Source) -> Outcome:
    given = setting.value if isinstance(setting.value, dict) else {}
    rotation = given.get("rotation")
    rotation = rotation if isinstance(rotation, dict) else {}
    logs: Terms = {}
    if isinstance(size := rotation.get("max_size_mb"), int) and 0 < size < 10**6:
        logs["max_size"] = f"{size}MiB"
    if isinstance(keep := rotation.get("max_backups"), int) and 0 <= keep <= 1000:
        logs["keep"] = keep
    if isinstance(compress := rotation.get("compress"), bool):
        logs["compress"] = compress
    if not logs:
        return lost("uphold keeps output as it is, with times beside it (`logs --timestamps`)")
    terms["logs"] = logs
    rest = sorted(
        {*given} - {"rotation"} | {*rotation} - {"max_size_mb", "max_backups", "compress"}
    )
    if rest:
        return approximated(f"logs; without {', '.join(rest)}: no counterpart")
    return translated("logs")


def _schedule(setting: Setting, terms: Terms, texts: Texts, _source: Source) -> Outcome:
    given = setting.value if isinstance(setting.value, dict) else {}
    remarks: list[str] = []
    if given.get("cron"):
        schedule: Terms = {"cron": texts.read(given["cron"])}
        if given.get("timezone"):
            schedule["timezone"] = texts.read(given["timezone"])
        else:
            remarks.append("by the clock of UTC, not of this place; say timezone")
    elif given.get("interval") and quantities.duration(texts.read(given["interval"])) is not None:
        schedule = {"every": texts.read(given["interval"])}
    else:
        return lost("it says neither cron nor an interval that uphold can read")
    if given.get("run_on_start") is True:
        schedule["at_load"] = True
    if given.get("max_concurrent", 1) != 1:
        remarks.append("one at a time, a run that is due meanwhile is left out")
    rest = {*given} - {"cron", "interval", "timezone", "run_on_start", "max_concurrent"}
    remarks += [f"{name} has no counterpart" for name in sorted(rest)]
    terms["schedule"] = schedule
    return approximated(f"schedule; {'; '.join(remarks)}") if remarks else translated("schedule")


def _whole(setting: Setting, low: int, high: int) -> int:
    value = setting.value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise NotImportable(
            setting.at, f"{setting.name} must be a whole number from {low} to {high}"
        )
    return value


_LOST: Final = {
    "disable_ansi_colors": "output is kept as it is; many programs honour NO_COLOR",
    "is_tty": "workers have no terminal; `script -qec COMMAND /dev/null` gives one",
    "is_interactive": "workers have no terminal",
    "is_elevated": "run uphold as root and say `user` for the others",
    "launch_timeout_seconds": "it is about programs that go to the background; see is_daemon",
    "mcp": "there are no MCP servers as workers yet",
    "watch": "uphold does not watch sources; `uphold restart NAME` after a change",
    "truncate_log": "logs are kept across starts, and rotated",
    "monitor_for": "output is not watched; see heartbeat and live",
    "monitor_silence_threshold": "output is not watched; see heartbeat and live",
    "shutdown.send_keys": "workers have no terminal; say stop.signal or stop.command",
}


def _constant(how: str, *, verdict: Callable[[str], Outcome] = translated) -> Any:
    return lambda _setting, _terms, _texts, _source: verdict(how)


_Handler = Callable[[Setting, Terms, Texts, Source], Outcome]
_HANDLERS: Final[dict[str, _Handler]] = {
    "environment": _environment,
    "env_file": _env_file,
    "working_dir": _working_dir,
    "namespace": _namespace,
    "description": _description,
    "disabled": _disabled,
    "is_disabled": _is_disabled,
    "success_exit_codes": _success,
    "extends": _constant("the keys of the other one were put in"),
    "is_daemon": _is_daemon,
    "is_foreground": _is_foreground,
    "replicas": _replicas,
    "ready_log_line": _ready_log_line,
    "availability.restart": _restart,
    "availability.backoff_seconds": _backoff,
    "availability.max_restarts": _max_restarts,
    "availability.exit_on_end": _exit_on,
    "availability.exit_on_skipped": _exit_on,
    "shutdown.command": _stop_command,
    "shutdown.timeout_seconds": _stop_timeout,
    "shutdown.signal": _stop_signal,
    "shutdown.parent_only": _parent_only,
    "log_configuration": _log_configuration,
    "schedule": _schedule,
    "vars": _constant("put in where {{.NAME}} asks for them"),
    "is_template_disabled": _constant("{{…}} was left as it is"),
    "is_dotenv_disabled": _constant(
        "the .env beside the file is for all; say env_file of its own for this one",
        verdict=approximated,
    ),
    "log_location": _constant(_IN_HOME, verdict=approximated),
}
