"""Whether workers that come after others can ever come: unknown names, themselves, circles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.core.dependencies import find_cycles

if TYPE_CHECKING:
    from uphold.config.places import Report, Where
    from uphold.core.specs import WorkerSpec

_SHOWN: Final = 20
"""Names shown of a circle."""


def check_links(
    workers: list[WorkerSpec], report: Report, root: Where, left_out: frozenset[str] = frozenset()
) -> None:
    """Note every dependency that cannot be met."""
    names = {spec.name: None for spec in workers}
    for spec in workers:
        where = (*root, "workers", spec.name, "depends_on")
        for other, _ in spec.depends_on:
            if other == spec.name:
                report.wrong((*where, other), f"worker '{other}' cannot come after itself.")
            elif other in left_out:
                report.wrong(
                    (*where, other),
                    f"worker '{spec.name}' comes after '{other}', which its 'when' leaves out; "
                    "leave out both, or none.",
                )
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
    for cycle in find_cycles(rest):
        text = f"these workers wait for each other for ever: {' → '.join(_ends(cycle))}."
        report.wrong((*root, "workers", cycle[0], "depends_on"), text)


def _ends(cycle: tuple[str, ...]) -> tuple[str, ...]:
    if len(cycle) <= _SHOWN:
        return cycle
    left_out = len(cycle) - _SHOWN
    return (*cycle[: _SHOWN // 2], f"({left_out} more)", *cycle[-_SHOWN // 2 :])
