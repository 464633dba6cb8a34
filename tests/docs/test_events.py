"""Every event that the code emits is in the manual, and the other way round."""

from __future__ import annotations

import ast
import re

import pytest

from docs.papers import modules, page, table_rows
from uphold.core import events
from uphold.core.events import Event, Note, Recorded, SlotFact, StateChanged
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Due, Exit, Fault, Health, Identity, State
from uphold.wire.envelopes import envelope

EMITTING = ("core", "engine", "daemon", "drivers", "inbox")
_TYPE = re.compile(
    r"(?:worker|supervisor|config|order|reconciliation|journal|store|flag|share|deploy|plugin)\.[a-z_]+|gap"
)
LOG_ONLY = {
    "supervisor.active",
    "supervisor.heartbeat_failed",
    "supervisor.start_ignored",
    "supervisor.starting",
    "supervisor.stop_ignored",
    "supervisor.left_overs",
    "supervisor.broken",
    "supervisor.notify_unavailable",
    "worker.missed",
    "flag.done",
}
"""A line of the log, not an event: nobody could listen yet, or a single miss that changes nothing."""
FILES = {"supervisor.log", "deploy.json"}
"""Names of files that look like one."""


def only_logged(tree: ast.Module) -> set[int]:
    """Find the texts that are handed to a log, as in `log.write("INFO", "flag.done", …)`."""
    return {
        id(node.args[1])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "write"
        and len(node.args) > 1
    }


def emitted() -> set[str]:
    """Collect every text in the emitting packages that can only be the type of an event."""
    found: set[str] = set()
    for name, tree in modules():
        if name.partition("/")[0] in EMITTING:
            logged = only_logged(tree)
            found |= {
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant)
                and id(node) not in logged
                and isinstance(node.value, str)
                and _TYPE.fullmatch(node.value)
            }
    return found - LOG_ONLY - FILES


def documented() -> dict[str, set[str]]:
    """Read the manual: the type of each event and the keys of its payload."""
    rows = [row for row in table_rows(page("docs/events.md")) if _TYPE.fullmatch(row[0].strip("`"))]
    return {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in rows}


def test_the_collector_knows_the_slot_facts():
    types = {kind.TYPE for kind in (*SlotFact.__args__, StateChanged)}
    assert types <= emitted()


@pytest.mark.accepts("M-37")
def test_every_event_that_is_emitted_is_documented_and_no_other():
    assert set(documented()) == emitted()


def test_the_payload_keys_of_slot_events_are_those_of_the_manual():
    told = documented()
    for event in samples():
        view = envelope(Recorded(seq=1, id="x-1", at=0.0, event=event))
        payload = view["payload"]
        assert isinstance(payload, dict)
        assert set(payload) == told[str(view["type"])], view["type"]


@pytest.mark.accepts("M-38")
def test_the_envelope_has_the_keys_of_the_manual_in_that_order():
    view = envelope(Recorded(seq=1, id="x-1", at=0.0, event=samples()[0]))
    first_table = page("docs/events.md").split("## ")[1]
    keys = [row[0].strip("`") for row in table_rows(first_table) if row[0].startswith("`")]
    assert list(view) == keys


def test_every_note_is_made_where_this_test_looks():
    """A `Note` built elsewhere would be an event that nobody finds in the manual."""
    makers = {
        name.partition("/")[0]
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == Note.__name__
    }
    assert makers - {"testing"} <= set(EMITTING)


def samples() -> list[Event]:
    """Make one of each slot fact, and a change of state."""
    spec = WorkerSpec(name="web", command=("sleep", "1"))
    fault = Fault(code="UPH_X", message="x")
    end = Exit(code=1, signal=None, at=0.0)
    identity = Identity(pid=5, start_ticks=1, boot_id="b", inode=0, nonce="n")
    values: dict[str, object] = {
        "slot": "web",
        "generation": 1,
        "nonce": "n",
        "terms": spec,
        "seen": 1,
        "automatic": False,
        "why": "declared",
        "identity": identity,
        "fault": fault,
        "exit": end,
        "proof": "p",
        "health": Health.DEGRADED,
        "code": "UPH_X",
        "seconds": 5.0,
        "due": Due(at=Instant(5.0), wall=9.0, rule="every 5 s", text="then"),
        "before": State.STOPPED,
        "after": State.STARTING,
    }
    kinds = (*SlotFact.__args__, events.StateChanged)
    return [
        kind(**{key: values[key] for key in kind.__dataclass_fields__ if key in values})
        for kind in kinds
    ]
