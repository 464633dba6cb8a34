"""T15: hostile flags, swapped contents, two supervisors on one inbox."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

from inbox.sharing import Tools, lay_out, tools_for
from proofs.disks import in_memory
from proofs.hostile_kinds import CONSOLE, KINDS, NOW, ORDER, OWN, REFUSED, UNTOUCHED, Case, raw
from proofs.proving import Verdict, main
from uphold.core.events import Moment
from uphold.core.specs import Instant
from uphold.inbox.flags import Flag, Rejected, Rules
from uphold.inbox.obeying import Answer, Dealings, Obedience
from uphold.inbox.receiving import Receiver
from uphold.ports.logs import NoLog
from uphold.testing.clocks import FakeClock

RULES = Rules(workers=frozenset(OWN), senders=(CONSOLE,))
MOMENT = Moment(mono=Instant(0.0), wall=NOW)
BATCH = 2_000
"""Files that lie in the inbox at a time."""


def hostile(count: int, seed: int, folder: Path) -> Verdict:
    """Drop so many files of every kind; each is obeyed, refused or left alone as it should be."""
    return asyncio.run(_hostile(count, Random(seed), seed, folder))


def swaps(count: int, seed: int, folder: Path) -> Verdict:
    """Replace flags while they are being claimed; nothing is obeyed twice or half."""
    return asyncio.run(_swaps(count, Random(seed), seed, folder))


async def _hostile(count: int, rng: Random, seed: int, folder: Path) -> Verdict:
    # In memory: what is made and removed by the thousand costs a real disk more than all the rest.
    folder = in_memory(folder, "hostile-")
    tools = tools_for(lay_out(folder / "share"))
    violations: list[str] = []
    kinds: Counter[str] = Counter()
    spent = slowest = ours = 0.0
    helped = _helpers_time()
    try:
        await tools.inbox.flags()
        pid = tools.reach._helper.pid
        for first in range(0, count, BATCH):
            cases = _drop(tools, rng, first, min(first + BATCH, count), kinds)
            before = _standing(tools, cases)
            began, busy = time.perf_counter(), time.process_time()
            clerk = Clerk(tools)
            await clerk.work_through()
            spent += time.perf_counter() - began
            ours += time.process_time() - busy
            slowest = max(slowest, *clerk.looks)
            violations += _judge(tools, cases, clerk, before)
            _clear(tools)
        if tools.reach._helper.pid != pid:
            violations.append("the helper did not survive.")
    finally:
        await tools.reach.close()
        shutil.rmtree(folder)
    told = tuple(f"seed {seed}: {each}" for each in violations)
    figures = (
        f"{len(kinds)} kinds",
        f"{spent:.1f} s of work",
        f"CPU {ours:.1f} s, helper {_helpers_time() - helped:.1f} s",
        f"slowest look at 200 {slowest * 1000:.0f} ms",
    )
    return Verdict(count=count, violations=told, figures=figures)


def _helpers_time() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _drop(
    tools: Tools, rng: Random, first: int, last: int, kinds: Counter[str]
) -> dict[str, tuple[str, Case]]:
    """Lay files into the inbox; of one name there is one."""
    names = list(KINDS)
    cases: dict[str, tuple[str, Case]] = {}
    for number in range(first, last):
        kind = names[number % len(names)]
        case = KINDS[kind](rng, number)
        path = tools.root / "Worker_Inbox" / case.name
        if case.name in cases:
            continue
        kinds[kind] += 1
        cases[case.name] = (kind, case)
        if isinstance(case.content, bytes):
            path.write_bytes(case.content)
        else:
            case.content(path)
        os.utime(path, (NOW - 60, NOW - 60), follow_symlinks=False)
    return cases


class Clerk:
    """Answers every flag as a supervisor does; what is asked of it is only noted."""

    def __init__(self, tools: Tools) -> None:
        self.obeyed: list[Flag] = []
        self.refused: list[Rejected] = []
        self.looks: list[float] = []
        """Seconds that each took."""
        self._obedience = Obedience(
            inbox=tools.inbox,
            share=tools.share,
            owner="tester",
            supervisor_id="s",
            dealings=Dealings(
                rules=lambda: RULES,
                carry=self._carry,
                known=self._known,
                tell=self._tell,
                refused=self._refused,
            ),
            clock=FakeClock(wall=NOW),
            log=NoLog(),
        )

    async def work_through(self) -> None:
        """Look until a look brings nothing new."""
        idle = 0
        while idle < 2:
            began = time.perf_counter()
            deeds = await self._obedience.look()
            self.looks.append(time.perf_counter() - began)
            idle = 0 if deeds else idle + 1

    async def _carry(self, flag: Flag) -> Answer:
        self.obeyed.append(flag)
        return Answer(success=True)

    async def _known(self, task_id: str) -> Answer | None:
        return None

    async def _tell(self, kind, told) -> None:
        pass

    async def _refused(self, rejected: Rejected) -> None:
        self.refused.append(rejected)


def _standing(tools: Tools, cases: dict[str, tuple[str, Case]]) -> dict[str, tuple[object, ...]]:
    """Note what the files look like that must not be touched."""
    inbox = tools.root / "Worker_Inbox"
    return {
        name: _look(inbox / name) for name, (_, case) in cases.items() if case.fate == UNTOUCHED
    }


def _look(path: Path) -> tuple[object, ...]:
    if not os.path.lexists(path):
        return ()
    seen = path.lstat()
    return seen.st_ino, seen.st_mtime_ns, seen.st_size, path.read_bytes()


def _judge(
    tools: Tools,
    cases: dict[str, tuple[str, Case]],
    clerk: Clerk,
    before: dict[str, tuple[object, ...]],
) -> list[str]:
    wrong: list[str] = []
    obeyed, refused = clerk.obeyed, clerk.refused
    answers = Counter(each.file for each in (*obeyed, *refused))
    for name, (kind, case) in cases.items():
        times = 0 if case.fate == UNTOUCHED else 1
        if answers.pop(name, 0) != times:
            wrong.append(f"a file of kind '{kind}' ({name!r}) was not answered {times} times.")
    wrong += [f"{name!r} was answered, but never dropped." for name in answers]
    for flag in obeyed:
        kind, case = cases[flag.file]
        said = (flag.task_id, flag.handler, flag.worker_id)
        if case.fate != ORDER or said != (case.task, case.handler, case.worker):
            wrong.append(f"a file of kind '{kind}' was obeyed as {said}: {case.content!r:.200}.")
    for rejected in refused:
        kind, case = cases[rejected.file]
        if case.fate != REFUSED:
            wrong.append(f"a file of kind '{kind}' was refused: {rejected.reason}")
        if not rejected.reason.endswith(".") or not rejected.reason.isprintable():
            wrong.append(f"a file of kind '{kind}' has the reason {rejected.reason!r}")
    inbox = tools.root / "Worker_Inbox"
    for name, seen in before.items():
        if _look(inbox / name) != seen:
            wrong.append(f"{name!r} was touched.")
    kept = sum(case.fate == REFUSED for _, case in cases.values())
    lying = [path.name for path in (inbox / "rejected").iterdir()]
    if len(lying) != 2 * kept or sum(name.endswith(".reason.txt") for name in lying) != kept:
        wrong.append(f"{kept} flags were refused, and {len(lying)} files lie in rejected/.")
    if len(list((tools.root / "Worker_Outbox").iterdir())) != kept + len(obeyed):
        wrong.append("not every flag has a receipt of its own.")
    if list((inbox / "processing").iterdir()):
        wrong.append("something is left in processing/.")
    return wrong


def _clear(tools: Tools) -> None:
    """Take away what is left of a batch."""
    inbox = tools.root / "Worker_Inbox"
    for folder in (inbox, inbox / "rejected", tools.root / "Worker_Outbox"):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                if path.name not in {"rejected", "processing"}:
                    for inner in path.iterdir():
                        inner.rmdir()
                    path.rmdir()
            else:
                path.unlink()


async def _swaps(count: int, rng: Random, seed: int, folder: Path) -> Verdict:
    tools = tools_for(lay_out(folder / "share"))
    other = tools_for(tools.root, owner="other")
    written: dict[str, tuple[str, str]] = {}
    names = [f"supervisor_{number}.flag" for number in range(50)]
    inbox = tools.root / "Worker_Inbox"
    ended = threading.Event()

    def swap() -> None:
        for number in range(count):
            handler = rng.choice(("pause_watcher", "restart_watcher", "nonsense"))
            worker = rng.choice((*OWN, "theirs"))
            task = f"task{number}"
            written[task] = (handler, worker)
            made = {"task_id": task, "handler": handler, "worker_id": worker}
            hidden = inbox / f".{number}"
            hidden.write_bytes(raw(made))
            hidden.replace(inbox / rng.choice(names))
        ended.set()

    obeyed: Counter[str] = Counter()
    violations: list[str] = []
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        receivers = [(side, Receiver(side.inbox)) for side in (tools, other)]
        idle = 0
        while idle < 3:
            for side, receiver in receivers:
                over = ended.is_set()
                poll = await receiver.poll(RULES, MOMENT)
                for each in poll.claimed:
                    obeyed[each.flag.task_id] += 1
                    said = (each.flag.handler, each.flag.worker_id)
                    if written[each.flag.task_id] != said:
                        violations.append(f"{each.flag.task_id} was obeyed as {said}.")
                    await side.inbox.finish(each.claimed)
                for each in poll.refused:
                    known = written.get(each.rejected.task_id or "", ("", "theirs"))
                    if known[0] != "nonsense" and known[1] != "theirs":
                        violations.append(f"{known} was refused: {each.rejected.reason}")
                    await side.inbox.finish(each.claimed)
                if poll.failure is not None:
                    violations.append(str(poll.failure))
            idle = idle + 1 if over and not poll.claimed and not poll.refused else 0
    finally:
        swapper.join()
        await tools.reach.close()
        await other.reach.close()
    violations += [
        f"{task} was obeyed {times} times." for task, times in obeyed.items() if times > 1
    ]
    left = [path.name for path in inbox.iterdir() if path.is_file()]
    violations += [
        f"{name} is left behind." for name in left if b'"theirs"' not in (inbox / name).read_bytes()
    ]
    told = tuple(f"seed {seed}: {each}" for each in violations)
    return Verdict(count=count, violations=told, figures=(f"{len(obeyed)} obeyed",))


PROOFS = {"hostile": hostile, "swaps": swaps}

if __name__ == "__main__":
    main(PROOFS)
