from __future__ import annotations

import pytest

from uphold.daemon.noting import Notes, Written
from uphold.deploy.records import DeployRecord, Step, Verb
from uphold.ports.logs import NoLog

RECORD = DeployRecord(job="job_1", verb=Verb.UPDATE, before="a" * 40, target="b" * 40)
WRITTEN = Written(record=RECORD, names=("web",), author="ann", label="nightly", task_id="task_1")


@pytest.fixture
def notes(tmp_path):
    return Notes(tmp_path / "deploy.json", NoLog())


def test_what_is_written_is_read_again_until_it_has_ended(notes):
    assert notes.read() is None
    write = notes.writer(WRITTEN)
    merging = DeployRecord(
        job="job_1", verb=Verb.UPDATE, before="a" * 40, target="b" * 40, step=Step.MERGING
    )
    write(merging)
    left = notes.read()
    assert (left.record, left.names, left.author) == (merging, ("web",), "ann")
    assert (left.label, left.task_id) == ("nightly", "task_1")
    notes.forget_if_ended()
    assert notes.path.exists()
    write(DeployRecord(job="job_1", verb=Verb.UPDATE, before="a" * 40, step=Step.DONE))
    assert notes.read() is None
    notes.forget_if_ended()
    assert not notes.path.exists()
    notes.forget()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"record": 1}', b"\xff"])
def test_what_cannot_be_read_is_told_of_and_counts_as_nothing(tmp_path, text):
    said = []

    class Listener(NoLog):
        def write(self, level, event, message, **more):
            said.append((level, event))

    path = tmp_path / "deploy.json"
    path.write_bytes(text)
    assert Notes(path, Listener()).read() is None
    assert said == [("ERROR", "deploy.unreadable")]
    assert path.with_suffix(".json.unreadable").read_bytes() == text
    assert Notes(path, Listener()).read() is None
    assert len(said) == 1
