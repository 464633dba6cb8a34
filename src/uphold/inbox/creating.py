"""Making flags: the sending side, for the command line and for tests.

The same rules as those of the reader hold here, so that nothing is sent that would be refused.
`uphold flag list` sees here what has become of those that were sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.core.times import utc_text
from uphold.errors import EXIT_USAGE, UpholdError
from uphold.inbox.flags import INVALID, LIFE, Flag, Rejected, Rules, read_flag
from uphold.inbox.signing import SIGNATURE, sign
from uphold.wire.codecs import encode

if TYPE_CHECKING:
    from uphold.core.specs import SenderSpec
    from uphold.inbox.shares import Entry, Inbox, Share

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class Draft(NamedTuple):
    """A flag that can be sent: its file, and what it says."""

    name: str
    content: bytes
    flag: Flag


def new_task_id(wall: float, chance: int, kind: str = "task") -> str:
    """Make an id: `task_<YYYYMMDD>_<HHMMSS>_<4 chars>`, the last from a number drawn at random."""
    tail = ""
    for _ in range(4):
        chance, place = divmod(chance, len(_LETTERS))
        tail += _LETTERS[place]
    return f"{kind}_{datetime.fromtimestamp(wall, UTC):%Y%m%d_%H%M%S}_{tail}"


def draft_flag(  # noqa: PLR0913 - what a flag is made of
    handler: str,
    worker_id: str,
    *,
    task_id: str,
    now: float,
    label: str | None = None,
    params: Mapping[str, Any] | None = None,
    life: float | None = LIFE,
    sender: SenderSpec | None = None,
    rules: Rules | None = None,
) -> Draft:
    """Make a flag; UpholdError says what is wrong with the wish before anything is written.

    A blank label is filled from the handler's name. `life` is how many seconds it holds, None
    for ever.
    """
    content: dict[str, Any] = {
        "task_id": task_id,
        "handler": handler,
        "label": label if label and label.strip() else handler.replace("_", " "),
        "worker_id": worker_id,
        "params": dict(params or {}),
        "issued_at": utc_text(now),
    }
    if life is not None:
        content["expires_at"] = utc_text(now + life)
    if sender is not None:
        content[SIGNATURE] = sign(content, sender.name, sender.key)
    raw = encode(content) + b"\n"
    senders = () if sender is None else (sender,)
    rules = rules or Rules(workers=frozenset({worker_id}), senders=senders)
    name = flag_name(handler, worker_id, task_id)
    read = read_flag(name, raw, rules=rules, now=now)
    if isinstance(read, Flag):
        return Draft(name, raw, read)
    if isinstance(read, Rejected):
        raise UpholdError(read.reason, code=read.code, exit_code=EXIT_USAGE)
    text = f"no worker is called '{worker_id}' here."
    raise UpholdError(text, code=INVALID, exit_code=EXIT_USAGE)


def flag_name(handler: str, worker_id: str, task_id: str) -> str:
    """Name the file of a flag; with the task in it two flags never meet.

    The reader takes the addressee from the content, so what follows the action does not matter.
    """
    return f"supervisor_{handler}_{worker_id}_{task_id}.flag"


class Lying(NamedTuple):
    """What lies in an inbox: waiting, being worked on, and refused, each the newest first."""

    pending: tuple[Entry, ...]
    processing: tuple[Entry, ...]
    rejected: tuple[tuple[Entry, str], ...]
    """With the reasons."""


async def send(share: Share, draft: Draft) -> str:
    """Drop a flag into the inbox, whole and never in place of another; give its path."""
    return await share.put("inbox", draft.name, draft.content, new=True)


async def list_flags(inbox: Inbox, most: int = 100) -> Lying:
    """See what lies in an inbox, without touching or making anything."""
    pending, processing, rejected = [
        tuple(await inbox.names(folder, most)) for folder in ("inbox", "processing", "rejected")
    ]
    reasons = [await inbox.reason(each.name) for each in rejected]
    return Lying(pending, processing, tuple(zip(rejected, reasons, strict=True)))
