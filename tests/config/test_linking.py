from __future__ import annotations

from uphold.config.linking import check_links
from uphold.config.places import Report
from uphold.core.specs import Need, WorkerSpec


def problems(**needs):
    workers = [
        WorkerSpec(name=name, depends_on=tuple((other, Need.STARTED) for other in others.split()))
        for name, others in needs.items()
    ]
    report = Report()
    check_links(workers, report, ())
    return [problem.text for problem in report.problems("f", lambda _: 1)]


def test_a_chain_and_a_diamond_are_fine():
    assert problems(a="b c", b="d", c="d", d="") == []


def test_every_circle_is_named_once():
    found = problems(a="b", b="a", c="d", d="e", e="c", f="a c", g="")
    assert len(found) == 2
    assert "a → b → a" in found[0]
    assert "c → d → e → c" in found[1]


def test_unknown_names_and_oneself():
    found = problems(cache="", a="cahe", b="b")
    assert len(found) == 2
    assert "did you mean 'cache'?" in found[0]
    assert "itself" in found[1]
