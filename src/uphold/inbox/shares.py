"""A share, as the supervisor uses it: its inbox, and the files that are left on it.

Every operation is done by a helper (`reaching`), ends within its time limit, and raises
HostFailure with a code if it could not be done. Nothing is written to a share that is not there.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.errors import HostFailure
from uphold.host.chance import new_nonce
from uphold.inbox.receipts import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from uphold.core.specs import InboxSpec
    from uphold.inbox.reaching import Reach

MOST_FLAGS: Final = 200
"""Flags that one poll gives."""
MOST_NAMES: Final = 1_000
LOG_SIZE: Final = 10_000_000
LOG_KEEP: Final = 5
_INSIDE: Final = {"processing": "inbox", "rejected": "inbox", "diagnostics": "logs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, as a listing shows it."""

    name: str
    modified: float
    size: int
    odd: str = ""
    """What it is if it is no regular file."""
    content: Content | Odd | None = None
    """What a small flag held when it was listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The flags of one poll, the oldest first."""

    entries: tuple[Entry, ...]
    more: bool = False
    """There are others, which the next poll gives."""
    missing: bool = False
    """There is no inbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a file held when it was read, once."""

    raw: bytes
    modified: float
    claimed: str = ""
    """Its name in `processing/`, once it is ours."""
    stranger: str = ""
    """Whose it is, if that is nobody whose orders count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A file that is not read: a link, a pipe, a device, a folder, or too large."""

    what: str
    modified: float
    claimed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Size and time of a file."""

    size: int
    modified: float

    def age(self, now: float) -> float:
        """Tell how old it is in seconds; one from the future is new."""
        return max(0.0, now - self.modified)


class Dismissal(NamedTuple):
    """A flag that is refused: its claim, its name in `rejected/`, why, and its receipt."""

    claimed: str
    kept: str
    reason: str
    receipt: str
    content: bytes


class Inbox:
    """The folder where flags are dropped, with `processing/` and `rejected/` in it."""

    def __init__(
        self, reach: Reach, kept: Callable[[str, str], None] = lambda _name, _why: None
    ) -> None:
        """`kept` hears, once, of each flag that its owner alone can move, and why."""
        self._reach = reach
        self._tell_kept = kept
        self._kept: set[str] = set()

    async def watch(self) -> str:
        """Have it told once when something comes from now on; give why it is not, or nothing."""
        return str(await self._reach.ask("watch"))

    async def flags(self, most: int = MOST_FLAGS) -> Listing:
        """List flags, the oldest first; what did not fit comes next time."""
        found = await self._reach.ask("flags", most=min(most, MOST_FLAGS))
        entries = tuple(_entry(each) for each in found["entries"])
        return Listing(entries=entries, more=found["more"], missing=found.get("missing", False))

    async def peek(self, name: str) -> Content | Odd | None:
        """Read a flag without touching it; None if it is gone."""
        return _content(await self._reach.ask("peek", name=name))

    async def claim(self, name: str) -> Content | Odd | None:
        """Make a flag ours, and read it then; None if somebody else was faster, or keeps it."""
        (found,) = await self.claim_each((name,))
        if isinstance(found, HostFailure):
            raise found
        return found

    async def claim_each(self, names: Sequence[str]) -> list[Content | Odd | HostFailure | None]:
        """Make several flags ours; what cannot be had is told in its place."""
        wanted = [{"name": name, "token": new_nonce()[:12]} for name in names]
        found = await self._reach.ask_each("claim", wanted) if wanted else []
        return [
            each if isinstance(each, HostFailure) else self._claimed(name, each)
            for name, each in zip(names, found, strict=True)
        ]

    def _claimed(self, name: str, found: dict[str, Any]) -> Content | Odd | None:
        if "kept" not in found:
            return _content(found)
        if name not in self._kept and len(self._kept) < MOST_NAMES:
            self._kept.add(name)
            self._tell_kept(name, found["kept"])
        return None

    async def reread(self, claimed: str) -> Content | Odd | None:
        """Read what was claimed earlier; None if it is gone."""
        return _content(await self._reach.ask("reread", claimed=claimed))

    async def give_back(self, claimed: str, name: str) -> bool:
        """Put a flag back that turned out to be somebody else's; False if its place is taken."""
        return bool(await self._reach.ask("give_back", claimed=claimed, name=name))

    async def finish(self, claimed: str) -> bool:
        """Remove a flag that has been answered; False if it was gone."""
        return bool(await self._reach.ask("remove", folder="processing", name=claimed))

    async def reject(self, name: str, reason: str, *, now: float, claimed: str = "") -> str | None:
        """Move a flag to `rejected/` and lay its reason beside it; give its new name, if any."""
        place: str | None = await self._reach.ask(
            "reject",
            folder="processing" if claimed else "inbox",
            name=claimed or name,
            kept=kept_name(name, now),
            reason=f"{reason}\n",
        )
        return place

    async def dismiss_each(self, dismissals: Sequence[Dismissal]) -> list[HostFailure | None]:
        """Leave the receipts of claimed flags and reject them; what is wrong is in its place.

        The same dismissal may be asked for again.
        """
        wanted = [
            {
                "receipt": each.receipt,
                "content": b2a_base64(each.content, newline=False).decode(),
                "claimed": each.claimed,
                "kept": each.kept,
                "reason": f"{each.reason}\n",
            }
            for each in dismissals
        ]
        found = await self._reach.ask_each("dismiss", wanted)
        return [each if isinstance(each, HostFailure) else None for each in found]

    async def reason(self, rejected: str) -> str:
        """Read why a flag was refused; empty if nobody says so."""
        found = await self._reach.ask("reason", rejected=rejected)
        return str(found)

    async def names(self, folder: str, most: int = MOST_NAMES) -> list[Entry]:
        """List what lies in `inbox`, `processing` or `rejected`, the newest first."""
        found = await self._reach.ask("names", folder=folder, most=most)
        return [Entry(**each) for each in found]


