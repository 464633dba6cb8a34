"""A `process-compose.yaml`: the project's own settings, and one worker for each process."""

from __future__ import annotations

from typing import Any, Final

from uphold.config.dotenv import parse_env
from uphold.config.importing.compose_layers import Layers
from uphold.config.importing.compose_processes import Process, Project, replicas_apart
from uphold.config.importing.compose_texts import Texts, as_text, variables_of
from uphold.config.importing.reports import (
    NO_SUCH_SETTING,
    Book,
    Import,
    Names,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import written_all
from uphold.core.names import is_worker_name

KIND: Final = "process-compose"
_DEFAULTS: Final[Terms] = {
    "restart": "no",
    "backoff": {"first": "1s", "base": "1s", "max": "1s", "jitter": 0},
    "stop": {"grace": "10s"},
}
"""What holds under process-compose unless a process says otherwise."""
_ALWAYS: Final = {
    "is_strict": "unknown keys are refused",
    "ordered_shutdown": "workers stop in reverse order of dependence",
}
_LOST: Final = {
    "log_location": "each worker has its own log in the home; `uphold logs` shows all",
    "log_level": "it is about process-compose's own log; uphold's has one level",
    "log_length": "it is about the screen of process-compose; `uphold logs -n` shows as many",
    "log_format": "output is kept as it is",
    "log_configuration": "it is about a common log; set [defaults] logs for those of the workers",
    "is_tui_disabled": "`uphold run` shows lines, `uphold run --table` a table",
    "env_cmds": "commands are not run to fill variables; set them where uphold is started, or"
    " in .env",
    "disable_env_expansion": "variables of the whole file were left as they are",
    "mcp_server": "there is no MCP server yet",
}


def read_process_compose(source: Source) -> Import:
    """Translate a whole project."""
    book = Book()
    layers = Layers(source, book)
    tables, processes = layers.tables, layers.processes
    expands = tables.get("disable_env_expansion") is not True
    texts = Texts(expands=expands, vars=_table(tables.get("vars")))
    defaults: Terms = {**_DEFAULTS, **source.working_dir()}
    supervisor: Terms = {}
    for key, value in tables.items():
        if key not in ("processes", "extends"):
            setting = Setting(layers.at(key), "", key, value)
            book.judge(setting, _project(setting, defaults, supervisor, texts))
    _dotenv(source, defaults, book)
    project = Project(
        source=source,
        book=book,
        texts=texts,
        shell=_shell(tables.get("shell")),
        processes=processes,
        called=_names(processes),
        at=lambda *where: layers.at("processes", *where),
    )
    workers = [
        draft
        for name, given in processes.items()
        for draft in Process(name, given, project).drafts()
    ]
    _told_without_settings(source, book)
    return Import(
        kind=KIND,
        workers=tuple(workers),
        report=book.lines(),
        defaults=written_all(defaults),
        supervisor=written_all(supervisor),
    )


def _names(processes: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    names = Names()
    called: dict[str, tuple[str, ...]] = {}
    for name, given in processes.items():
        many = replicas_apart(given)
        wanted = [name] if many == 1 else [f"{name}-{number}" for number in range(many)]
        called[name] = tuple(names.give(each) for each in wanted)
    return called


def _project(setting: Setting, defaults: Terms, supervisor: Terms, texts: Texts) -> Outcome:
    """Judge one setting of the project itself."""
    if setting.name == "version":
        return translated("nothing to do")
    if setting.name == "name" and is_worker_name(as_text(setting.value)):
        supervisor["name"] = as_text(setting.value)
        return translated("[supervisor] name")
    if setting.name == "environment":
        found = variables_of(setting, texts)
        defaults.setdefault("environment", {}).update(found)
        return translated("[defaults] environment")
    if setting.name in _ALWAYS:
        return translated(f"always so here: {_ALWAYS[setting.name]}")
    if setting.name == "shell":
        return translated("the commands that need a shell name it")
    if setting.name == "vars":
        return translated("put in where {{.NAME}} asks for them")
    if setting.name.startswith("x-"):
        return translated("nothing to do: notes of your own")
    return lost(_LOST.get(setting.name, NO_SUCH_SETTING))


def _dotenv(source: Source, defaults: Terms, book: Book) -> None:
    """Take over the `.env` beside the file: process-compose hands it to every process."""
    text = source.read(".env")
    if text is None:
        return
    values, faults = parse_env(text)
    setting = Setting(".env", "", "(.env)", None)
    if faults:
        line = faults[0][0]
        book.judge(setting, lost(f"line {line} of it cannot be read; mend it and import again"))
    elif values:
        defaults["env_file"] = source.path(".env")
        book.judge(setting, translated("[defaults] env_file"))


def _shell(given: Any) -> tuple[str, str]:
    table = _table(given)
    return (
        as_text(table.get("shell_command") or "bash"),
        as_text(table.get("shell_argument") or "-c"),
    )


def _told_without_settings(source: Source, book: Book) -> None:
    book.judge(
        Setting(source.name, "", "(inherited environment)", None),
        approximated(
            "process-compose hands its whole environment on, uphold a short list; name what"
            " a process needs in environment, env_file or pass_environment"
        ),
    )


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
