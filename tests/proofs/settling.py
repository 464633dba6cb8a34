"""What must be true of a simulated world that has come to rest, and of one that was stopped."""

from __future__ import annotations

from dataclasses import replace

from proofs.episodes import brief
from uphold.core.events import Note
from uphold.core.names import worker_of
from uphold.core.specs import Need, RestartPolicy
from uphold.core.statuses import State


def check_settled(world):
    """Everything is as wished, or there is a reason that somebody could be told."""
    eye, life = world.eye, world.life
    snapshot = life.supervisor.snapshot()
    slots, declared = snapshot.observed.slots, snapshot.declaration.workers
    wanted = {slot: entry for entry in declared.values() if entry.wanted for slot in entry.slots()}
    known = {slot for entry in declared.values() for slot in entry.slots()}
    for slot, status in slots.items():
        if slot not in known:
            eye.wrong(f"I3: {slot} is no longer declared and still known as {brief(status)}")
        elif slot not in wanted and status.state is not State.STOPPED:
            eye.wrong(f"I3: {slot} is not wanted and {brief(status)}")
    for slot, entry in wanted.items():
        status = slots.get(slot)
        problem = "unknown" if status is None else _not_as_wished(world, entry, status, slots)
        if problem:
            eye.wrong(f"I4: {slot} is wanted and {problem}: {brief(status)}")
    for process in world.machine.everybody():
        status = slots.get(process.slot)
        awaited = status is not None and status.state is State.STARTING and eye.never_ready(status)
        if status is None or (status.state is not State.RUNNING and not awaited):
            eye.wrong(f"I3: a process of {process.slot} lives on: {brief(status)}")
    _check_records(world, snapshot)
    _check_numbers(world)
    _check_orders(world, snapshot)


def _not_as_wished(world, entry, status, slots):
    spec = entry.spec
    match status.state:
        case State.RUNNING:
            main = world.machine.main(status.slot)
            if main is None or main.identity != status.identity:
                return "believed to run"
            return None if status.terms == spec else "runs under old terms"
        case State.EXITED:
            stays = status.terms.restart is RestartPolicy.NO or (
                _ended_well(status) and status.terms.restart is RestartPolicy.ON_FAILURE
            )
            return None if stays else "not started again"
        case State.FAILED:
            hopeless = status.hopeless or status.failures > status.terms.max_restarts
            return None if hopeless else "given up too early"
        case State.STARTING if world.eye.never_ready(status):
            return None
        case State.WAITING:
            return None if _must_wait(world, spec, slots) else "waits for nothing"
        case _:
            return str(status.state)


def _ended_well(status):
    code = status.exit.code
    return code is not None and code in status.terms.success_exit_codes


def _must_wait(world, spec, slots):
    """Tell whether something this worker comes after is not as it needs it."""
    declared = world.life.supervisor.snapshot().declaration.workers
    for name, need in spec.depends_on:
        entry = declared.get(name)
        if entry is None or not entry.slots():
            return True
        for slot in entry.slots():
            status = slots.get(slot)
            state = None if status is None else status.state
            # What it came to, not what is held against it: a reset forgives, and changes no end.
            well = state is State.EXITED and _ended_well(status)
            if need is Need.COMPLETED:
                met = well
            elif need is Need.STARTED:
                met = state is State.RUNNING or well
            else:
                met = state is State.RUNNING
            if not met:
                return True
    return False


def _check_records(world, snapshot):
    """What is believed is what is on disk, and the disk is well again (P11, P14)."""
    ledger = world.life.supervisor._ledger
    if ledger.trouble is not None or ledger._kept:
        world.eye.wrong(f"P14: the journal has not caught up: {ledger.trouble}")
    on_disk = {slot: row for slot, (_, row) in world.disk.written.slots.items()}
    for slot, status in snapshot.observed.slots.items():
        row = on_disk.pop(slot, None)
        if row is None or _without_views(row) != _without_views(status):
            world.eye.wrong(f"P11: {slot} is {brief(status)} and on disk {brief(row)}")
    for slot, row in on_disk.items():
        world.eye.wrong(f"P11: {slot} is on disk and nowhere else: {brief(row)}")


def _without_views(status):
    return replace(status, since=0.0, started_at=0.0)


def _check_numbers(world):
    """Event numbers have no holes but those that a gap names (I7)."""
    events = world.disk.written.events
    named = [
        (int(r.event.payload["from_seq"]), int(r.event.payload["to_seq"]))
        for r in events.values()
        if isinstance(r.event, Note) and r.event.type == "gap"
    ]
    previous = 0
    for seq in sorted(events):
        if seq != previous + 1 and not _covered(previous + 1, seq - 1, named):
            world.eye.wrong(f"I7: nothing tells of the events {previous + 1} to {seq - 1}")
        previous = seq


def _covered(first, last, named):
    while first <= last:
        reach = max((end for begin, end in named if begin <= first <= end), default=None)
        if reach is None:
            return False
        first = reach + 1
    return True


def _check_orders(world, snapshot):
    """Each order has its intent and its outcome under one id (I6)."""
    audit, jobs = world.disk.written.audit, world.disk.written.jobs
    for order in world.refused:
        if order in audit:
            world.eye.wrong(f"P10: {order} was refused and is in the audit as if it was not")
    for order, life in world.accepted.items():
        endings = [f"{order}.{how}" in audit for how in ("succeeded", "failed")]
        if order not in audit or order not in jobs:
            world.eye.wrong(f"I6: {order} was accepted and is not on record")
        elif all(endings):
            world.eye.wrong(f"I6: {order} has ended twice")
        elif life is world.life and not any(endings) and not is_open(order, snapshot, world):
            world.eye.wrong(f"I6: {order} has no outcome: {jobs[order]}")


def is_open(order, snapshot, world):
    """Tell whether an order waits for something that has not come."""
    job = world.life.supervisor.desk.job(order)
    if job is None:
        return False
    slots = snapshot.observed
    waiting = [
        slots.slots[slot].state is State.WAITING or world.eye.never_ready(slots.slots[slot])
        for name in job.accepted.names
        for slot in slots.of(name)
    ]
    return any(waiting)


def check_end(world, life, code):
    """A stop in order leaves nothing: no process, no task, no alarm, no listener (I3, I10)."""
    eye = world.eye
    if code != 0:
        eye.wrong(f"the last supervisor ended with {code}")
    for process in world.machine.everybody():
        eye.wrong(f"P3: {process.slot} survived the stop of everything")
    left = {
        "alarms": len(life.clock.alarms) + len(life.share_clock.alarms),
        "listeners of the configuration": life.config.listeners,
        "listeners of the driver": life.driver.listeners,
        "processes held": life.driver.held,
        "listeners of the bus": len(life.supervisor._board.bus._subscriptions) - 1,
    }
    for what, number in left.items():
        if number:
            eye.wrong(f"I10: {number} {what} are left after the end")
    for slot, (_, row) in world.disk.written.slots.items():
        if row.state not in (State.STOPPED, State.FAILED, State.BACKOFF):
            eye.wrong(f"I3: after the end {slot} is on record as {row.state}")
        if worker_of(slot) not in life.supervisor.snapshot().declaration.workers:
            eye.wrong(f"I3: {slot} is not declared and on record")
