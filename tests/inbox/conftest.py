from __future__ import annotations

import pytest

from inbox.plugged import Interpreter


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory):
    """A Python with the example's plug-in in it, and with others that do everything wrong."""
    made = Interpreter(tmp_path_factory.mktemp("python"))
    made.install_example()
    made.install_mishaps()
    return made


@pytest.fixture
def plugged(interpreter, monkeypatch):
    """The same, in the place of the one that runs the tests."""
    monkeypatch.setattr("sys.executable", str(interpreter.python))
    monkeypatch.setattr("uphold.inbox.consulting.LIMIT", 60.0)  # the machine may be busy
    return interpreter
