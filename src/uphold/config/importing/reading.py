"""The front of the importers: opens the file, finds out what it is, and words what goes wrong."""
# ruff: noqa: PTH100, PTH113, PTH118, PTH119, PTH120, PTH207

from __future__ import annotations

import glob
import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

from uphold.config.files import NotRead, Shelf, as_recognised
from uphold.config.importing.recognising import KINDS, recognise
from uphold.config.importing.reports import Import, NotImportable, Source
from uphold.errors import EXIT_CONFIG, EXIT_USAGE, UpholdError

if TYPE_CHECKING:
    from collections.abc import Callable

_READERS: Final = {
    "supervisord": ("supervisord", "read_supervisord"),
    "procfile": ("procfiles", "read_procfile"),
    "process-compose": ("process_compose", "read_process_compose"),
    "systemd": ("systemd", "read_systemd"),
}
_MOST_FILES: Final = 1000
"""How many files a pattern may include."""


def import_file(path: str, *, kind: str | None = None, target: str | None = None) -> Import:
    """Import a file; `target` is the folder in which the configuration will lie."""
    full = os.path.abspath(path)
    shown = as_recognised(full)
    text = _text(full, shown)
    kind = kind or recognise(os.path.basename(full), text)
    if kind is None:
        raise UpholdError(
            f"cannot tell what {shown} is.",
            code="UPH_IMPORT_UNKNOWN",
            remedy=f"Say it with --as; known are {', '.join(KINDS)}.",
            exit_code=EXIT_USAGE,
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _invalid(shown, kind, NotImportable(f"{shown}:{line}", "there is a NUL character"))
    folder = os.path.dirname(full)
    source = Source(
        name=shown,
        text=text,
        folder=folder,
        target=folder if target is None else os.path.abspath(target),
        host=os.uname().nodename,
        read=lambda other: _other(folder, other),
        find=lambda pattern: _matching(folder, pattern),
    )
    return _imported(kind, source, shown)


def _imported(kind: str, source: Source, shown: str) -> Import:
    module, function = _READERS[kind]
    reader: Callable[[Source], Import] = getattr(
        import_module(f"uphold.config.importing.{module}"), function
    )
    try:
        imported = reader(source)
    except NotImportable as cause:
        raise _invalid(shown, kind, cause) from cause
    if not imported.workers:
        raise _empty(shown, kind, imported)
    return imported


def _empty(shown: str, kind: str, imported: Import) -> UpholdError:
    included = [line for line in imported.report if line.section == "[include]"]
    remedy = "Is it the right file? Say with --as what it is, if it was mistaken."
    if included:
        remedy = f"Its [include] ({included[0].at}): {included[0].how}."
    return UpholdError(
        f"{shown} names no program to run, as {kind} reads it.",
        code="UPH_IMPORT_EMPTY",
        remedy=remedy,
        exit_code=EXIT_CONFIG,
    )


def _invalid(shown: str, kind: str, cause: NotImportable) -> UpholdError:
    return UpholdError(
        f"{shown} cannot be imported as {kind}: {cause.at}: {cause.text}.",
        code="UPH_IMPORT_INVALID",
        remedy="Mend that line, or say with --as what the file is.",
        exit_code=EXIT_CONFIG,
    )


def _text(path: str, shown: str) -> str:
    try:
        return Shelf().read(path)
    except NotRead as cause:
        raise UpholdError(
            f"{shown} {cause.text}.",
            code="UPH_IMPORT_UNREADABLE",
            remedy="Check the path; the file must be text in UTF-8 and readable for you.",
            exit_code=EXIT_CONFIG,
        ) from cause


def _other(folder: str, path: str) -> str | None:
    try:
        return Shelf().read(os.path.join(folder, path))
    except NotRead:
        return None


def _matching(folder: str, pattern: str) -> tuple[str, ...]:
    found = sorted(glob.glob(os.path.join(folder, pattern)))[:_MOST_FILES]
    return tuple(path for path in found if os.path.isfile(path))
