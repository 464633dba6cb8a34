"""The tree as a whole: links lead somewhere, nothing tells of the machine it was written on."""

from __future__ import annotations

import ast
import re

import pytest

from docs.papers import ROOT, SOURCE, modules, tree_files, without_code

MACHINE_PATHS = re.compile(
    r"(?<![\w.~}-])/(?:" + r"work|root|Users|home/(?!me\b|deploy\b)\w+" + r")/"
)
REGISTRIES = re.compile(
    "|".join(
        re.escape(word) for word in ("py" + "pi.", "python" + "hosted", "npm" + "js.", "jf" + "rog")
    )
    + r"|artif"
    + r"actory|index"
    + r"-url",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tree_files():
        try:
            found.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def anchors(text: str) -> set[str]:
    """Give the anchors that headings get on the usual hosts."""
    bare = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in bare}


def test_every_relative_link_leads_to_a_file_and_to_a_heading_in_it():
    broken = []
    for name, text in texts():
        if not name.endswith(".md"):
            continue
        for link in _LINK.findall(without_code(text)):
            target, _, anchor = link.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            path = (ROOT / name).parent / target if target else ROOT / name
            if not path.exists():
                broken.append(f"{name}: {link}")
            elif anchor and anchor not in anchors(path.read_text(encoding="utf-8")):
                broken.append(f"{name}: {link} (no such heading)")
    assert broken == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on():
    assert [
        f"{name}: {match[0]}" for name, text in texts() for match in MACHINE_PATHS.finditer(text)
    ] == []


def test_no_file_names_a_package_registry():
    assert [
        f"{name}: {match[0]}" for name, text in texts() for match in REGISTRIES.finditer(text)
    ] == []


def test_the_scans_would_find_what_they_look_for():
    assert MACHINE_PATHS.search("see /" + "work/x") is not None
    assert MACHINE_PATHS.search("'/" + "home/somebody/x'") is not None
    assert REGISTRIES.search("https://" + "py" + "pi.org/simple") is not None


def test_every_module_says_what_lives_in_it():
    assert [name for name, tree in modules() if not ast.get_docstring(tree)] == []


WITHOUT_OWN_TEST = {
    "one verb each; driven as people drive them, by tests/cli and tests/journeys": (
        r"cli/(commands|dbverbs)/\w+\.py"
    ),
    "helpers of commands; tests/cli runs the commands": (
        r"cli/(changes|crashes|foreground|launching|output|owners|places|reaching|runtimelog"
        r"|seeing|speaking|stores|usage|writing)\.py"
    ),
    "the composition root; tests/journeys runs it whole": (
        r"daemon/(left_overs|serving|telling)\.py"
    ),
    "parts of one engine; tests/engine/test_supervisor.py plays them together": (
        r"engine/(auditing|drafts|intake|jobs|patients|performer|reconciler|recovering|showing|snapshots"
        r"|telling)\.py"
    ),
    "parts of one importer each; tests/config/importing plays them through it": (
        r"config/importing/(compose|supervisord|systemd)_\w+\.py"
    ),
    "a record without behaviour": r"drivers/runs\.py|version\.py",
    "a program of its own; tests/drivers/test_probing.py runs it": r"drivers/asking_securely\.py",
    "a fake; tests/engine/test_checking.py plays with it": r"testing/probers\.py",
    "starts something else; journeys run it": r"(.+/)?__main__\.py",
    "a front without code of its own": r"(.+/)?__init__\.py",
    "protocols; tests/contracts runs suites over every implementation": r"ports/\w+\.py",
    "tests themselves, run by tests/contracts": r"testing/contracts/\w+\.py",
}
"""Modules that may do without a test of their name, and why."""


def imported_by_tests() -> set[str]:
    """Name the modules of uphold that some test imports by name."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found |= {f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
    return found


def test_every_module_has_a_test_of_its_name_or_is_at_least_imported_by_one():
    imported = imported_by_tests()
    untested = []
    for name, _ in modules():
        path = SOURCE / name
        mirror = ROOT / "tests" / path.relative_to(SOURCE).with_name(f"test_{path.name}")
        module = "uphold." + name.removesuffix(".py").replace("/", ".")
        excused = any(re.fullmatch(names, name) for names in WITHOUT_OWN_TEST.values())
        if not (mirror.exists() or module in imported or excused):
            untested.append(name)
    assert untested == []


def test_every_excuse_is_still_needed_by_somebody():
    names = [name for name, _ in modules()]
    for reason, pattern in WITHOUT_OWN_TEST.items():
        assert any(re.fullmatch(pattern, name) for name in names), reason


@pytest.mark.accepts("R-19")
def test_the_gate_runs_the_whole_suite_in_parallel_and_in_random_order():
    makefile = (ROOT / "Makefile").read_text()
    assert "pytest -n 4" in makefile
    assert "pytest-randomly" in makefile
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("make test")


@pytest.mark.accepts("M-05")
def test_the_public_front_of_the_package_is_what_the_papers_say():
    import uphold

    assert uphold.__all__ == [
        "BlockingStopping",
        "Health",
        "Stopping",
        "Worker",
        "__version__",
        "beat",
        "ready",
        "stop_requested",
        "stopping",
    ]
    assert all(getattr(uphold, name) is not None for name in uphold.__all__)
