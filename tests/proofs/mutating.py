"""Inputs that are nearly right: saved ones, changed a little, by a seed."""

from __future__ import annotations

import json
from copy import deepcopy

LARGEST = 6000
"""Bytes of an input; more shows nothing that less does not."""
NUMBERS = (
    b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"-2147483649", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1e309", b"-0",
    b"0.1", b"NaN", b"Infinity", b"1" * 5000, b"1" + b"0" * 400,
)  # fmt: skip
VALUES = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, 0.5, -1e308, "", "x", "a.b", ".", "x.", "1.2.3", "\0",
    "\ud800", "ß⚙", "9" * 5000, "1979-05-27T07:32:00Z", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00Z",
    [], [[]], {}, {"": {}}, [None], ["x", 1], {"pid": -1}, "..", "../x", "/dev/null", "-", "@pump", "\x1b[31m\n",
)  # fmt: skip
WORDS = (
    b"\0", b"\n", b"\r\n", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"{", b"}", b"[", b"]", b'"', b"'", b'"""', b"\\",
    b"${", b"${A}", b"${A:b}", b"$$", b"=", b":", b",", b".", b"#", b" ", b"\t", b"- ", b"&a ", b"*a", b"<<: ", b"!!str ",
    b"---\n", b"...", b"? ", b"| ", b"> ", b"null", b"true", b"nan", b"inf", b"[[", b"]]", b"\\u0000", b"\\ud800",
    b"\\", b"[" * 200, b"{" * 200, b'{"a":' * 200, b"\xef\xbb\xbf",
)  # fmt: skip


def mutated(rng, data, others):
    """Change some input in one to five places."""
    if rng.random() < 0.4 and (changed := _restructured(rng, data)) is not None:
        data = changed
        if rng.random() < 0.7:
            return data[:LARGEST]
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        data = rng.choice(_CHANGES)(rng, data, others)[:LARGEST]
    return data


def _restructured(rng, data):
    """Replace, remove or repeat one part of what is JSON."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict | list):
        return json.dumps(rng.choice(VALUES)).encode()
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(list(_parts(whole)) or [(None, None)])
        if holder is None:
            return json.dumps(rng.choice(VALUES)).encode()
        deed = rng.randrange(8)
        if deed == 0:
            del holder[key]
        elif deed == 1 and isinstance(holder, dict):
            holder[rng.choice(("x", "", "pid", "state", "\ud800"))] = _value(rng)
        elif deed == 2:
            holder[key] = [holder[key]]
        elif deed == 3:
            holder[key] = {"x": holder[key]}
        else:
            holder[key] = _value(rng)
    return json.dumps(whole).encode()


def _value(rng):
    """Give a copy: what is changed next must not be changed for all inputs to come."""
    return deepcopy(rng.choice(VALUES))


def _parts(value):
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _parts(value[key])


def _span(rng, data):
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.choice((1, 1, 2, 4, 16, 64)))


def _flipped(rng, data, others):
    if not data:
        return b"\0"
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _cut(rng, data, others):
    begin, end = _span(rng, data)
    return data[:begin] + data[end:]


def _ended(rng, data, others):
    return data[: rng.randrange(len(data) + 1)]


def _repeated(rng, data, others):
    begin, end = _span(rng, data)
    return data[:end] + data[begin:end] * rng.choice((1, 2, 50)) + data[end:]


def _with_word(rng, data, others):
    begin, end = _span(rng, data)
    return data[:begin] + rng.choice(WORDS) + data[rng.choice((begin, end)) :]


def _with_number(rng, data, others):
    at = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    if not at:
        return _with_word(rng, data, others)
    begin = end = rng.choice(at)
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    return data[:begin] + rng.choice(NUMBERS) + data[end:]


def _with_noise(rng, data, others):
    begin, end = _span(rng, data)
    return data[:begin] + rng.randbytes(rng.randrange(1, 20)) + data[end:]


def _spliced(rng, data, others):
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _lines_moved(rng, data, others):
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return _spliced(rng, data, others)
    lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return b"".join(lines)


_CHANGES = (
    _flipped, _cut, _ended, _repeated, _with_word, _with_word, _with_number, _with_noise, _spliced, _lines_moved,
)  # fmt: skip
