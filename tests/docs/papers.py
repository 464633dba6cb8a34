"""What the tests of the papers share: where things are, and how they are read."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "src" / "uphold"
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """Read a page of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def code_blocks(text: str, language: str) -> list[str]:
    """Give the fenced blocks in this language."""
    return [body for found, body in _FENCE.findall(text) if found == language]


def without_code(text: str) -> str:
    """Leave out everything that is shown literally."""
    return _CODE.sub("", text)


def table_rows(text: str) -> list[list[str]]:
    """Give the cells of every table row, without the rows of dashes."""
    rows = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return [row for row in cells if not all(set(cell) <= {"-", ":", " "} for cell in row)]


def tree_files() -> list[Path]:
    """List what the project consists of: what git knows, and what is about to be added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (ROOT / name for name in listed.split("\0") if name)
    return sorted({path for path in paths if path.is_file()})


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Parse every module of uphold, named by its path below `src/uphold`."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf-8"))
