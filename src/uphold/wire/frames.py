"""The frames of the local socket: one JSON object a line."""

from __future__ import annotations

from typing import Any

import msgspec

from uphold.wire.codecs import encode


class Request(msgspec.Struct, frozen=True):
    """What a client asks."""

    method: str
    id: int | str | None = None
    params: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(Request)


def decode_request(line: bytes) -> Request | str:
    """Read a request, or say in a sentence what is wrong with it."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"the request is not one JSON object with a method: {error}."


def encode_line(value: object) -> bytes:
    """Write a message as one line; names that are no UTF-8 are escaped in it."""
    return encode(value) + b"\n"
