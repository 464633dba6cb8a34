"""What a supervisor brings into memory, seen in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "sqlalchemy",
    "alembic",
    "mcp",
    "litestar",
    "starlette",
    "fastapi",
    "uvicorn",
    "nats",
    "pydantic",
    "rich",
    "psutil",
    "prometheus_client",
)
NEEDLESS = (
    "ssl",
    "_ssl",
    "http.client",
    "importlib.metadata",
    "yaml",
    "uphold.cli",
    "uphold.testing",
    "uphold.inbox",
    "uphold.plugins",
    "uphold.deploy",
    "uphold.diagnose",
    "uphold.recorder",
    "uphold.daemon.marking",
    "uphold.daemon.sharing",
    "uphold.daemon.deploying",
    "uphold.daemon.reporting",
)
PROGRAM = """
import json, sys
sys.modules["ssl"] = None
import uphold.daemon.serving
print(json.dumps(sorted(name for name, module in sys.modules.items() if module is not None)))
"""


def loaded(program: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(ran.stdout))


@pytest.fixture(scope="module")
def of_the_supervisor() -> set[str]:
    return loaded(PROGRAM)


@pytest.mark.parametrize("name", [*HEAVY, *NEEDLESS])
def test_the_supervisor_does_not_load(name: str, of_the_supervisor: set[str]):
    assert "uphold.engine.supervisor" in of_the_supervisor
    assert name not in of_the_supervisor


def test_hiding_ssl_is_what_keeps_it_out():
    """Should asyncio stop importing it by itself, decision 0002 can go."""
    assert "ssl" in loaded(PROGRAM.replace('sys.modules["ssl"] = None\n', ""))


def test_a_share_without_plug_ins_brings_nothing_of_what_finds_them():
    found = loaded(PROGRAM.replace("uphold.daemon.serving", "uphold.daemon.sharing"))
    assert "uphold.plugins" in found
    assert not found & {"importlib.metadata", "email", "uphold.inbox.advising"}


SLOW_TO_LOAD = (
    "argparse",
    "asyncio",
    "contextlib",
    "dataclasses",
    "datetime",
    "fcntl",
    "gettext",
    "importlib",
    "importlib.metadata",
    "inspect",
    "locale",
    "logging",
    "msgspec",
    "pathlib",
    "selectors",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "tomllib",
    "traceback",
    "typing",
    "yaml",
    "uphold.cli.parsers",
    "uphold.config.loading",
    "uphold.daemon",
    "uphold.engine",
    "uphold.wire",
)
STATUS = """
import json, sys
from uphold.cli.main import run_command
from uphold.cli.arguments import parse
import uphold.cli.commands.status
assert parse(["-c", "uphold.toml", "status", "--json"]).config == "uphold.toml"
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def of_status() -> set[str]:
    return loaded(STATUS)


@pytest.mark.parametrize("name", SLOW_TO_LOAD)
def test_status_does_not_wait_for(name: str, of_status: set[str]):
    assert "uphold.control.client" in of_status
    assert name not in of_status
