from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uphold.control.client import Connection
from uphold.errors import ConfigInvalid, NotPermitted, NotRunning, UpholdError


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """A server that sends these bytes for every request of one connection, then hangs up."""
    threads: list[threading.Thread] = []

    def serve(*answers: bytes, home: Path = tmp_path, stay: bool = False) -> Path:
        listening = socket.socket(socket.AF_UNIX)
        folder = os.open(home, os.O_PATH)
        listening.bind(f"/proc/self/fd/{folder}/control.sock")
        os.close(folder)
        listening.listen()

        def converse() -> None:
            connection, _ = listening.accept()
            with listening, connection, connection.makefile("rb") as requests:
                for answer in answers:
                    requests.readline()
                    connection.sendall(answer)
                if stay:
                    requests.readline()

        threads.append(threading.Thread(target=converse))
        threads[-1].start()
        return home

    yield serve
    for thread in threads:
        thread.join()


def line(**message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def test_an_answer_is_matched_to_its_question(answering):
    home = answering(line(id=7, result="old") + line(id=1, result={"pid": 3}), line(id=2, result=4))
    with Connection(str(home)) as connection:
        assert connection.call("ping") == {"pid": 3}
        assert connection.call("ping") == 4


def test_a_home_with_a_very_long_path_can_be_reached(answering, tmp_path):
    deep = tmp_path / ("x" * 200)
    deep.mkdir()
    with Connection(str(answering(line(id=1, result="here"), home=deep))) as connection:
        assert connection.call("ping") == "here"


@pytest.mark.accepts("E-23")
def test_an_error_keeps_its_code_its_remedy_and_its_exit_code(answering):
    error = {"code": "UPH_WORKER_UNKNOWN", "message": "no", "remedy": "see", "exit_code": 5}
    with (
        Connection(str(answering(line(id=1, error=error)))) as connection,
        pytest.raises(UpholdError) as raised,
    ):
        connection.call("status")
    told = raised.value
    assert (told.code, told.message, told.remedy, told.exit_code) == (
        "UPH_WORKER_UNKNOWN",
        "no",
        "see",
        5,
    )


def test_problems_arrive_as_problems(answering):
    problems = [{"at": "uphold.toml:3", "text": "unknown key."}]
    error = {"code": "UPH_CONFIG_INVALID", "message": "x", "exit_code": 6, "problems": problems}
    with (
        Connection(str(answering(line(id=1, error=error)))) as connection,
        pytest.raises(ConfigInvalid) as raised,
    ):
        connection.call("plan")
    assert [str(problem) for problem in raised.value.problems] == ["uphold.toml:3: unknown key."]
    assert raised.value.exit_code == 6


def test_silence_ends_when_patience_does(answering):
    with (
        Connection(str(answering(b"", stay=True))) as connection,
        pytest.raises(UpholdError) as raised,
    ):
        connection.call("status", patience=0.05)
    assert raised.value.code == "UPH_SUPERVISOR_SILENT"


def test_a_supervisor_that_goes_away_is_named_as_such(answering):
    with (
        Connection(str(answering(b'{"id": 1, "resu'))) as connection,
        pytest.raises(UpholdError) as raised,
    ):
        connection.call("status")
    assert raised.value.code == "UPH_SUPERVISOR_GONE"


ACCEPTED = {"job_id": "job_7", "within": 0.05}


def test_an_order_is_accepted_first_and_answered_later(answering):
    home = answering(line(id=1, accepted=ACCEPTED) + line(id=1, result={"job_id": "job_7"}))
    with Connection(str(home)) as connection:
        assert connection.order("submit", {"verb": "stop"}) == {"job_id": "job_7"}


def test_an_order_that_is_answered_at_once_needs_no_other_word(answering):
    with Connection(str(answering(line(id=1, result={"job_id": "job_7"})))) as connection:
        assert connection.order("submit", {"wait": False}) == {"job_id": "job_7"}


@pytest.mark.accepts("E-25")
def test_of_an_order_that_nobody_accepted_nothing_is_known(answering):
    with (
        Connection(str(answering(b"", stay=True))) as connection,
        pytest.raises(UpholdError) as raised,
    ):
        connection.order("submit", {"verb": "stop"}, timeout=0.05, margin=0.01)
    told = raised.value
    assert (told.code, told.exit_code) == ("UPH_SUPERVISOR_SILENT", 1)
    assert "did not accept the order within 0.05 s; nothing is known of it" in told.message
    assert "It may still carry the order out when it goes on; `uphold jobs` shows." in told.remedy


@pytest.mark.accepts("E-25")
def test_whoever_falls_silent_after_accepting_an_order_is_told_of_with_the_job(answering):
    home = answering(line(id=1, accepted=ACCEPTED), stay=True)
    with Connection(str(home)) as connection, pytest.raises(UpholdError) as raised:
        connection.order("submit", {"verb": "stop"}, margin=0.01)
    told = raised.value
    assert (told.code, told.exit_code) == ("UPH_SUPERVISOR_SILENT", 1)
    assert told.message.startswith("job_7 was accepted; ")
    assert "within 0.05 s" in told.message, "the supervisor's own limit, where we have none"


@pytest.mark.parametrize(
    ("answers", "when"),
    [((), "before it accepted the order"), ((line(id=1, accepted=ACCEPTED),), "accepted job_7")],
)
def test_an_order_whose_supervisor_goes_away_says_what_is_known_of_it(answering, answers, when):
    with Connection(str(answering(*answers))) as connection, pytest.raises(UpholdError) as raised:
        connection.order("submit", {"verb": "stop"})
    assert raised.value.code == "UPH_SUPERVISOR_GONE"
    assert when in raised.value.message


@pytest.mark.parametrize("patience", [0.05, 1e-9], ids=["a moment", "nothing"])
def test_nobody_waits_for_ever_in_front_of_a_door_that_stays_shut(tmp_path, patience):
    with socket.socket(socket.AF_UNIX) as listening, contextlib.ExitStack() as before_us:
        folder = os.open(tmp_path, os.O_PATH)
        listening.bind(f"/proc/self/fd/{folder}/control.sock")
        os.close(folder)
        listening.listen(0)  # and never takes anybody in, as one that is stopped
        before_us.enter_context(Connection(str(tmp_path)))
        with pytest.raises(UpholdError) as raised:
            Connection(str(tmp_path), patience=patience)
    assert raised.value.code == "UPH_SUPERVISOR_SILENT"
    assert "did not accept a connection within" in raised.value.message


def test_events_come_one_by_one_until_the_end(answering):
    news = line(event={"seq": 1}) + line(event={"seq": 2})
    with Connection(str(answering(line(id=1, result={"seq": 0}) + news))) as connection:
        connection.call("subscribe")
        assert connection.receive(5) == {"event": {"seq": 1}}
        assert connection.receive(5) == {"event": {"seq": 2}}
        with pytest.raises(EOFError):
            connection.receive(5)


def test_waiting_for_nothing_ends_with_the_time(answering):
    home = answering(line(id=1, result=0), stay=True)
    with Connection(str(home)) as connection:
        connection.call("subscribe")
        assert connection.receive(0.01) is None


@pytest.mark.accepts("E-25")
def test_nobody_there_is_not_running(tmp_path):
    for home in (tmp_path, tmp_path / "missing"):
        with pytest.raises(NotRunning):
            Connection(str(home))
    with socket.socket(socket.AF_UNIX) as left:  # a socket file that a killed supervisor left
        left.bind(str(tmp_path / "control.sock"))
    with pytest.raises(NotRunning):
        Connection(str(tmp_path))


@pytest.mark.accepts("S01")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_elses_home_is_not_permitted(tmp_path):
    tmp_path.chmod(0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(NotPermitted) as raised:
            Connection(str(tmp_path))
    finally:
        os.seteuid(0)
    assert (raised.value.code, raised.value.exit_code) == ("UPH_HOME_DENIED", 4)
