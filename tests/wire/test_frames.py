from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uphold.wire.frames import Request, decode_request, encode_line


def test_a_request_is_read_with_its_defaults():
    request = decode_request(b'{"method": "ping"}')
    assert request == Request(method="ping", id=None, params={})


def test_unknown_members_are_passed_over():
    assert isinstance(decode_request(b'{"method": "ping", "id": 7, "extra": 1}'), Request)


@pytest.mark.accepts("T18", "S45")
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_request_or_a_sentence(raw):
    answer = decode_request(raw)
    assert isinstance(answer, Request) or answer.startswith("the request is not one JSON object")


def test_a_message_is_one_line():
    line = encode_line({"text": "a\nb"})
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"text": "a\nb"}


def test_names_that_are_no_utf_8_are_escaped_instead_of_breaking_the_answer():
    line = encode_line({"id": 1, "result": {"home": "/x/h\udcff"}})
    assert json.loads(line) == {"id": 1, "result": {"home": "/x/h\\udcff"}}
