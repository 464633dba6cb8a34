"""Kinds of files that somebody who may write to an inbox could drop there, drawn from a seed.

Each maker gives a name, the content (or how else to make it), and what must become of it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from uphold.core.specs import SenderSpec
from uphold.inbox.handlers import HANDLERS
from uphold.inbox.signing import sign

NOW = 1_770_300_000.0
OWN = ("web", "OrionMX")
CONSOLE = SenderSpec(name="console", key="a key of sixteen letters", may=("pause", "diagnostics"))
ORDER, REFUSED, UNTOUCHED = "an order", "refused", "untouched"


class Case(NamedTuple):
    """One file to be."""

    name: str
    content: bytes | Callable[[Path], None]
    fate: str
    task: str = ""
    """The task it must be obeyed as, if it is an order."""
    handler: str = ""
    worker: str = ""


def content(rng: Random, task: str, **changes: object) -> dict[str, object]:
    """Write a flag that is right but for the changes."""
    made = {"task_id": task, "handler": "pause_watcher", "worker_id": rng.choice(OWN), **changes}
    return {key: value for key, value in made.items() if value is not ...}


def raw(value: object) -> bytes:
    """Write it as a file holds it."""
    return json.dumps(value).encode()


HOSTILE_IDS = (
    "../web", "..", "/etc/passwd", "web/../..", "web\0", "web\n", "web ", "\u202ebew", "wéb", "-x",
    "_x", ".x", "@pump", "web.2", "C:\\web", "\\\\host\\share", "CON", "nul", "COM1", "lpt9", "WEB",
    "orionmx", "w" * 65, "w" * 5000, "$(id)", "`id`", "; rm -rf .", "%2e%2e", "web%00", "",
)  # fmt: skip
HOSTILE_LABELS = (
    "x" * 101, "x" * 60000, "", "a\nb", "a\r", "a\t", "\x1b[31m", "\x00", "é", "\u2028", "<script>",
    "a/b", "..", "'", '"', "a;b", "$(id)", "{{7*7}}", "%s%n", "\u202e", "😀",
)  # fmt: skip
HOSTILE_TEXTS = (
    b"", b"{", b"}", b"[", b"null", b"true", b"7", b'"x"', b"[]", b"{]", b"\xff\xfe\x00", b"\x00" * 50,
    b'{"task_id": "a",}', b"{'task_id': 'a'}", b"task_id: a", b"<flag/>", b"\xef\xbb\xbf", b"NaN",
    b'{"task_id": "a"', b"\xc3", b"\x1f\x8b\x08", b"PK\x03\x04", b"#!/bin/sh\n",
)  # fmt: skip


def _named(rng: Random, number: int) -> str:
    return f"supervisor_{rng.choice(('x', 'drop', 'zz'))}{number}.flag"


def _json(rng: Random, number: int, **changes: object) -> Case:
    made = content(rng, f"bad{number}", **changes)
    return Case(_named(rng, number), raw(made), REFUSED)


def _text(rng: Random, number: int, text: bytes) -> Case:
    return Case(_named(rng, number), text, REFUSED)


def _right(rng: Random, number: int) -> Case:
    row = rng.choice(HANDLERS)
    params = {"commits_back": rng.randint(1, 10)} if row.params else {}
    worker, task = rng.choice(OWN), f"good{number}"
    made = content(
        rng,
        task,
        handler=rng.choice((row.name, *row.aliases)),
        worker_id=worker,
        params=rng.choice((params, params or ...)),
        label=rng.choice((None, ..., "a label", "x" * 100)),
    )
    text = json.dumps(made, indent=rng.choice((None, 2))).replace("\n", rng.choice(("\n", "\r\n")))
    lead = rng.choice((b"", b"\xef\xbb\xbf"))
    return Case(_named(rng, number), lead + text.encode(), ORDER, task, row.name, worker)


def _by_name(rng: Random, number: int) -> Case:
    """Only one flag can be called so at a time, which the caller sees to."""
    row, worker = rng.choice(HANDLERS), rng.choice(OWN)
    made = {"task_id": f"good{number}", "handler": row.name}
    return Case(
        f"supervisor_{row.name}_{worker}.flag", raw(made), ORDER, f"good{number}", row.name, worker
    )


def _signed(rng: Random, number: int, **changes: object) -> dict[str, object]:
    made = content(rng, f"bad{number}", issued_at="2026-02-05T13:59:00Z")
    made["signature"] = sign(made, CONSOLE.name, CONSOLE.key)
    return {**made, **changes}


def _rightly_signed(rng: Random, number: int) -> Case:
    made = content(rng, f"good{number}", handler="pause", issued_at="2026-02-05T13:59:00Z")
    made["signature"] = sign(made, CONSOLE.name, CONSOLE.key)
    worker = str(made["worker_id"])
    name = _named(rng, number)
    return Case(name, raw(made), ORDER, f"good{number}", "pause_watcher", worker)


def _forbidden(rng: Random, number: int) -> Case:
    made = content(rng, f"bad{number}", handler="rollback_code", issued_at="2026-02-05T13:59:00Z")
    made["signature"] = sign(made, CONSOLE.name, CONSOLE.key)
    return Case(_named(rng, number), raw(made), REFUSED)


def _theirs(rng: Random, number: int) -> Case:
    made = content(rng, f"bad{number}", worker_id=f"their{number}")
    return Case(_named(rng, number), raw(made), UNTOUCHED)


def _theirs_by_name(rng: Random, number: int) -> Case:
    made = rng.choice((b"{", b"\xff", b"[]", raw({"task_id": "x", "handler": "nothing"})))
    action = rng.choice(("pause", "update_code_deps", "verify_db"))
    return Case(f"supervisor_{action}_their{number}.flag", made, UNTOUCHED)


def _no_flag(rng: Random, number: int) -> Case:
    name = rng.choice(("task_{}.flag", "supervisor_{}.flag.tmp", ".supervisor_{}.flag", "{}.json"))
    return Case(name.format(number), raw(content(rng, f"bad{number}")), UNTOUCHED)


def _odd(rng: Random, number: int, make: Callable[[Path], None]) -> Case:
    return Case(_named(rng, number), make, REFUSED)


def _socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


def _hard_link(path: Path) -> None:
    victim = path.parent.parent / "canary"
    if not victim.exists():
        victim.write_bytes(raw({"task_id": "canary", "handler": "update_code"}))
    os.link(victim, path)


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(path)


def _signed_case(rng: Random, number: int, **changes: object) -> Case:
    return Case(_named(rng, number), raw(_signed(rng, number, **changes)), REFUSED)


def _strange_name(rng: Random, number: int) -> Case:
    middle = rng.choice((b"\xff\xfe", b"\n", b"\x1b[31m", b" ", b"\\..\\", "é\u202e".encode()))
    name = os.fsdecode(b"supervisor_" + middle + str(number).encode() + b".flag")
    return Case(name, b'{"a": NaN}', REFUSED)


def _deep(text: bytes, end: bytes, depth: int) -> bytes:
    return b'{"task_id": "a", "params": ' + text * depth + b"1" + end * depth + b"}"


KINDS: dict[str, Callable[[Random, int], Case]] = {
    "right": _right,
    "right, by its name": _by_name,
    "right and signed": _rightly_signed,
    "for somebody else": _theirs,
    "for somebody else by its name": _theirs_by_name,
    "no flag at all": _no_flag,
    "hostile worker": lambda r, n: _json(r, n, worker_id=r.choice(HOSTILE_IDS)),
    "worker of another type": lambda r, n: _json(r, n, worker_id=r.choice((7, True, [], {}, 1.5))),
    "no worker": lambda r, n: _json(r, n, worker_id=...),
    "hostile task": lambda r, n: _json(
        r, n, task_id=r.choice((*HOSTILE_IDS[:6], "a.b", "x" * 101))
    ),
    "task of another type": lambda r, n: _json(r, n, task_id=r.choice((None, 7, [], {}, ...))),
    "hostile label": lambda r, n: _json(r, n, label=r.choice(HOSTILE_LABELS)),
    "label of another type": lambda r, n: _json(r, n, label=r.choice((7, True, [], {}, 1.5))),
    "unknown handler": lambda r, n: _json(r, n, handler=r.choice(("exec", "PAUSE", "rm -rf", ""))),
    "handler of another type": lambda r, n: _json(
        r, n, handler=r.choice((None, 7, ["pause"], ...))
    ),
    "inner handler": lambda r, n: _json(r, n, handler=r.choice(("__init__", "os.system", "eval"))),
    "unknown key": lambda r, n: _json(r, n, **{r.choice(("cmd", "Label", "end", "x" * 3000)): 1}),
    "command in a key": lambda r, n: _json(r, n, command=["/bin/sh", "-c", "id"]),
    "unknown parameter": lambda r, n: _json(
        r, n, params={r.choice(("ref", "commits", "path")): "x"}
    ),
    "too many commits": lambda r, n: _json(
        r, n, handler="rollback_code", params={"commits_back": r.choice((0, -1, 11, 10**17))}
    ),
    "commits of another type": lambda r, n: _json(
        r, n, handler="rollback_code", params={"commits_back": r.choice((True, 1.0, "1", None, []))}
    ),
    "params of another type": lambda r, n: _json(r, n, params=r.choice(([], "x", 7, True))),
    "expired": lambda r, n: _json(r, n, expires_at="2026-02-05T13:54:59Z"),
    "from the future": lambda r, n: _json(r, n, issued_at="2026-02-05T14:05:01Z"),
    "hostile time": lambda r, n: _json(
        r,
        n,
        expires_at=r.choice(("never", "", "9" * 30, "2026-13-01", "0001-01-01T00:00:00+23:59")),
    ),
    "time of another type": lambda r, n: _json(r, n, expires_at=r.choice((1e300, 7, True, [], {}))),
    "ends before it begins": lambda r, n: _json(
        r, n, issued_at="2026-02-05T14:00:00Z", expires_at="2026-02-05T13:59:00Z"
    ),
    "no object": lambda r, n: _text(r, n, r.choice(HOSTILE_TEXTS)),
    "cut off": lambda r, n: _text(r, n, raw(content(r, f"bad{n}"))[: r.randint(1, 50)]),
    "random bytes": lambda r, n: _text(r, n, r.randbytes(r.choice((1, 100, 5000)))),
    "twice a key": lambda r, n: _text(
        r, n, b'{"handler": "pause", ' + raw(content(r, f"bad{n}"))[1:]
    ),
    "no number": lambda r, n: _text(
        r, n, b'{"task_id": ' + r.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999")) + b"}"
    ),
    "huge number": lambda r, n: _text(r, n, b'{"task_id": ' + b"9" * r.choice((19, 5000)) + b"}"),
    "half a character": lambda r, n: _text(r, n, b'{"task_id": "\\ud83d", "handler": "pause"}'),
    "deep lists": lambda r, n: _text(r, n, _deep(b"[", b"]", r.choice((8, 100, 30000)))),
    "deep objects": lambda r, n: _text(r, n, _deep(b'{"a":', b"}", r.choice((8, 100, 9000)))),
    "many keys": lambda r, n: _text(r, n, raw({f"k{i}": i for i in range(4000)})),
    "too large": lambda r, n: _text(r, n, b" " * r.choice((65537, 200_000))),
    "just too large": lambda r, n: _text(r, n, raw(content(r, f"bad{n}")).ljust(65537)),
    "strange name": _strange_name,
    "longest name": lambda r, n: Case(f"supervisor_{n}_".ljust(250, "x") + ".flag", b"[]", REFUSED),
    "empty name": lambda r, n: Case(f"supervisor_{'.' * (n % 200)}{n}.flag", b"{}", REFUSED),
    "pipe": lambda r, n: _odd(r, n, os.mkfifo),
    "folder": lambda r, n: _odd(r, n, Path.mkdir),
    "full folder": lambda r, n: _odd(r, n, lambda path: (path / "processing").mkdir(parents=True)),
    "socket": lambda r, n: _odd(r, n, _socket),
    "device": lambda r, n: _odd(r, n, _device),
    "link to a file": lambda r, n: _odd(r, n, lambda path: path.symlink_to("/etc/passwd")),
    "link to itself": lambda r, n: _odd(r, n, lambda path: path.symlink_to(path.name)),
    "link to a folder": lambda r, n: _odd(r, n, lambda path: path.symlink_to("..")),
    "hard link": lambda r, n: _odd(r, n, _hard_link),
    "signature of nobody": lambda r, n: _signed_case(r, n, signature="nobody:" + "0" * 64),
    "wrong signature": lambda r, n: _signed_case(r, n, signature="console:" + "0" * 64),
    "no signature": lambda r, n: _signed_case(r, n, signature=r.choice(("", "x", 7, [], "é:é"))),
    "signed for another task": lambda r, n: _signed_case(r, n, task_id=f"other{n}"),
    "signed for another handler": lambda r, n: _signed_case(r, n, handler="update_code"),
    "signed for another label": lambda r, n: _signed_case(r, n, label="another"),
    "signed for another time": lambda r, n: _signed_case(r, n, issued_at="2026-02-05T13:59:01Z"),
    "signed and not allowed": _forbidden,
}
"""Every kind, by a name for messages."""
