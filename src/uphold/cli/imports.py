"""What `import` and `init --from` share: reading, and the report for people and programs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from uphold.cli.arguments import usage_error
from uphold.cli.speaking import warn
from uphold.config.importing.emitting import toml_of
from uphold.config.importing.reading import import_file
from uphold.config.importing.recognising import KINDS
from uphold.core.texts import printable
from uphold.errors import Problem

if TYPE_CHECKING:
    import argparse

    from uphold.config.importing.reports import Import, Line


class Imported:
    """One imported file: what it became, as values and as text."""

    def __init__(self, source: str, found: Import) -> None:
        self.source = source
        self.found = found
        self.toml = toml_of(found, source=source)

    @classmethod
    def read(cls, source: str, kind: str | None, path: str | None) -> Imported:
        """Import a file for a configuration at `path`; None: for one in the current folder."""
        if kind is not None and kind not in KINDS:
            raise usage_error(
                f"nothing called '{kind}' can be imported.", f"Known are {', '.join(KINDS)}."
            )
        folder = os.path.dirname(os.path.abspath(path)) if path else os.curdir  # noqa: PTH100, PTH120
        return cls(source, import_file(source, kind=kind, target=folder))

    def document(self, file: str | None) -> dict[str, Any]:
        """Give everything the shape it has in JSON; `file` is where it was written, if it was."""
        problems = [] if file is None else problems_of(file)
        return {
            "schema": 1,
            "file": file,
            "problems": [{"at": each.at, "text": each.text} for each in problems],
            "source": self.source,
            "kind": self.found.kind,
            "workers": [draft.name for draft in self.found.workers],
            "counts": self.found.counts(),
            "report": [_record(line) for line in self.found.report],
            "toml": self.toml,
        }


def tell_report(args: argparse.Namespace, imported: Imported) -> None:
    """Print the parity report beside the result."""
    if args.quiet:
        return
    rows = [
        (line.verdict.value, line.at, f"{line.section} {line.setting}".strip(), line.how)
        for line in imported.found.report
    ]
    wide = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = ["  ".join((*(f"{row[at]:<{wide[at]}}" for at in range(3)), row[3])) for row in rows]
    counts = imported.found.counts()
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    count = len(imported.found.workers)
    workers = "1 worker" if count == 1 else f"{count} workers"
    lines.append(f"{imported.source} ({imported.found.kind}): {workers}; {told}.")
    sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))


def problems_of(path: str) -> list[Problem]:
    """Say what `uphold check` would: variables that are not set, files that are not there."""
    from uphold.config.loading import examine

    return list(examine(path, environ=os.environ).problems)


def tell_problems(args: argparse.Namespace, path: str) -> None:
    """Print what is still to be done before the file can be used."""
    for problem in problems_of(path):
        warn(args, f"still to be mended: {problem}")


def refuse_other_languages(path: str) -> None:
    """Refuse to write TOML into a file that would be read as something else."""
    if not path.endswith(".toml"):
        raise usage_error(
            f"an import is written as TOML, and '{path}' does not end in .toml.",
            "Choose a name such as uphold.toml.",
        )


def _record(line: Line) -> dict[str, Any]:
    return {
        "at": line.at,
        "section": line.section,
        "setting": line.setting,
        "verdict": line.verdict.value,
        "how": line.how,
        "worker": line.worker,
    }
