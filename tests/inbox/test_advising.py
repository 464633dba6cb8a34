"""The plug-in's side of a question, asked here; `test_consulting` asks real processes."""

from __future__ import annotations

import pytest

from inbox.plugged import EXAMPLE, MISHAPS, OFFERED
from uphold.inbox.advising import advise

FLAG = {"task_id": "task_1", "handler": "", "worker_id": "OrionMX", "label": None, "sender": None}


@pytest.fixture(autouse=True)
def offered(tmp_path, monkeypatch):
    """Both packages, on the path of these tests."""
    about = tmp_path / "offered-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    points = [f"{name} = mishaps:{name}" for name in OFFERED]
    points += ["stop_watcher = orion_handlers:STOP_WATCHER", "resize = orion_handlers:RESIZE"]
    (about / "entry_points.txt").write_text("\n".join(["[uphold.handlers]", *points]))
    (tmp_path / "mishaps.py").write_text(MISHAPS)
    (tmp_path / "orion_handlers.py").write_text((EXAMPLE / "orion_handlers.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("mishaps", "orion_handlers"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)


def asked(handler, **params):
    return advise({"handler": handler, "flag": {**FLAG, "handler": handler, "params": params}})


def test_asked_for_its_row_it_gives_it():
    assert advise({"handler": "resize"}) == {
        "name": "resize",
        "urgency": 2,
        "number": 41,
        "aliases": [],
        "params": ["slots"],
    }


def test_asked_about_a_flag_it_gives_the_wish():
    wish = {"wish": "ScaleWorker", "name": "OrionMX", "replicas": 3}
    assert asked("resize", slots=3) == {"wish": wish}


def test_a_wrong_parameter_and_a_refusal_are_refusals():
    assert asked("resize", slots="x")["refused"]["code"] == "UPH_FLAG_PARAMS"
    assert asked("resize")["refused"]["code"] == "ORION_SLOTS_MISSING"


@pytest.mark.parametrize("handler", ["raises", "leaves", "silent", "ending"])
def test_whatever_it_does_is_an_answer(handler):
    assert set(asked(handler)) == {"failed"}


@pytest.mark.parametrize("handler", ["misnamed", "shouting", "late", "idle", "nowhere"])
def test_what_is_no_handler_is_unusable_for_its_row_and_for_a_flag(handler):
    assert set(advise({"handler": handler})) == set(asked(handler)) == {"unusable"}
