"""The plain settings of `[Service]`: one function each, and what is lost with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from uphold.config import quantities
from uphold.config.importing.reports import (
    NO_SUCH_SETTING,
    NotImportable,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import seconds, variable, whole, words_of
from uphold.config.shapes import OWN_VARIABLES

RESTARTING: Final = frozenset(
    {"Restart", "RestartSec", "RestartSteps", "RestartMaxDelaySec"}
    | {"StartLimitIntervalSec", "StartLimitInterval", "StartLimitBurst"}
)
"""Settings that only make sense together; `systemd_restarts` reads and judges them."""
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
_UNITS: Final = {
    **dict.fromkeys(("us", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_NO_LIMIT: Final = "no such limit here; set it where uphold is started, workers inherit it"
_DAY: Final = 86400.0
_CODES: Final = {"SUCCESS": 0, "FAILURE": 1, "TEMPFAIL": 75, "DATAERR": 65, "USAGE": 64}
_SANDBOX: Final = re.compile(
    r"Protect\w+|Private\w+|Restrict\w+|ReadOnly\w+|ReadWrite\w+|Inaccessible\w+|SystemCall\w+"
    r"|NoNewPrivileges|Capability\w+|Ambient\w+|Lock\w+|MemoryDenyWriteExecute|Secure\w+"
    r"|Root\w+|Bind\w*Paths|DynamicUser|Device\w+|NoExecPaths|ExecPaths|Mount\w+|TemporaryFileSystem"
    r"|KeyringMode|RemoveIPC|AppArmor\w+|SELinux\w+|UserNamespacePath|IPAddress\w+|SocketBind\w+"
)
_OWN_FOLDERS: Final = re.compile(r"(?:State|Cache|Logs|Runtime|Configuration)Directory\w*")
_LIMITS: Final = re.compile(
    r"Limit\w+|Memory\w+|CPU\w+|IO\w+|BlockIO\w+|Tasks\w+|OOM\w+|AllowedCPUs|AllowedMemory\w+"
)


def read_setting(setting: Setting, value: str, terms: Terms, source: Source) -> Outcome:
    """Put one setting into the terms and say what became of it."""
    if setting.name in RESTARTING:
        return translated("restart")  # judged with the others of its kind
    handler = _HANDLERS.get(setting.name)
    if handler is not None:
        return handler(setting, value, terms, source)
    if setting.name in _LOST:
        return lost(_LOST[setting.name])
    if _SANDBOX.fullmatch(setting.name):
        return lost("uphold does not sandbox; keep such a unit under systemd, or wrap the command")
    if _OWN_FOLDERS.fullmatch(setting.name):
        return lost("uphold makes no folders; make it by hand, for the user of the worker")
    if _LIMITS.fullmatch(setting.name):
        return lost(_NO_LIMIT)
    return lost(NO_SUCH_SETTING)


def environment_of(setting: Setting, value: str) -> dict[str, str]:
    """Read `KEY=value "OTHER=two words"`."""
    try:
        words = words_of(value)
    except ValueError as cause:
        raise NotImportable(setting.at, f"Environment cannot be split: {cause}") from None
    found: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise NotImportable(setting.at, "Environment must be a row of KEY=value")
        found[name] = text
    return found


def span(setting: Setting, value: str) -> float:
    """Read a time: `90`, `1min 30s`, `infinity`."""
    if value == "infinity":
        return float("inf")
    parts = _SPAN.findall(value)
    rest = _SPAN.sub("", value).strip()
    if not parts or rest or any(unit not in _UNITS for _, unit in parts) or len(value) > 64:
        raise NotImportable(setting.at, f"{setting.name} must be a time such as 30s or 1min 30s")
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts)


def _type(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    if value in ("simple", "exec", "idle"):
        return translated("a worker is up once its program runs")
    if value in ("notify", "notify-reload"):
        terms["ready"] = {"notify": True}
        return translated("ready = { notify = true }")
    if value == "oneshot":
        return translated("it ends, and counts as completed")
    if value == "forking":
        terms["enabled"] = False
        return lost(
            "uphold needs the program in the foreground, so it is enabled = false; find the"
            " option that keeps it there, and enable it"
        )
    return approximated(f"Type={value} is not waited for: it is up once its program runs")


def _user(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms["user"] = value
    return translated("user")


def _group(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms["group"] = value
    return translated("group")


def _working_dir(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    path = value.removeprefix("-")
    if path == "~":
        terms["working_dir"] = variable("HOME")
        return approximated("working_dir is the home of the supervisor's user; write it in full")
    terms["working_dir"] = path
    if path != value:
        return approximated("working_dir; it must be there")
    return translated("working_dir")


def _environment(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    found = environment_of(setting, value)
    own = sorted(OWN_VARIABLES & found.keys())
    good = {name: text for name, text in found.items() if name not in own}
    terms.setdefault("environment", {}).update(good)
    if own:
        return approximated(f"environment, without {', '.join(own)}, which uphold sets itself")
    return translated("environment")


def _environment_file(_setting: Setting, value: str, terms: Terms, source: Source) -> Outcome:
    path = value.removeprefix("-")
    if path != value and source.read(path) is None:
        return lost("it is not there, which is allowed there and not here; add env_file later")
    if "env_file" in terms:
        return lost("a worker has one env_file; put both into one")
    terms["env_file"] = path
    return approximated("env_file; `environment` wins over it here, there it is the other way")


def _pass_environment(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    terms.setdefault("pass_environment", []).extend(value.split())
    return translated("pass_environment")


def _umask(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    if quantities.umask(value) is None:
        raise NotImportable(setting.at, "UMask must be octal digits such as 0022")
    terms["umask"] = value
    return translated("umask")


def _kill_signal(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    number = whole(value)
    name = quantities.stop_signal(value if number is None else number)
    if name is None:
        raise NotImportable(setting.at, "KillSignal must be a signal that can end a process")
    terms.setdefault("stop", {})["signal"] = name
    return translated("stop.signal")


def _timeout_stop(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    wait = span(setting, value)
    terms.setdefault("stop", {})["grace"] = seconds(min(wait, _DAY))
    if wait > _DAY:
        return approximated("stop.grace = 1 day; longer is not possible")
    if setting.name == "TimeoutSec":
        return approximated("stop.grace; starting has no limit of its own")
    return translated("stop.grace")


def _kill_mode(_setting: Setting, value: str, _terms: Terms, _source: Source) -> Outcome:
    if value == "control-group":
        return translated("always so here: everything of the worker is ended")
    if value == "mixed":
        return approximated(
            "the first signal goes to the whole group, not to the main process only"
        )
    return lost("nothing of a worker is left running when it is stopped; there is no way to ask so")


def _success(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    codes, rest = [0], []
    for word in value.split():
        code = _CODES.get(word, whole(word))
        if code is not None and 0 <= code <= 255:
            codes.append(code)
        else:
            rest.append(word)
    known = terms.get("success_exit_codes", [])
    terms["success_exit_codes"] = list(dict.fromkeys([*known, *codes]))
    if rest:
        return approximated(f"success_exit_codes, without {', '.join(rest)}: only numbers count")
    return translated("success_exit_codes")


def _prevent(_setting: Setting, _value: str, _terms: Terms, _source: Source) -> Outcome:
    return lost(
        "an exit code cannot forbid a restart; put it into success_exit_codes if restart"
        ' is "on-failure"'
    )


def _nofile(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    soft = value.partition(":")[0]
    if soft == "infinity":
        return lost("write a number into limits.nofile; the supervisor's own limit is inherited")
    files = whole(soft)
    if files is None or not 3 <= files <= 2**30:
        raise NotImportable(setting.at, "LimitNOFILE must be a number from 3 up")
    terms.setdefault("limits", {})["nofile"] = files
    return translated("limits.nofile")


def _nice(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    nice = whole(value.removeprefix("+"))
    if nice is None or not -20 <= nice <= 19:
        raise NotImportable(setting.at, "Nice must be a number from -20 to 19")
    terms.setdefault("limits", {})["nice"] = nice
    return translated("limits.nice")


def _memory(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    size = re.fullmatch(r"([0-9]{1,12})([KMGT]?)", value)
    if size is None or not 2**20 <= int(size[1]) * 1024 ** " KMGT".index(size[2] or " ") <= 2**50:
        return lost("write a size into limits.memory, such as 500MiB")
    terms.setdefault("limits", {})["memory"] = f"{size[1]}{f'{size[2]}iB' if size[2] else 'B'}"
    return translated("limits.memory")


def _cpu(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    percent = re.fullmatch(r"([0-9]{1,6})%", value)
    if percent is None or not 1 <= int(percent[1]) <= 409600:
        return lost("write a number of processors into limits.cpu, such as 1.5")
    terms.setdefault("limits", {})["cpu"] = int(percent[1]) / 100
    return translated("limits.cpu")


def _watchdog(setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    wait = span(setting, value)
    if not 0 < wait <= _DAY:
        return translated("nothing to do: it is off")
    terms["heartbeat"] = {"stale_after": seconds(max(wait, 0.1))}
    return approximated("heartbeat.stale_after: the third missing beat in a row ends it")


def _output(_setting: Setting, value: str, terms: Terms, _source: Source) -> Outcome:
    if value in ("journal", "inherit", "journal+console", "kmsg", "syslog"):
        return approximated("output is in the home; `uphold logs NAME` shows it")
    if value == "null":
        terms.setdefault("logs", {}).update({"keep": 0, "max_size": "1MB"})
        return approximated("output is always kept here; logs.max_size and logs.keep are small")
    return lost("output goes to the home, logs/NAME.log; `uphold logs NAME` shows it")


def _remain(_setting: Setting, _value: str, _terms: Terms, _source: Source) -> Outcome:
    return translated("a run that ended well stays known as exited")


_LOST: Final = {
    "PIDFile": "uphold believes no pid files; it started the program and knows it",
    "TimeoutStartSec": "starting has no limit; a `ready` probe says when a worker is up",
    "TimeoutAbortSec": "there is one grace, stop.grace",
    "SendSIGKILL": "what does not end within stop.grace is always killed",
    "SendSIGHUP": "one signal asks a worker to end, stop.signal",
    "FinalKillSignal": "what does not end within stop.grace gets KILL",
    "RestartKillSignal": "one signal asks a worker to end, stop.signal",
    "SyslogIdentifier": "logs are named after the worker",
    "NotifyAccess": "messages of every process of the worker are taken",
    "StandardInput": "workers have no standard input",
    "UnsetEnvironment": "workers inherit only a short list; see clear_environment",
    "SupplementaryGroups": "a worker has the groups of its user",
    "LimitNPROC": "limits.processes bounds one worker, where control groups can be made",
    "TasksMax": "limits.processes bounds one worker, where control groups can be made",
    "Slice": "workers are in the group of the supervisor, or in one of their own (containment)",
    "Delegate": "put Delegate=yes into the unit of uphold itself",
    "Sockets": "uphold opens no sockets for programs; let this one listen by itself",
    "IgnoreSIGPIPE": "workers start with the default signals",
    "GuessMainPID": "uphold started the program and knows it",
}
_HANDLERS: Final[dict[str, Callable[[Setting, str, Terms, Source], Outcome]]] = {
    "Type": _type,
    "User": _user,
    "Group": _group,
    "WorkingDirectory": _working_dir,
    "Environment": _environment,
    "EnvironmentFile": _environment_file,
    "PassEnvironment": _pass_environment,
    "UMask": _umask,
    "KillSignal": _kill_signal,
    "TimeoutStopSec": _timeout_stop,
    "TimeoutSec": _timeout_stop,
    "KillMode": _kill_mode,
    "SuccessExitStatus": _success,
    "RestartPreventExitStatus": _prevent,
    "RestartForceExitStatus": _prevent,
    "LimitNOFILE": _nofile,
    "Nice": _nice,
    "MemoryMax": _memory,
    "CPUQuota": _cpu,
    "WatchdogSec": _watchdog,
    "StandardOutput": _output,
    "StandardError": _output,
    "RemainAfterExit": _remain,
}
