"""What a flag file says: decided here, from its name and its bytes, before anything happens.

Pure. A flag is taken whole or refused with a sentence; one for somebody else's worker is neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from uphold.core.names import is_label, is_worker_name
from uphold.core.texts import printable
from uphold.core.times import parse_utc
from uphold.inbox.decoding import Unacceptable, Unfinished, decode_strictly
from uphold.inbox.handlers import HANDLERS, find_handler, split_action
from uphold.inbox.signing import SIGNATURE, Doubt, sender_of
from uphold.plugins import UNUSABLE, Handler

if TYPE_CHECKING:
    from uphold.core.specs import SenderSpec

UNREADABLE: Final = "UPH_FLAG_UNREADABLE"
INVALID: Final = "UPH_FLAG_INVALID"
UNKNOWN_HANDLER: Final = "UPH_FLAG_HANDLER_UNKNOWN"
WRONG_PARAMS: Final = "UPH_FLAG_PARAMS"
WRONG_LABEL: Final = "UPH_LABEL_INVALID"
NO_ADDRESSEE: Final = "UPH_FLAG_ADDRESSEE"
EXPIRED: Final = "UPH_FLAG_EXPIRED"
NOT_SIGNED: Final = "UPH_FLAG_SIGNATURE"
NOT_ALLOWED: Final = "UPH_FLAG_NOT_PERMITTED"

LIFE: Final = 15 * 60.0
"""Seconds for which a signed flag holds that does not say so itself."""
SKEW: Final = 5 * 60.0
"""Seconds by which clocks may differ."""
PATIENCE: Final = 30.0
"""Seconds for which a file that is not finished is waited for."""
LONGEST_LABEL: Final = 100
_KEYS: Final = frozenset(
    {"task_id", "handler", "label", "worker_id", "params", "issued_at", "expires_at", SIGNATURE}
)
_TASK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_TIME: Final = re.compile(r"[0-9TtZz:.+ -]{8,40}")
_EARLIEST: Final = 946_684_800.0
_LATEST: Final = 7_258_118_400.0
"""The years 2000 to 2199."""
_DEVICES: Final = re.compile(r"(?i)con|prn|aux|nul|com[0-9]|lpt[0-9]")
_SHOWN: Final = 60
"""Characters of what a stranger wrote that are repeated to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a supervisor accepts."""

    workers: frozenset[str]
    """Those it declares; everybody else's are somebody else's business."""
    fallback: tuple[str, ...] = ()
    """Whom a flag without an addressee means, if that is exactly one."""
    require_signature: bool = False
    senders: tuple[SenderSpec, ...] = ()
    handlers: tuple[Handler, ...] = HANDLERS
    unusable: Collection[str] = ()
    """Handlers that should be there too, and whose plug-ins cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An order in a file, found right. Times are seconds of the wall clock."""

    file: str
    task_id: str
    handler: str
    """In its own name, whatever the file called it."""
    worker_id: str
    label: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    issued_at: float | None = None
    expires_at: float | None = None
    sender: str | None = None
    """Who signed it; None if nobody did."""
    modified: float = 0.0
    """When the file was last written."""
    rank: tuple[int, int] = (0, 0)
    """Class and number of its handler."""

    def refused(self, reason: str, code: str) -> Rejected:
        """Refuse it, for what it is and not for what it says."""
        return Rejected(
            file=self.file,
            reason=reason,
            code=code,
            task_id=self.task_id,
            handler=self.handler,
            worker_id=self.worker_id,
            label=self.label,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A flag that will never be obeyed, and why; what is known of it is kept for the receipt."""

    file: str
    reason: str
    code: str
    task_id: str | None = None
    handler: str | None = None
    worker_id: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete:
    """A file that is perhaps being written: looked at again until it is 30 s old."""

    file: str
    reason: str

    def given_up(self) -> Rejected:
        """Refuse it, as nobody finished it."""
        reason = f"the file is not finished after {PATIENCE:g} s: {self.reason}."
        return Rejected(file=self.file, reason=reason, code=UNREADABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOurs:
    """A flag for a worker that is not declared here: never touched."""

    file: str
    worker_id: str


Reading = Flag | Rejected | Incomplete | NotOurs


class _Refusal(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def read_flag(name: str, raw: bytes, *, rules: Rules, now: float, modified: float = 0.0) -> Reading:
    """Decide what a flag file with this name and content is; `now` is the wall clock."""
    hinted = named_worker(name, rules)
    strangers = hinted is not None and hinted not in rules.workers
    try:
        content = decode_strictly(raw)
    except Unfinished as cause:
        if strangers:
            return NotOurs(file=name, worker_id=str(hinted))
        return Incomplete(file=name, reason=str(cause))
    except Unacceptable as cause:
        if strangers:
            return NotOurs(file=name, worker_id=str(hinted))
        return Rejected(file=name, reason=f"{cause}.", code=UNREADABLE)
    # What it asks for may be the plug-in of another supervisor, which nobody knows here.
    hinted = named_worker(name, rules, content.get("handler"))
    known = _recognised(name, content, rules)
    try:
        worker = _addressee(content, hinted, rules)
        if worker not in rules.workers:
            return NotOurs(file=name, worker_id=worker)
        known = replace(known, worker_id=worker)
        return _flag(name, content, worker, rules=rules, now=now, modified=modified)
    except _Refusal as cause:
        return replace(known, reason=cause.reason, code=cause.code)


def validate_label(text: object) -> tuple[bool, str]:
    """Tell whether a label may be used, and if not why; None means that there is none."""
    if text is None:
        return True, ""
    if not isinstance(text, str):
        return False, "a label must be text."
    if is_label(text):
        return True, ""
    if len(text) > LONGEST_LABEL:
        return False, f"a label has at most {LONGEST_LABEL} characters, this one {len(text)}."
    return False, "a label has 1 to 100 letters, digits, spaces, hyphens and underscores."


def in_order(flags: Iterable[Flag]) -> list[Flag]:
    """Sort flags as they are worked through: by class, by number, then by the file's time."""
    return sorted(flags, key=place_of)


def place_of(flag: Flag) -> tuple[tuple[int, int], float, str]:
    """Tell what decides when it is a flag's turn."""
    return flag.rank, flag.modified, flag.file


def named_worker(name: str, rules: Rules, handler: object = None) -> str | None:
    """Tell whom a file's name addresses: `supervisor_<action>_<worker>.flag`, if it does.

    `handler`: what its content asks for, which is an action too, whoever knows it.
    """
    stem = name.removeprefix("supervisor_").removesuffix(".flag")
    others = (*rules.unusable, handler) if isinstance(handler, str) else rules.unusable
    found = split_action(stem, rules.handlers, others)
    if found is None or not is_worker_name(found[1]) or _DEVICES.fullmatch(found[1]):
        return None
    return found[1]


def _recognised(name: str, content: Mapping[str, Any], rules: Rules) -> Rejected:
    """Keep for a receipt what can be told of a flag without believing it."""
    task, handler, label = (content.get(key) for key in ("task_id", "handler", "label"))
    row = find_handler(handler, rules.handlers) if isinstance(handler, str) else None
    return Rejected(
        file=name,
        reason="",
        code=INVALID,
        task_id=task if isinstance(task, str) and _TASK.fullmatch(task) else None,
        handler=None if row is None else row.name,
        label=label if isinstance(label, str) and is_label(label) else None,
    )


def _addressee(content: Mapping[str, Any], hinted: str | None, rules: Rules) -> str:
    """Find whom it is for: its content says so, or its name, or there is only one."""
    worker = content.get("worker_id")
    if worker is None:
        worker = hinted
    elif not isinstance(worker, str) or not is_worker_name(worker) or _DEVICES.fullmatch(worker):
        raise _Refusal(NO_ADDRESSEE, f"worker_id {_shown(worker)} is no name of a worker.")
    if worker is None and len(rules.fallback) == 1:
        worker = rules.fallback[0]
    if worker is None:
        raise _Refusal(NO_ADDRESSEE, "it names no worker_id, and it is not clear who is meant.")
    if worker not in rules.workers:
        for own in rules.workers:
            # On most shares these two could not even have a file each.
            if own.casefold() == worker.casefold():
                text = f"worker_id '{worker}' differs only in capitals from '{own}'."
                raise _Refusal(NO_ADDRESSEE, text)
    return str(worker)


def _flag(  # noqa: PLR0913 - what a flag is made of
    name: str,
    content: Mapping[str, Any],
    worker: str,
    *,
    rules: Rules,
    now: float,
    modified: float,
) -> Flag:
    if strange := sorted(content.keys() - _KEYS):
        raise _Refusal(INVALID, f"{_shown(strange[0])} is no key of a flag.")
    task = content.get("task_id")
    if not isinstance(task, str) or not _TASK.fullmatch(task):
        text = "task_id must be 1 to 100 letters, digits, hyphens and underscores."
        raise _Refusal(INVALID, text)
    handler = _handler(content, rules)
    fine, why = validate_label(content.get("label"))
    if not fine:
        raise _Refusal(WRONG_LABEL, why)
    sender = _sender(content, handler, rules)
    issued, expires = _times(content, now, signed=sender is not None)
    return Flag(
        file=name,
        task_id=task,
        handler=handler.name,
        worker_id=worker,
        label=content.get("label"),
        params=_params(content, handler),
        issued_at=issued,
        expires_at=expires,
        sender=sender,
        modified=modified,
        rank=(int(handler.urgency), handler.number),
    )


def _handler(content: Mapping[str, Any], rules: Rules) -> Handler:
    name = content.get("handler")
    row = find_handler(name, rules.handlers) if isinstance(name, str) else None
    if isinstance(name, str) and row is None and name in rules.unusable:
        text = f"the plug-in of {name} cannot be used here; `uphold doctor` says why."
        raise _Refusal(UNUSABLE, text)
    if row is None:
        known = ", ".join(each.name for each in rules.handlers)
        text = f"no handler is called {_shown(name)}; there are {known}."
        raise _Refusal(UNKNOWN_HANDLER, text)
    return row


def _params(content: Mapping[str, Any], handler: Handler) -> dict[str, Any]:
    params = content.get("params")
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise _Refusal(WRONG_PARAMS, "params must be an object.")
    for key, value in params.items():
        check = handler.params.get(key)
        if check is None:
            takes = ", ".join(handler.params) or "none"
            text = f"{handler.name} takes no parameter {_shown(key)} (it takes {takes})."
            raise _Refusal(WRONG_PARAMS, text)
        if wanted := check(value):
            raise _Refusal(WRONG_PARAMS, f"{key} must be {wanted}, not {_shown(value)}.")
    return params


def _sender(content: Mapping[str, Any], handler: Handler, rules: Rules) -> str | None:
    sender = sender_of(content, rules.senders)
    if isinstance(sender, Doubt):
        raise _Refusal(NOT_SIGNED, sender.reason)
    if sender is None:
        if rules.require_signature:
            raise _Refusal(NOT_SIGNED, "it is not signed, and only signed flags are accepted.")
        return None
    if content.get("worker_id") is None:
        # Its name is not signed: whoever renames the file could choose another worker.
        raise _Refusal(NOT_SIGNED, "a signed flag must name its worker_id.")
    allowed = None if sender.may is None else {_own_name(each, rules) for each in sender.may}
    if allowed is not None and handler.name not in allowed:
        raise _Refusal(NOT_ALLOWED, f"sender '{sender.name}' may not use {handler.name}.")
    return sender.name


def _own_name(handler: str, rules: Rules) -> str:
    row = find_handler(handler, rules.handlers)
    return handler if row is None else row.name


def _times(
    content: Mapping[str, Any], now: float, *, signed: bool
) -> tuple[float | None, float | None]:
    issued, expires = _time(content, "issued_at"), _time(content, "expires_at")
    if issued is not None and issued > now + SKEW:
        raise _Refusal(INVALID, "issued_at lies in the future; check the clock of the sender.")
    if signed and expires is None:
        if issued is None:
            text = "a signed flag must say issued_at or expires_at, or it would hold for ever."
            raise _Refusal(NOT_SIGNED, text)
        expires = issued + LIFE
    if issued is not None and expires is not None and expires < issued:
        raise _Refusal(INVALID, "expires_at comes before issued_at.")
    if expires is not None and now > expires + SKEW:
        raise _Refusal(EXPIRED, "its expires_at has passed.")
    return issued, expires


def _time(content: Mapping[str, Any], key: str) -> float | None:
    text = content.get(key)
    if text is None:
        return None
    wrong = _Refusal(INVALID, f"{key} must be a time such as 2026-02-05T14:30:15Z.")
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise wrong
    try:
        moment = parse_utc(text)
    except (ValueError, OverflowError):
        raise wrong from None
    if not _EARLIEST <= moment <= _LATEST:  # nobody could write the others down again
        raise wrong
    return moment


def _shown(value: object) -> str:
    """Repeat a little of what a stranger wrote, so that it stays one line of plain text."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"'{printable(short)}'" if isinstance(value, str) else printable(short)
