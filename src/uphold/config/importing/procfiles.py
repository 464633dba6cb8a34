"""A `Procfile` and the `.env` beside it."""

from __future__ import annotations

import re
from typing import Final

from uphold.config.dotenv import parse_env
from uphold.config.importing.reports import (
    Book,
    Draft,
    Import,
    Names,
    NotImportable,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import cleaned, needs_shell, whole, written_all
from uphold.config.shapes import OWN_VARIABLES

KIND: Final = "procfile"
_LINE: Final = re.compile(r"([A-Za-z0-9_-]+):\s*(\S.*)")
_GRACE: Final = "5s"
_FIRST_PORT: Final = 5000
_PORTS_APART: Final = 100
_HIGHEST_PORT: Final = 65535


def read_procfile(source: Source) -> Import:
    """Translate the file, and the variables beside it."""
    book = Book()
    defaults: Terms = {"stop": {"grace": _GRACE}, **source.working_dir()}
    first_port = _variables(source, defaults, book)
    names = Names()
    workers: list[Draft] = []
    for number, raw in enumerate(source.text.splitlines(), start=1):
        line = cleaned(raw).strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise NotImportable(source.at(number), "this line is no `name: command`")
        setting = Setting(source.at(number), "", match[1], match[2])
        port = first_port + _PORTS_APART * len(workers)
        workers.append(_worker(setting, names.give(match[1]), port, book))
    _told_without_settings(source, book)
    return Import(
        kind=KIND, workers=tuple(workers), report=book.lines(), defaults=written_all(defaults)
    )


def _worker(setting: Setting, name: str, port: int, book: Book) -> Draft:
    shell = needs_shell(setting.value)
    terms: Terms = {"command": setting.value}
    if shell:
        terms["shell"] = True
    if port <= _HIGHEST_PORT:
        terms["environment"] = {"PORT": str(port)}
    how = "command, with shell = true" if shell else "command; it needs no shell"
    outcome = translated(how if name == setting.name else f"{how}; the worker is called {name}")
    if setting.name == "release":
        terms["restart"] = "no"
        outcome = approximated('command, with restart = "no": it runs once at each start of uphold')
    book.judge(setting, outcome, name)
    return Draft(name, written_all(terms))


def _variables(source: Source, defaults: Terms, book: Book) -> int:
    """Take the `.env` over; tell the first port."""
    text = source.read(".env")
    if text is None:
        return _FIRST_PORT
    values, faults = parse_env(text)
    for line, fault in faults:
        setting = Setting(f".env:{line}", ".env", f"(line {line})", None)
        book.judge(setting, lost(f"{fault.rstrip('.')}; mend the line and import again"))
    own = OWN_VARIABLES & values.keys()
    for name in values:
        setting = Setting(".env", ".env", name, None)
        if name in own:
            book.judge(setting, lost("uphold sets this one itself; choose another name"))
        elif name == "PORT":
            book.judge(setting, translated("the first PORT"))
        else:
            book.judge(setting, translated("env_file" if not faults and not own else "environment"))
    if faults or own:
        # A file with mistakes would be refused as a whole, so what is good of it is copied.
        defaults["environment"] = {key: item for key, item in values.items() if key not in own}
    else:
        defaults["env_file"] = source.path(".env")
    port = whole(values.get("PORT", ""))
    return port if port is not None and 0 < port <= _HIGHEST_PORT else _FIRST_PORT


def _told_without_settings(source: Source, book: Book) -> None:
    """Say what differs although nobody wrote it down."""
    told = {
        "(PORT)": "each worker has a PORT of its own, 100 apart, as foreman gives them; replicas"
        " of one worker share it",
        "(one ends, all end)": "uphold starts a program again that has ended; for foreman's way say"
        ' restart = "no" and essential = true',
        "(inherited environment)": "foreman hands its whole environment on, uphold a short list;"
        " name what a program needs in .env or pass_environment",
    }
    for name, how in told.items():
        book.judge(Setting(source.name, "", name, None), approximated(how))
