"""Stopping what a dead supervisor left running: take the lock, end each slot, verified."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from uphold.core.orders import Order, ShutDown, order_id
from uphold.core.specs import Kind, Settings, SupervisorSpec
from uphold.core.statuses import ALIVE, SlotStatus
from uphold.daemon.equipping import prepare, remembered_orders
from uphold.daemon.mirroring import ended_view
from uphold.daemon.narrating import BookLog
from uphold.drivers.process import ProcessDriver
from uphold.drivers.remote import RemoteDriver
from uphold.engine.auditing import audit_entry
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.errors import StoreUnavailable
from uphold.host.chance import any_number, new_id, new_nonce
from uphold.host.clock import MachineClock, boot_id
from uphold.host.locks import HomeLock, Owner, read_owner
from uphold.host.logbooks import Logbook
from uphold.host.mirrors import RuntimeMirror, read_mirror
from uphold.journal.rows import Owner as JournalOwner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.wire.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.engine.snapshots import Snapshot
    from uphold.host.homes import Home
    from uphold.ports.configs import Revision


class _Nothing:
    """A configuration that declares nothing: what runs is only to be stopped."""

    settings = Settings(supervisor=SupervisorSpec(name="stop"), workers=())
    version = 1
    asker = None

    @property
    def current(self) -> Revision:
        return self

    def subscribe(self, listener: Callable[[Revision], None]) -> None:
        del listener

    def unsubscribe(self, listener: Callable[[Revision], None]) -> None:
        del listener


async def stop_left_overs(
    home: Home,
    nofile: tuple[int, int],
    *,
    author: str,
    label: str | None,
    reason: str,
) -> dict[str, object]:
    """End every recorded slot and say what became of each; who asked is audited first.

    `nofile` is the limit on open files that we were started with.
    """
    clock = MachineClock()
    wall = clock.now().wall
    order = Order(
        id=order_id(wall, any_number()),
        wish=ShutDown(),
        author=author,
        origin="cli",
        at=wall,
        reason=reason,
        label=label,
    )
    prepare(home)
    last = read_owner(home).owner
    owner = Owner.this_process(
        last.supervisor_id if last else new_id(),
        clock.now().wall,
        dict(last.extra) if last else {},
    )
    lock = HomeLock.take(home, owner)
    try:
        told = await _stop(ProcessDriver(home, clock, nofile=nofile), home, clock, owner, order)
    except BaseException:
        lock.let_go()
        raise
    if told["ok"]:
        lock.release(clock.now().wall)
    else:
        lock.let_go()  # what could not be ended must be looked for again
    return told


async def _stop(
    driver: ProcessDriver, home: Home, clock: MachineClock, owner: Owner, order: Order
) -> dict[str, object]:
    journal, rescued = open_journal(
        home.journal,
        boot_id=boot_id(),
        owner=JournalOwner(
            name=owner.host, hostname=owner.host, pid=owner.pid, id=owner.supervisor_id
        ),
        now=clock.now().wall,
    )
    lost = bool(rescued) or journal.fresh
    book = Logbook(home.logs, wall=lambda: clock.now().wall, scrub=Redactor().texts)
    log = BookLog(book)
    supervisor = Supervisor(
        _Nothing(),
        Surroundings(
            clock=clock,
            journal=journal,
            drivers={
                Kind.PROCESS: driver,
                Kind.REMOTE: RemoteDriver(clock, boot_id=boot_id()),
            },
            new_nonce=new_nonce,
            log=log,
            boot_id=boot_id(),
            strays=driver.find_strays,
            remembered=remembered_orders(home) if lost else None,
        ),
    )
    try:
        with suppress(StoreUnavailable):  # a full disk must not keep anybody from ending workers
            await journal.append(Batch(audit=[audit_entry(order, ())], durable=True))
        recalled = journal.recall()
        await supervisor.start(only_to_stop=True)
        running = [
            slot
            for slot, status in supervisor.snapshot().observed.slots.items()
            if status.state in ALIVE
        ]
        code = await supervisor.wait()
        ended = supervisor.snapshot()
        results = [_result(slot, ended.observed.slots.get(slot)) for slot in running]
        log.write("WARNING", "supervisor.left_overs", f"stopped {len(results)} slots left running")
        _reflect(home, ended, clock.now().wall, None if lost else recalled.overrides)
    finally:
        await journal.close()
        book.close()
    return {"ok": code == 0, "job_id": order.id, "results": results}


def _reflect(
    home: Home, snapshot: Snapshot, wall: float, overrides: Mapping[str, str] | None
) -> None:
    """Correct the dead supervisor's last word: scripts read it, and it says that it runs."""
    last, _ = read_mirror(home.runtime)
    if last is not None:  # else there is no word of it
        with closing(RuntimeMirror(home.runtime)) as mirror:
            mirror.show(ended_view(last, snapshot, wall, overrides))


def _result(slot: str, status: SlotStatus | None) -> dict[str, object]:
    """Say what became of one slot; one that is no longer known is gone."""
    return {
        "name": slot,
        "ok": status is None or status.state not in ALIVE,
        "state": "stopped" if status is None else str(status.state),
        "error": None if status is None or status.error is None else status.error.message,
    }
