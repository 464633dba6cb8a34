"""Whether workers that come after others can ever come: unknown names, themselves, circles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.core.dependencies import find_cycle

if TYPE_CHECKING:
    from uphold.config.places import Report, Where
    from uphold.core.specs import WorkerSpec


def check_links(workers: list[WorkerSpec], report: Report, root: Where) -> None:
    """Note every dependency that cannot be met."""
    names = {spec.name: None for spec in workers}
    for spec in workers:
        where = (*root, "workers", spec.name, "depends_on")
        for other, _ in spec.depends_on:
            if other == spec.name:
                report.wrong((*where, other), f"worker '{other}' cannot come after itself.")
            elif other not in names:
                hint = report.guess(other, names)
                report.wrong(
                    (*where, other),
                    f"worker '{spec.name}' comes after '{other}', but no worker is called so{hint}",
                )
    _note_circles(workers, report, root)


def _note_circles(workers: list[WorkerSpec], report: Report, root: Where) -> None:
    rest = [
        spec
        for spec in workers
        if spec.depends_on and all(other != spec.name for other, _ in spec.depends_on)
    ]
    while cycle := find_cycle(rest):
        text = f"these workers wait for each other for ever: {' → '.join(cycle)}."
        report.wrong((*root, "workers", cycle[0], "depends_on"), text)
        # Taken out whole: what only hangs on a circle is no circle of its own.
        rest = [spec for spec in rest if spec.name not in cycle]
