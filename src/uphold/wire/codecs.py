"""How values become bytes and come back. No files, no tables.

Reading is tolerant in both directions: fields that a newer uphold added are ignored, fields
that an older one did not know take their defaults. A value that is there and wrong is an
error which names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from uphold.errors import Malformed

__all__ = ["Raw", "decode", "encode", "restore"]

T = TypeVar("T")

_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}


def encode(value: object) -> bytes:
    """Turn a value of the core, or plain JSON-like content, into JSON.

    Halves of characters (from file names that are no UTF-8) are written as escapes: a
    message is worth more slightly changed than not written at all.
    """
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(_without_halves(msgspec.to_builtins(value, enc_hook=_plainer)))
    except (TypeError, ValueError, OverflowError, RecursionError) as cause:
        raise Malformed(f"a {type(value).__name__} cannot be written: {cause}") from cause


def decode(kind: type[T], raw: bytes | str) -> T:
    """Read a value of this kind; Malformed names the field that is wrong."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    try:
        value: T = decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as cause:
        raise Malformed(f"a {kind.__name__} cannot be read: {cause}") from cause
    return value


def restore(kind: type[T], plain: Mapping[str, object]) -> T:
    """Build a value of this kind from plain JSON-like content; Malformed names the field."""
    try:
        return msgspec.convert(dict(plain), kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as cause:
        raise Malformed(f"a {kind.__name__} cannot be read: {cause}") from cause


def _without_halves(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_halves(each) for each in value]
    return value


def _plainer(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no place in JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plainer)
