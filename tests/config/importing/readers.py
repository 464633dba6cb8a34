"""What the tests of the importers share: texts that need no files."""

from __future__ import annotations

from uphold.config.importing.process_compose import read_process_compose
from uphold.config.importing.procfiles import read_procfile
from uphold.config.importing.reports import Import, Source
from uphold.config.importing.supervisord import read_supervisord
from uphold.config.importing.systemd import read_systemd

READERS = {
    "supervisord": (read_supervisord, "supervisord.conf"),
    "procfile": (read_procfile, "Procfile"),
    "process-compose": (read_process_compose, "process-compose.yaml"),
    "systemd": (read_systemd, "shop.service"),
}


def import_text(kind: str, text: str, files: dict[str, str] | None = None, **more: str) -> Import:
    """Import a text; `files` lie beside it."""
    reader, name = READERS[kind]
    beside = files or {}
    source = Source(
        **{"name": name, "text": text, "folder": "/srv", **more},
        read=beside.get,
        find=lambda pattern: tuple(
            path for path in beside if path.startswith(pattern.partition("*")[0])
        ),
    )
    return reader(source)


def terms(imported: Import, name: str | None = None) -> dict:
    """Give the keys of one worker, the only one if it is not named."""
    found = {draft.name: dict(draft.terms) for draft in imported.workers}
    if name is None:
        (only,) = found.values()
        return only
    return found[name]


def verdict(imported: Import, setting: str) -> tuple[str, str]:
    """Give the verdict on a setting and how it is worded."""
    (line,) = [line for line in imported.report if line.setting == setting]
    return line.verdict.value, line.how
