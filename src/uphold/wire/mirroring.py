"""The bytes of `runtime.json`, made quickly: with a thousand workers it changes often.

They are the same as those of `host.mirrors.render`, which needs nothing but the standard
library; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

_DELETE: Final = b"\x7f"
_PLAIN: Final = msgspec.json.Encoder(enc_hook=dict)
_SORTED: Final = msgspec.json.Encoder(enc_hook=dict, order="deterministic")


def render_quickly(state: Mapping[str, object], order: tuple[str, ...]) -> bytes | None:
    """Write a state as JSON, these keys first; None if it holds what must be written as escapes."""
    ordered = {key: state.get(key) for key in order}
    ordered |= {key: state[key] for key in sorted(state) if key not in ordered}
    try:
        written = {key: _written(key, value) for key, value in ordered.items()}
    except (UnicodeEncodeError, _NeedsEscapes):
        return None
    canonical = sha256(b"{")
    for number, key in enumerate(sorted(written)):
        canonical.update(b'%s"%s":' % (b"," if number else b"", key.encode()))
        canonical.update(written[key][1])
    canonical.update(b"}")
    content = bytearray(b"{\n  ")
    for key, (shown, _) in written.items():
        content += b'"%s": ' % key.encode()
        content += shown
        content += b",\n  "
    content += b'"checksum": "%s"\n}\n' % canonical.hexdigest().encode()
    return bytes(content)


class _NeedsEscapes(Exception):  # noqa: N818 - a state of affairs, not an "error" by name
    """There is a character that is written differently by the standard library."""


def _written(key: str, value: object) -> tuple[bytes | bytearray, bytes | bytearray]:
    """Write a field as it is shown, and as it counts for the checksum."""
    if key != "workers":
        return _PLAIN.encode(value), _plain_enough(_SORTED.encode(value))
    if not value:
        return b"{}", b"{}"
    assert isinstance(value, Mapping)
    # One view after the other: all of them at once, even as bytes, would take a MiB.
    shown, counted = bytearray(b"{\n"), bytearray(b"{")
    for number, name in enumerate(sorted(value)):
        view, named = value[name], _PLAIN.encode(name)
        shown += b"%s    %s: %s" % (b",\n" if number else b"", named, _PLAIN.encode(view))
        counted += b"%s%s:%s" % (b"," if number else b"", named, _SORTED.encode(view))
    shown += b"\n  }"
    counted += b"}"
    return shown, _plain_enough(counted)


def _plain_enough(canonical: bytes | bytearray) -> bytes | bytearray:
    if not canonical.isascii() or _DELETE in canonical:
        raise _NeedsEscapes
    return canonical