class Share:
    """The rest of a share: heartbeats, markers, receipts, reports and logs."""

    def __init__(self, spec: InboxSpec, reach: Reach) -> None:
        self._spec = spec
        self._reach = reach

    async def put(
        self, folder: str, name: str, content: bytes, *, new: bool = False, durable: bool = True
    ) -> str:
        """Write a file whole into outbox, state, logs, diagnostics or inbox; give its path.

        `new`: never in place of another. `durable`: it is on the disk when this returns.
        """
        text = b2a_base64(content, newline=False).decode()
        await self._reach.ask(
            "put", folder=folder, name=name, content=text, new=new, durable=durable
        )
        return self.path(folder, name)

    async def remove(self, folder: str, name: str) -> bool:
        """Remove a file from state or processing; False if it was not there."""
        return bool(await self._reach.ask("remove", folder=folder, name=name))

    async def read(self, path: str, limit: int, *, end: bool = False) -> Content | Odd | None:
        """Read a file below the top, or its `end` if it is longer; None if it is not there."""
        found = await self._reach.ask("read", path=path, limit=limit, end=end)
        return None if found is None else _content(found)

    async def look(self, path: str) -> Seen | None:
        """Tell size and time of a regular file below the top; None if there is none."""
        found = await self._reach.ask("look", path=path)
        if found is None or found["odd"]:
            return None
        return Seen(size=found["size"], modified=found["modified"])

    async def append(
        self, name: str, lines: bytes, *, max_size: int = LOG_SIZE, keep: int = LOG_KEEP
    ) -> None:
        """Add lines to a log among the share's logs."""
        text = b2a_base64(lines, newline=False).decode()
        await self._reach.ask("append", name=name, lines=text, max_size=max_size, keep=keep)

    async def survey(self) -> dict[str, Any]:
        """Look whether every folder is there, logs can be written, and how much room is left."""
        found: dict[str, Any] = await self._reach.ask("survey")
        return found

    async def sweep(self) -> int:
        """Remove unfinished files of helpers that were ended; give their number."""
        return int(await self._reach.ask("sweep"))

    def path(self, folder: str, name: str) -> str:
        """Say where a file lies, for people; nothing is opened by it."""
        layout = asdict(self._spec.layout)
        parts = (layout[_INSIDE[folder]], folder) if folder in _INSIDE else (layout[folder],)
        return "/".join((self._spec.share, *parts, name))


def kept_name(name: str, now: float) -> str:
    """Make a name in `rejected/` for a flag of this name; no two are the same."""
    return f"{stamp(now)}_{new_nonce()[:4]}_{name}"


def claim_of(name: str) -> tuple[str, str] | None:
    """Tell whose claim a file in `processing/` is, and what it was called; None if it is none."""
    owner, _, rest = name.partition(".")
    token, _, original = rest.partition(".")
    return (owner, original) if owner and token and original else None


def _entry(found: dict[str, Any]) -> Entry:
    content = found.pop("content")
    return Entry(**found, content=None if content is None else _content(content))


def _content(found: dict[str, Any]) -> Content | Odd | None:
    if found.get("gone"):
        return None
    claimed = found.get("claimed", "")
    if "odd" in found:
        return Odd(what=found["odd"], modified=found["modified"], claimed=claimed)
    raw = a2b_base64(found["raw"])
    stranger = found.get("stranger", "")
    return Content(raw=raw, modified=found["modified"], claimed=claimed, stranger=stranger)
