"""Records come back as they were written, also from an older uphold."""

from __future__ import annotations

import pytest

from uphold.deploy.records import DeployRecord, End, Outcome, Step, Verb
from uphold.errors import Malformed
from uphold.wire.codecs import decode, encode


def test_a_record_survives_the_journal():
    record = DeployRecord(
        job="job-1",
        verb=Verb.ROLLBACK,
        before="a" * 40,
        base="a" * 40,
        reverts=("b" * 40, "c" * 40),
        made=("d" * 40,),
        step=Step.REVERTING,
    )
    assert decode(DeployRecord, encode(record)) == record
    short = decode(DeployRecord, b'{"job":"j","verb":"update","before":"x","later":1}')
    assert (short.step, short.made, short.ended) == (Step.PREPARED, (), False)
    with pytest.raises(Malformed):
        decode(DeployRecord, b'{"job":"j","verb":"explode","before":"x"}')


def test_only_an_update_with_nothing_new_leaves_workers_alone():
    same = DeployRecord(job="j", verb=Verb.UPDATE, before="x", base="x", target="x")
    packages = DeployRecord(job="j", verb=Verb.UPDATE_DEPS, before="x", base="x", target="x")
    assert not same.changes_code
    assert packages.changes_code


@pytest.mark.accepts("C-104")
def test_an_outcome_is_a_result_as_handlers_give_it():
    record = DeployRecord(job="j", verb=Verb.UPDATE, before="x")
    outcome = Outcome(success=False, end=End.OLD, record=record, error="no.", details={"a": 1})
    assert outcome.as_result() == {"success": False, "error": "no.", "details": {"a": 1}}
