from __future__ import annotations

import pytest

from uphold.daemon.noting import Notes, Written
from uphold.deploy.records import DeployRecord, Step, Verb
from uphold.errors import HostFailure

RECORD = DeployRecord(job="job_1", verb=Verb.UPDATE, before="a" * 40, target="b" * 40)
WRITTEN = Written(record=RECORD, names=("web",), author="ann", label="nightly", task_id="task_1")


@pytest.fixture
def notes(tmp_path):
    return Notes(tmp_path / "deploy.json")


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


@pytest.mark.accepts("P24")
@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"record": 1}', b"\xff"])
def test_what_cannot_be_read_is_no_nothing_and_stays_until_a_person_has_looked(notes, text):
    notes.path.write_bytes(text)
    for _ in range(2):
        with pytest.raises(HostFailure) as unknown:
            notes.read()
        assert unknown.value.code == "UPH_DEPLOY_UNREADABLE"
        assert str(notes.path) in unknown.value.message
        assert "remove that file" in unknown.value.remedy
    notes.forget_if_ended()
    assert notes.path.read_bytes() == text
