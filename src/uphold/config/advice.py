"""What is allowed in a configuration and will probably not work here.

Nothing of this refuses a file: users, folders and programs may come before the worker starts.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from uphold.config.documents import Unparsable, parse
from uphold.config.files import NotRead, Shelf, as_recognised
from uphold.config.keys import WRAPPER
from uphold.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.config.places import LineOf
    from uphold.core.specs import Settings, WorkerSpec
    from uphold.host.processes.hierarchies import Hierarchies

_WRITABLE_BY_ALL: Final = stat.S_IWOTH
_UNKEPT: Final = {
    "memory": "no control group can limit memory here (limits.memory); ",
    "cpu": "no control group can limit processors here (limits.cpu); ",
}
_INSTEAD: Final = {
    "memory": "it is watched, and ended when it uses more.",
    "cpu": "it runs without that limit; limits.nice works everywhere.",
}


def warnings(settings: Settings, *, environ: Mapping[str, str]) -> list[Problem]:
    """List what a person should look at before starting this, with file and line."""
    file = as_recognised(settings.source)
    root, line_of = _positions(settings.source)
    found = [Problem(file, text) for text in _about_file(settings.source)]
    for user in settings.inbox.owners if settings.inbox is not None else ():
        if not _is_user(user):
            at = f"{file}:{line_of((*root, 'inbox', 'owners'))}"
            found.append(Problem(at, f"[inbox].owners: there is no user '{user}' on this machine."))
    if settings.deploy is not None and not settings.deploy.workers and settings.workers:
        text = "[deploy].workers names nobody: `uphold update` stops nobody and looks at nobody."
        found.append(Problem(f"{file}:{line_of((*root, 'deploy'))}", text))
    disabled = {spec.name for spec in settings.workers if not spec.enabled or spec.quarantined}
    for spec in settings.workers:
        for key, text in _about_worker(spec, environ, disabled):
            line = line_of((*root, "workers", spec.name, key))
            found.append(Problem(f"{file}:{line}", f"worker '{spec.name}': {text}"))
    return found


def _about_file(source: str) -> Iterator[str]:
    try:
        mode = os.stat(source).st_mode  # noqa: PTH116 - text is enough
        folder = os.stat(os.path.dirname(source)).st_mode  # noqa: PTH116, PTH120
    except OSError:
        return
    if mode & _WRITABLE_BY_ALL:
        yield "everybody may write this file, and so decide what runs; use chmod o-w."
    if folder & _WRITABLE_BY_ALL and not folder & stat.S_ISVTX:
        yield "everybody may replace this file, as its folder is open to all; use chmod o-w."


def _about_worker(
    spec: WorkerSpec, environ: Mapping[str, str], disabled: set[str]
) -> Iterator[tuple[str, str]]:
    if not spec.remote:  # of which nothing is looked for here
        yield from _about_what_it_runs(spec, environ)
    if spec.user is not None and not _is_user(spec.user):
        yield "user", f"there is no user '{spec.user}' on this machine."
    if spec.group is not None and not _is_group(spec.group):
        yield "group", f"there is no group '{spec.group}' on this machine."
    if (spec.user or spec.group) and os.geteuid() != 0:
        yield "user", "only root can start a worker as another user or group."
    yield from _about_groups(spec)
    for other, _ in spec.depends_on:
        if other in disabled and spec.name not in disabled:
            yield "depends_on", f"it waits for '{other}', which is not allowed to run."


def _about_what_it_runs(spec: WorkerSpec, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not os.path.isdir(spec.working_dir):  # noqa: PTH112 - text is enough
        yield "working_dir", f"the folder {spec.working_dir} does not exist."
    elif spec.python is not None:
        if not _has_module(spec.python, spec.working_dir):
            module = spec.python.partition(":")[0]
            yield "python", f"there is no module '{module}' in {spec.working_dir}, nor installed."
    elif not spec.shell:
        path = dict(spec.environment).get("PATH") or environ.get("PATH") or os.defpath
        wrong = _about_program(spec.command[0], spec.working_dir, path)
        if wrong:
            yield "command", wrong


def _about_groups(spec: WorkerSpec) -> Iterator[tuple[str, str]]:
    if spec.containment == "group" and _hierarchies().tree is None:
        yield "containment", "no control group can be made here, so it will not be started."
    if spec.limits.processes is not None and not _hierarchies().counts:
        yield "limits", "processes cannot be counted here (limits.processes); it will not start."
    for limit in ("memory", "cpu"):
        if getattr(spec.limits, limit) is not None and not _hierarchies().offers(limit):
            firm = spec.containment == "group"
            yield "limits", f"{_UNKEPT[limit]}{'it will not start.' if firm else _INSTEAD[limit]}"


@lru_cache(maxsize=256)
def _about_program(program: str, folder: str, path: str) -> str | None:
    if "/" in program:
        full = os.path.join(folder, program)  # noqa: PTH118 - text is enough
        if not os.path.exists(full):  # noqa: PTH110
            return f"there is no file {full}."
        return None if _is_program(full) else f"{full} is not executable; use chmod +x."
    places = (os.path.join(part or ".", program) for part in path.split(":"))  # noqa: PTH118
    if any(_is_program(place) for place in places):
        return None
    return f"the program '{program}' is not on PATH ({path}); give its full path."


def _has_module(target: str, folder: str) -> bool:
    """Tell whether the module of a Python worker can be found, without importing anything."""
    from importlib.util import find_spec  # noqa: PLC0415 - only `check` asks

    parts = target.partition(":")[0].split(".")
    path = os.path.join(folder, *parts)  # noqa: PTH118 - text is enough
    if os.path.isfile(f"{path}.py") or os.path.isdir(path):  # noqa: PTH112, PTH113
        return True
    first = os.path.join(folder, parts[0])  # noqa: PTH118
    # What stands in the worker's own folder comes before what is installed.
    return not os.path.exists(first) and find_spec(parts[0]) is not None  # noqa: PTH110


@lru_cache(maxsize=1)
def _hierarchies() -> Hierarchies:
    from uphold.host.processes.hierarchies import find_hierarchies  # noqa: PLC0415 - rarely asked

    return find_hierarchies()


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - text is enough


def _is_user(name: str) -> bool:
    import pwd  # noqa: PLC0415 - only `check` asks

    try:
        pwd.getpwnam(name)
    except KeyError:
        return name.isascii() and name.isdigit()
    return True


def _is_group(name: str) -> bool:
    import grp  # noqa: PLC0415 - only `check` asks

    try:
        grp.getgrnam(name)
    except KeyError:
        return name.isascii() and name.isdigit()
    return True


def _positions(source: str) -> tuple[tuple[str, ...], LineOf]:
    try:
        document = parse(Shelf().read(source), source)
    except (NotRead, Unparsable):
        return (), lambda _: 1
    return ((WRAPPER,) if isinstance(document.tables.get(WRAPPER), dict) else ()), document.line_of
