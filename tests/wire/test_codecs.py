from __future__ import annotations

import json
import threading
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uphold.core.specs import (
    Backoff,
    Instant,
    Kind,
    Limits,
    Logs,
    Need,
    RestartPolicy,
    StopRule,
    WorkerSpec,
)
from uphold.core.statuses import Exit, Fault, Identity, SlotStatus, State
from uphold.errors import Malformed
from uphold.wire.codecs import decode, encode, restore

FULL = WorkerSpec(
    name="api",
    command=("python", "-m", "http.server", "größe\n"),
    kind=Kind.PYTHON,
    umask=0o22,
    environment=(("A", "1"), ("B", "2")),
    team="web",
    restart=RestartPolicy.ON_FAILURE,
    backoff=Backoff(first=0.5),
    max_restarts=None,
    stop=StopRule(signal="INT", grace=5.0, command=("true",)),
    depends_on=(("db", Need.HEALTHY), ("cache", Need.STARTED)),
    limits=Limits(nofile=64),
    logs=Logs(split=True),
    labels=(("tier", "front"),),
)
STATUS = SlotStatus(
    slot="api.2",
    state=State.RUNNING,
    since=Instant(12.25),
    generation=7,
    nonce="n" * 32,
    identity=Identity(pid=42, start_ticks=9, boot_id="b", inode=77, nonce="n" * 32),
    terms=FULL,
    exit=Exit(code=None, signal=9, at=1.5),
    error=Fault(code="UPH_X", message="went wrong"),
    why="because",
)


@pytest.mark.parametrize("value", [FULL, STATUS, STATUS.identity, STATUS.exit, STATUS.error])
def test_every_value_comes_back_as_it_was(value):
    assert decode(type(value), encode(value)) == value


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@given(
    st.builds(
        WorkerSpec,
        name=texts,
        command=st.lists(texts).map(tuple),
        environment=st.lists(st.tuples(texts, texts)).map(tuple),
        depends_on=st.lists(st.tuples(texts, st.sampled_from(Need))).map(tuple),
        replicas=st.integers(0, 2**40),
        stable_after=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_any_spec_comes_back_as_it_was(spec):
    assert decode(WorkerSpec, encode(spec)) == spec


@pytest.mark.accepts("T22")
def test_fields_of_a_newer_uphold_are_ignored_and_missing_ones_take_their_defaults():
    raw = b'{"slot": "a", "colour": "red", "terms": {"name": "a", "aura": {"x": [1]}}}'
    assert decode(SlotStatus, raw) == SlotStatus(slot="a", terms=WorkerSpec(name="a"))


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b'{"slot": "a", "identity": {"pid": "x"}}', "$.identity.pid"),
        (b'{"slot": "a", "state": "hibernating"}', "$.state"),
        (b'{"slot": "a", "terms": {"name": "a", "stop": {"grace": []}}}', "$.terms.stop.grace"),
        (b'{"state": "running"}', "slot"),
        (b'{"slot": "a", "exit": {"code": 1}}', "$.exit"),
    ],
)
def test_a_wrong_value_is_named_by_its_field(raw, field):
    with pytest.raises(Malformed) as caught:
        decode(SlotStatus, raw)
    assert field in str(caught.value)
    assert "SlotStatus" in str(caught.value)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 100_000])
def test_what_is_no_json_is_refused_by_type(raw):
    with pytest.raises(Malformed):
        decode(SlotStatus, raw)


def test_plain_content_becomes_a_value_or_names_the_field():
    assert restore(Fault, {"code": "c", "message": "m", "later": 1}) == Fault(code="c", message="m")
    with pytest.raises(Malformed, match=r"\$\.message"):
        restore(Fault, {"code": "c", "message": 3})


def test_halves_of_characters_are_escaped():
    raw = encode(SlotStatus(slot="a", why="no such file: caf\udce9"))
    assert decode(SlotStatus, raw).why == "no such file: caf\\udce9"
    assert encode({"k\udce9": ["\ud800"]}) == rb'{"k\\udce9":["\\ud800"]}'


def test_mappings_and_paths_in_payloads_are_written_and_other_objects_refused():
    raw = encode({"map": MappingProxyType({"a": 1}), "path": Path("/x"), "tuple": (1, None)})
    assert json.loads(raw) == {"map": {"a": 1}, "path": "/x", "tuple": [1, None]}
    with pytest.raises(Malformed, match="Condition"):
        encode({"x": threading.Condition()})
