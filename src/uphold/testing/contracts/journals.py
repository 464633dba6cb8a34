"""What every journal must do. Subclass `JournalContract` and provide a `bench` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from uphold.core.events import Note, Recorded, Started, WaitBegun
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Exit, Fault, Identity, SlotStatus, State
from uphold.errors import Malformed, StoreUnavailable
from uphold.ports.journals import AuditEntry, Batch, JobRow, Journal

BOOT = "boot-1"
NEXT_BOOT = "boot-2"


class JournalBench(Protocol):
    """One journal on a workbench: it can be opened, broken, and found again."""

    def open(self) -> Journal:
        """Open it for the first time, under the boot `boot-1`."""
        ...

    def after_kill(self) -> Journal:
        """Give it as found after the supervisor was killed. Same boot."""
        ...

    def after_boot(self) -> Journal:
        """Give it as found after the machine went down and came up as `boot-2`."""
        ...

    def fail(self) -> None:
        """Make it impossible to write."""
        ...

    def heal(self) -> None:
        """Make it possible again."""
        ...


def identity(pid: int = 42) -> Identity:
    """Make a process."""
    return Identity(pid=pid, start_ticks=pid * 7, boot_id=BOOT, inode=pid, nonce=f"nonce-{pid}")


def status(slot: str = "api", **changes: object) -> SlotStatus:
    """Make a running slot with something in every field."""
    fields: dict[str, object] = {
        "state": State.RUNNING,
        "since": Instant(100.5),
        "since_wall": 1770301815.25,
        "generation": 3,
        "nonce": "nonce-42",
        "identity": identity(),
        "terms": WorkerSpec(name=slot, command=("sleep", "1"), environment=(("A", "ü"),)),
        "seen": 4,
        "started_seen": 4,
        "started_at": Instant(99.5),
        "started_wall": 1770301814.25,
        "proved_wall": 1770301816.0,
        "failures": 2,
        "restarts": 5,
        "exit": Exit(code=1, signal=None, at=1770301800.0),
        "error": Fault(code="UPH_X", message="earlier"),
        "why": "up and ready",
    }
    return SlotStatus(slot=slot, **(fields | changes))  # type: ignore[arg-type]


def news(seq: int, slot: str = "api") -> Recorded:
    """Make an event with this number."""
    event = Started(slot=slot, generation=1, identity=identity())
    return Recorded(seq=seq, id=f"e-{seq}", at=1770301815.0 + seq, event=event, cause="order-1")


def entry(number: int) -> AuditEntry:
    """Make a line of the audit."""
    return AuditEntry(
        id=f"audit-{number}",
        actor="root",
        action="restart",
        target_type="worker",
        target_id="api",
        label="nightly",
        at=1770301815.0 + number,
        details={"reason": "why not", "number": number},
    )


def job(state: str = "queued", updated: float = 1770301815.0) -> JobRow:
    """Make a job."""
    return JobRow(
        id="job-1",
        task_id="task-1",
        type="restart",
        target="api",
        label=None,
        state=state,
        created_at=1770301815.0,
        updated_at=updated,
    )


def play(script: Callable[[], Awaitable[None]]) -> None:
    """Run one script on a loop of its own."""

    async def whole() -> None:
        await script()

    asyncio.run(whole())


class JournalContract:
    """Every journal keeps this."""

    def test_a_new_journal_remembers_nothing(self, bench: JournalBench) -> None:
        async def script() -> None:
            journal = bench.open()
            memory = journal.recall()
            assert (memory.slots, memory.overrides, memory.meta) == ({}, {}, {})
            assert memory.last_seq == 0
            assert await journal.events() == []
            await journal.close()

        play(script)

    @pytest.mark.accepts("P8", "O-32")
    def test_what_was_appended_is_recalled_after_a_kill(self, bench: JournalBench) -> None:
        async def script() -> None:
            journal = bench.open()
            slots = [status(), status("web.2", state=State.BACKOFF, identity=None, terms=None)]
            await journal.append(
                Batch(
                    events=[news(1), news(2)],
                    slots=slots,
                    overrides={"api": '{"wish": "down"}'},
                    meta={"version": "7"},
                )
            )
            found = bench.after_kill()
            memory = found.recall()
            assert dict(memory.slots) == {each.slot: each for each in slots}
            assert memory.overrides == {"api": '{"wish": "down"}'}
            assert memory.meta == {"version": "7"}
            assert memory.last_seq == 2
            await journal.close()
            await found.close()

        play(script)

    def test_later_rows_replace_earlier_ones_and_forgotten_ones_go(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(
                Batch(slots=[status(), status("b"), status("c")], overrides={"a": "1", "b": "2"})
            )
            await journal.append(
                Batch(
                    slots=[status(generation=9), status("c", generation=10)],
                    forgotten=["b", "c", "never-there"],
                    overrides={"a": None, "b": "3", "z": None},
                    meta={"k": "1"},
                )
            )
            await journal.append(Batch(meta={"k": "2"}))
            found = bench.after_kill()
            memory = found.recall()
            assert dict(memory.slots) == {"api": status(generation=9)}
            assert memory.overrides == {"b": "3"}
            assert memory.meta == {"k": "2"}
            await journal.close()
            await found.close()

        play(script)

    def test_events_are_read_oldest_first_from_a_number_and_by_worker(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(
                Batch(events=[news(n, "web.2" if n % 2 else "api") for n in (1, 2)])
            )
            await journal.append(
                Batch(events=[news(n, "web.2" if n % 2 else "api") for n in (3, 4)])
            )
            note = Note(
                type="config.applied",
                entity_type="supervisor",
                entity_id="web",
                payload={"n": (1,)},
            )
            await journal.append(Batch(events=[Recorded(seq=5, id="e-5", at=0.0, event=note)]))
            assert [event["seq"] for event in await journal.events()] == [1, 2, 3, 4, 5]
            assert [event["seq"] for event in await journal.events(after=2, limit=2)] == [3, 4]
            assert [event["seq"] for event in await journal.events(worker="web")] == [1, 3]
            assert await journal.events(limit=0) == []
            assert await journal.events(worker="nobody") == []
            last = (await journal.events(after=4))[0]
            assert last["payload"] == {"n": [1]}
            assert (last["id"], last["cause"]) == ("e-5", None)
            await journal.close()

        play(script)

    def test_appends_made_together_keep_their_order(self, bench: JournalBench) -> None:
        async def script() -> None:
            journal = bench.open()
            await asyncio.gather(
                *(
                    journal.append(Batch(events=[news(n)], slots=[status(generation=n)]))
                    for n in range(1, 401)
                )
            )
            assert journal.recall().slots["api"].generation == 400
            seqs = [event["seq"] for event in await journal.events(limit=1000)]
            assert seqs == list(range(1, 401))
            await journal.close()

        play(script)

    def test_the_same_batch_again_changes_nothing(self, bench: JournalBench) -> None:
        """After a failure nobody can be sure; whoever asks again must not count twice."""

        async def script() -> None:
            journal = bench.open()
            batch = Batch(events=[news(1)], audit=[entry(1)], jobs=[job()], durable=True)
            await journal.append(batch)
            before = await journal.events()
            await journal.append(batch)
            assert await journal.events() == before
            await journal.close()

        play(script)

    def test_another_event_under_a_used_number_is_refused_alone(self, bench: JournalBench) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(Batch(events=[news(1)]))
            other = Recorded(seq=1, id="other", at=0.0, event=WaitBegun(slot="x", why=""))
            answers = await asyncio.gather(
                journal.append(Batch(events=[news(2)])),
                journal.append(Batch(events=[other], meta={"not": "written"})),
                journal.append(Batch(events=[news(3)])),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [type(None), Malformed, type(None)]
            assert [event["id"] for event in await journal.events()] == ["e-1", "e-2", "e-3"]
            assert journal.recall().meta == {}
            await journal.close()

        play(script)

    def test_a_batch_that_cannot_be_written_does_not_sink_the_others(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            strange = Note(type="x", entity_type="x", entity_id="x", payload={"k": object()})
            answers = await asyncio.gather(
                journal.append(Batch(events=[news(1)])),
                journal.append(
                    Batch(
                        events=[Recorded(seq=2, id="e-2", at=0.0, event=strange)],
                        slots=[status("gone")],
                    )
                ),
                journal.append(Batch(events=[news(3)], durable=True)),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [type(None), Malformed, type(None)]
            assert [event["seq"] for event in await journal.events()] == [1, 3]
            assert journal.recall().slots == {}
            await journal.close()

        play(script)

    @pytest.mark.accepts("P10", "P14")
    def test_while_it_cannot_be_written_appends_are_refused_and_later_they_work_again(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(Batch(events=[news(1)]))
            bench.fail()
            for durable in (False, True):
                with pytest.raises(StoreUnavailable) as caught:
                    await journal.append(Batch(events=[news(2)], slots=[status()], durable=durable))
                assert caught.value.remedy
            bench.heal()
            await journal.append(Batch(events=[news(2)], meta={"a": "b"}))
            assert [event["seq"] for event in await journal.events()] == [1, 2]
            memory = journal.recall()
            assert (dict(memory.slots), memory.meta) == ({}, {"a": "b"})
            await journal.close()

        play(script)

    @pytest.mark.accepts("P10")
    def test_durable_batches_survive_the_machine_with_all_before_them(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(Batch(events=[news(1)], slots=[status("b")]))
            await journal.append(Batch(events=[news(2)], audit=[entry(1)], durable=True))
            found = bench.after_boot()
            assert [event["seq"] for event in await found.events()] == [1, 2]
            assert set(found.recall().slots) == {"b"}
            await journal.close()
            await found.close()

        play(script)

    @pytest.mark.accepts("P8", "P11")
    def test_after_an_unclean_boot_numbers_skip_ahead_until_the_gap_is_told(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(Batch(events=[news(1)], slots=[status()], durable=True))
            found = bench.after_boot()
            memory = found.recall()
            assert memory.last_seq > 100_000
            assert memory.meta["gap"] == f"2-{memory.last_seq}"
            recalled = memory.slots["api"]
            assert recalled.generation >= status().generation + 1000
            assert (recalled.since, recalled.started_at, recalled.identity) == (0.0, 0.0, None)
            kept = ("state", "nonce", "terms", "failures", "restarts", "since_wall", "exit", "why")
            for name in kept:
                assert getattr(recalled, name) == getattr(status(), name)
            assert found.recall().meta["gap"] == memory.meta["gap"]
            note = Note(type="gap", entity_type="supervisor", entity_id="journal")
            told = Recorded(seq=memory.last_seq + 1, id="gap", at=0.0, event=note)
            await found.append(Batch(events=[told], durable=True))
            assert "gap" not in found.recall().meta
            assert found.recall().last_seq == memory.last_seq + 1
            await journal.close()
            await found.close()

        play(script)

    def test_after_a_kill_in_the_same_boot_nothing_skips(self, bench: JournalBench) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(Batch(events=[news(1)], slots=[status()]))
            found = bench.after_kill()
            memory = found.recall()
            assert memory.last_seq == 1
            assert "gap" not in memory.meta
            assert memory.slots["api"] == status()
            await journal.close()
            await found.close()

        play(script)

    def test_after_an_orderly_end_a_boot_skips_nothing_and_voids_processes(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            await journal.append(Batch(events=[news(1)], slots=[status()]))
            await journal.close()
            found = bench.after_boot()
            memory = found.recall()
            assert memory.last_seq == 1
            assert "gap" not in memory.meta
            assert memory.slots["api"].generation == status().generation
            assert memory.slots["api"].identity is None
            await found.close()

        play(script)

    def test_closing_writes_what_is_queued_and_then_takes_no_more(
        self, bench: JournalBench
    ) -> None:
        async def script() -> None:
            journal = bench.open()
            appends = [
                asyncio.ensure_future(journal.append(Batch(events=[news(n)]))) for n in range(1, 51)
            ]
            await asyncio.sleep(0)
            await journal.close()
            await asyncio.gather(*appends)
            await journal.close()
            with pytest.raises(StoreUnavailable):
                await journal.append(Batch(events=[news(51)]))
            found = bench.after_boot()
            assert found.recall().last_seq == 50
            await found.close()

        play(script)
