"""The contract of handlers, over uphold's own, the example's plug-in, and a fake."""

from __future__ import annotations

import importlib.util
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from uphold.core import orders
from uphold.inbox.handlers import HANDLERS
from uphold.plugins import Handler, Urgency
from uphold.testing.contracts.handlers import HandlerContract

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flag-plugin" / "orion_handlers.py"
OWN = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


def example(name):
    spec = importlib.util.spec_from_file_location("orion_handlers", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize("name", OWN["uphold.handlers"])
class TestOwnHandlers(HandlerContract):
    """Found as plug-ins are: by the entry points of uphold's own package."""

    @pytest.fixture
    def handler(self, name):
        return EntryPoint(name, OWN["uphold.handlers"][name], "uphold.handlers").load()

    @pytest.fixture
    def params(self, name):
        return {"commits_back": 3} if name == "rollback_code" else {}


class TestTheExamplesStop(HandlerContract):
    @pytest.fixture
    def handler(self):
        return example("STOP_WATCHER")


class TestTheExamplesResize(HandlerContract):
    @pytest.fixture
    def handler(self):
        return example("RESIZE")

    @pytest.fixture
    def params(self):
        return {"slots": 2}


class TestFakeHandler(HandlerContract):
    @pytest.fixture
    def handler(self):
        def wish(flag):
            return orders.ResetWorkers(names=(flag.worker_id,))

        return Handler("fake", Urgency.EMERGENCY, 0, wish=wish)


def test_all_of_uphold_s_own_are_registered_as_plug_ins_are():
    assert list(OWN["uphold.handlers"]) == [handler.name for handler in HANDLERS]
