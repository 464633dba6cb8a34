"""The manual names what exists: methods of the socket, decisions (verbs: see tests/cli)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs.papers import ROOT, code_blocks, modules, page, table_rows
from uphold.config.loading import load
from uphold.control.server import error_view
from uphold.errors import UpholdError


def methods_offered() -> set[str]:
    """Read the closed table of methods out of the source: the keys of the dictionaries."""
    trees = [dict(modules())[name] for name in ("daemon/methods.py", "daemon/copies.py")]
    serving = [
        word.value
        for node in ast.walk(dict(modules())["daemon/serving.py"])
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "more"
    ]
    tables = [
        node.value
        for tree in trees
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name in ("table", "streams")
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
    ]
    return {
        str(key.value)
        for table in (*tables, *serving)
        if isinstance(table, ast.Dict)
        for key in table.keys
        if isinstance(key, ast.Constant)
    }


def test_every_method_of_the_socket_is_documented_and_no_other():
    offered = methods_offered()
    assert "status" in offered
    rows = table_rows(page("docs/control-protocol.md").split("## Methods")[1].split("## ")[0])
    assert {row[0].strip("`") for row in rows if row[0].startswith("`")} == offered


def test_the_shape_of_an_error_is_as_documented():
    shape = error_view(UpholdError("x", remedy="y"))
    text = page("docs/control-protocol.md")
    assert all(f'"{key}"' in text for key in shape)


def test_decisions_are_numbered_without_gaps_and_say_what_a_decision_says():
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], path.name


def test_every_decision_that_the_code_refers_to_exists():
    known = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")}
    named = {
        number
        for path in (ROOT / "src").rglob("*.py")
        for number in re.findall(r"decision (\d{4})", path.read_text(encoding="utf-8"))
    }
    assert named <= known
    assert named


def test_the_configuration_beside_that_of_supervisord_loads(tmp_path: Path):
    (example,) = code_blocks(page("docs/supervisord.md"), "toml")
    path = tmp_path / "uphold.toml"
    path.write_text(example)
    (web,) = load(path, environ={}).workers
    assert (web.name, web.replicas, web.stop.grace) == ("web", 2, 20.0)
