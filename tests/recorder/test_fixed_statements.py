"""No statement is put together from parts: what comes from outside can only be a parameter."""

from __future__ import annotations

import ast

import pytest

from docs.papers import modules

STATEMENTS = {"text", "execute", "executemany", "exec_driver_sql", "scalar"}


def composed(tree: ast.AST) -> list[int]:
    """Find calls that execute a text which is not written out where it stands."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in STATEMENTS and isinstance(node.args[0], ast.JoinedStr | ast.BinOp):
            found.append(node.lineno)
    return found


@pytest.mark.accepts("S42")
def test_no_module_of_the_recorder_composes_a_statement():
    ours = {name: composed(tree) for name, tree in modules() if name.startswith("recorder/")}
    assert {name for name, lines in ours.items() if lines} == set()


def test_one_that_did_would_be_found():
    assert composed(ast.parse("connection.execute(f'SELECT {x}')")) == [1]
    assert composed(ast.parse("text('SELECT ' + x)")) == [1]
    assert composed(ast.parse("text('SELECT 1')")) == []
