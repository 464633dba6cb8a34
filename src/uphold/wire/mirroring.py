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
    ordered["workers"] = ordered["workers"] or {}
    try:
        canonical = _SORTED.encode(ordered)
    except UnicodeEncodeError:
        return None
    if not canonical.isascii() or _DELETE in canonical:
        return None
    lines = [b'"%s": %s' % (key.encode(), _field(key, value)) for key, value in ordered.items()]
    lines.append(b'"checksum": "%s"' % sha256(canonical).hexdigest().encode())
    return b"{\n  " + b",\n  ".join(lines) + b"\n}\n"


def _field(key: str, value: object) -> bytes:
    if key != "workers" or not value:
        return _PLAIN.encode(value)
    assert isinstance(value, Mapping)
    lines = [
        b"    %s: %s" % (_PLAIN.encode(name), _PLAIN.encode(value[name])) for name in sorted(value)
    ]
    return b"{\n" + b",\n".join(lines) + b"\n  }"
