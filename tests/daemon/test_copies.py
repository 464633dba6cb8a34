"""What the supervisor makes of the recorder's words."""

from __future__ import annotations

import json

import pytest

from uphold.core.specs import StoreSpec
from uphold.core.times import utc_text
from uphold.daemon.copies import Copies
from uphold.errors import UpholdError
from uphold.host.homes import Home
from uphold.testing.clocks import FakeClock
from uphold.wire.redaction import Redactor

URL = "mysql://uphold:canary-password@db/shop"
ERROR = {"code": "UPH_STORE_UNREACHABLE", "message": "nobody answers", "remedy": "Look."}


class Setting:
    """A supervisor's side of it, with a store that can be exchanged."""

    def __init__(self, folder):
        self.store = StoreSpec(url=URL)
        self.clock = FakeClock()
        self.copies = Copies(
            home=Home(folder),
            clock=self.clock,
            redactor=lambda: Redactor(["canary-password"]),
            configured=lambda: self.store,
        )

    def hears(self, state, **more):
        said = {
            "state": state,
            "since": utc_text(self.clock.now().wall),
            "at": utc_text(self.clock.now().wall),
            "shown_url": "mysql://db/shop",
            "pending": 0,
            "lag_seconds": 0.0,
            "lost": 0,
            "last_error": ERROR if state in ("unreachable", "refused") else None,
            "copied": {"events": 1, "audit": 1, "jobs": 1},
        }
        note = self.copies.take(said | more)
        return None if note is None else note.type


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path)


@pytest.mark.accepts("E-43")
def test_only_transitions_are_news(setting):
    heard = [
        setting.hears(state)
        for state in (
            *("copying", "caught_up", "copying", "caught_up", "unreachable", "unreachable"),
            *("refused", "copying", "caught_up", "caught_up", "refused"),
        )
    ]
    assert [each for each in heard if each] == [
        "store.caught_up",
        "store.unreachable",
        "store.caught_up",
        "store.unreachable",
    ]
    assert heard[4] == "store.unreachable"
    assert heard[8] == "store.caught_up"


def test_an_outage_that_an_earlier_supervisor_told_of_is_not_told_again(tmp_path):
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool/recorder.json").write_text(json.dumps({"state": "unreachable"}))
    setting = Setting(tmp_path)
    assert setting.hears("unreachable") is None
    assert setting.hears("caught_up") == "store.caught_up"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"state": "odd"}', "[" * 100_000])
def test_a_report_that_nobody_can_read_is_none(tmp_path, content):
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool/recorder.json").write_text(content)
    assert Setting(tmp_path).hears("caught_up") == "store.caught_up"


def test_the_lag_grows_while_nobody_answers(setting):
    setting.hears("unreachable", lag_seconds=5.0, pending=3)
    assert setting.copies.away
    setting.clock.jump_wall(10.0)
    shown = setting.copies.shown()
    assert (shown["state"], shown["lag_seconds"], shown["pending"]) == ("unreachable", 15.0, 3)


def test_what_was_said_of_another_database_is_not_shown(setting):
    setting.hears("unreachable")
    setting.store = StoreSpec(url="postgresql://db/other")
    assert setting.copies.shown()["state"] == "unknown"
    assert not setting.copies.away
    setting.store = None
    assert setting.copies.shown() is None


@pytest.mark.accepts("S43")
def test_no_password_comes_out_whatever_the_recorder_says(setting):
    leaky = {"code": "X", "message": f"cannot reach {URL}", "remedy": "canary-password"}
    note = setting.copies.take(
        {"state": "refused", "shown_url": URL, "last_error": leaky, "pending": 0, "lost": 0}
    )
    assert "canary" not in json.dumps([note.payload, setting.copies.shown()])


@pytest.mark.parametrize("params", [{}, {"state": "fine"}, {"state": "copying", "x": "y" * 70_000}])
def test_nonsense_is_refused(setting, params):
    with pytest.raises(UpholdError) as refused:
        setting.copies.take(params)
    assert refused.value.exit_code == 2
