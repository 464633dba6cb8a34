from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from leaks import held
from uphold.core.specs import Logs
from uphold.errors import HostFailure
from uphold.host.homes import Home
from uphold.host.processes.outputs import Outputs, rotate


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.run.mkdir()
    home.logs.mkdir()
    return home


def close(descriptors):
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.accepts("P13")
def test_what_was_written_stays_while_the_supervisor_keeps_the_fifo(home):
    outputs = Outputs(home)
    opened = outputs.open("web", Logs(), None)
    os.write(opened[0], b"last words")
    close(opened)
    again = outputs.open("web", Logs(), None)
    assert os.read(again[0], 100) == b"last words"
    close(again)
    outputs.close()


def test_the_fifo_of_an_adopted_slot_is_kept_too(home):
    first = Outputs(home)
    opened = first.open("web", Logs(split=True), None)
    told = []
    second = Outputs(home, told.append)
    second.keep("web")
    second.keep("none")
    assert told == ["web"], "its reader may have let go while nobody held it"
    os.write(opened[1], b"last words")
    close(opened)
    first.close()
    reader = os.open(home.fifo("web", "err"), os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(reader, 100) == b"last words"
    os.close(reader)
    second.close()


def test_everything_is_let_go_of(home):
    before = held()
    outputs = Outputs(home)
    for slot in ("a", "b"):
        close(outputs.open(slot, Logs(split=True), None))
    outputs.release("a")
    outputs.release("a")
    outputs.close()
    assert held() == before


def test_a_fifo_that_was_removed_is_made_and_told_again(home):
    told = []
    outputs = Outputs(home, told.append)
    close(outputs.open("web", Logs(), None))
    Path(home.fifo("web")).unlink()
    close(outputs.open("web", Logs(), None))
    assert told == ["web", "web"]
    assert stat.S_ISFIFO(Path(home.fifo("web")).stat().st_mode)
    outputs.close()


@pytest.mark.accepts("S03")
def test_what_is_in_the_way_of_a_fifo_is_left_alone(home):
    Path(home.fifo("web")).write_text("precious")
    with pytest.raises(HostFailure, match="is in the way"):
        Outputs(home).open("web", Logs(), None)
    assert Path(home.fifo("web")).read_text() == "precious"


@pytest.mark.parametrize(("keep", "kept"), [(0, {}), (1, {1: "d"}), (3, {1: "d", 2: "c", 3: "b"})])
def test_a_log_that_grew_too_large_is_moved_aside(home, keep, kept):
    log = home.log("web")
    for content in "abcd":
        log.write_text(content)
        rotate(log, Logs(max_size=0, keep=keep))
        assert not log.exists()
    found = {int(path.suffix[1:]): path.read_text() for path in home.logs.iterdir()}
    assert found == kept


def test_a_log_that_is_small_or_missing_stays(home):
    rotate(home.log("web"), Logs(max_size=10))
    home.log("web").write_text("0123456789")
    rotate(home.log("web"), Logs(max_size=10))
    assert home.log("web").read_text() == "0123456789"


@pytest.mark.accepts("S03")
def test_a_link_planted_as_a_log_is_not_written_to(home, tmp_path):
    (tmp_path / "precious").write_text("precious")
    home.log("web").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        Outputs(home).open("web", Logs(mode="file"), None)
    assert (tmp_path / "precious").read_text() == "precious"


def test_without_a_pump_everything_goes_straight_to_files(home):
    fifo = Outputs(home)
    piped = fifo.open("old", Logs(), None)
    straight = Outputs(home, straight=True)
    opened = straight.open("web", Logs(split=True), None)
    os.write(opened[0], b"out\n")
    os.write(opened[1], b"err\n")
    close(opened)
    assert home.log("web").read_text() == "out\n"
    assert home.log("web", "err").read_text() == "err\n"
    assert not Path(home.fifo("web")).exists()
    before = len(held())
    straight.keep("old")
    assert len(held()) == before, "a pump that has it shall see its end"
    close(piped)
    fifo.close()
    straight.close()


def test_what_a_pump_has_packed_moves_aside_with_its_index(home):
    names = {
        "web.log": "now",
        "web.log.idx": "times",
        "web.log.1": "one",
        "web.log.1.idx": "times of one",
        "web.log.2.gz": "two",
        "web.log.3.gz": "three",
        "web.log.gz": "somebody else's",
    }
    for name, content in names.items():
        (home.logs / name).write_text(content)
    rotate(home.log("web"), Logs(max_size=0, keep=3))
    assert {path.name: path.read_text() for path in home.logs.iterdir()} == {
        "web.log.1": "now",
        "web.log.1.idx": "times",
        "web.log.2": "one",
        "web.log.2.idx": "times of one",
        "web.log.3.gz": "two",
        "web.log.gz": "somebody else's",
    }
