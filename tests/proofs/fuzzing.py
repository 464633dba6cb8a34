"""T18: no bytes in a file or on the socket make uphold raise what it does not document.

Each proof takes its count as CPU seconds. First every saved input of `corpus/PROOF` is tried, then
changed ones drawn from the seed. The beginning of an input's file name, up to the first hyphen,
says what it stands for. An input that showed a mistake is kept there, so it is tried for ever.
"""

from __future__ import annotations

import asyncio
import random
import resource
import time
import traceback
from pathlib import Path

from proofs.fuzz_configs import Configs
from proofs.fuzz_frames import Frames
from proofs.fuzz_notices import Notices
from proofs.fuzz_slots import Slots
from proofs.fuzz_states import States
from proofs.mutating import mutated
from proofs.proving import Verdict, main

CORPUS = Path(__file__).parent / "corpus"
MOST_MEMORY = 4 << 30
MOST = 20
"""Different violations after which the rest is not looked for."""


def corpus(name):
    """Give the saved inputs: (kind, bytes), by their file's name."""
    files = sorted((CORPUS / name).iterdir())
    assert files, f"nothing is saved for {name}"
    return {path.name: (path.name.partition("-")[0], path.read_bytes()) for path in files}


def fuzz(name, target, seconds, seed, most=None):
    """Try saved and changed inputs until so much CPU is used, or so many changed ones tried."""
    return asyncio.run(_fuzz(name, target, seconds, seed, most))


async def _fuzz(name, target, seconds, seed, most):
    rng = random.Random(seed)
    saved = corpus(name)
    found = {}
    await target.open()
    for file, (kind, data) in saved.items():
        await _try(target, kind, data, f"saved input {file}", found)
    entries = list(saved.values())
    by_kind = {}
    for kind, data in entries:
        by_kind.setdefault(kind, []).append(data)
    tried = len(entries)
    slowest = 0.0
    end = time.process_time() + seconds
    while (before := time.process_time()) < end and len(found) < MOST:
        if most is not None and tried >= len(entries) + most:
            break
        kind, data = rng.choice(entries)
        data = mutated(rng, data, by_kind[kind])
        await _try(target, kind, data, f"seed {seed}, input {tried}", found)
        slowest = max(slowest, time.process_time() - before)
        tried += 1
    await target.close()
    figures = (f"{tried:,} inputs", f"slowest {slowest * 1000:.0f} ms")
    return Verdict(count=seconds, violations=tuple(found.values()), figures=figures)


async def _try(target, kind, data, when, found):
    try:
        await target.take(kind, data)
    except Exception as problem:
        frame = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        text = f"{when}: {kind}: {type(problem).__name__} in {place}: {str(problem)[:300]}; {data!r:.6000}"
        found.setdefault((kind, type(problem).__name__, place), text)


def config(count, seed, folder, most=None):
    return fuzz("config", Configs(folder), count, seed, most)


def state(count, seed, folder, most=None):
    return fuzz("state", States(folder), count, seed, most)


def slots(count, seed, folder, most=None):
    return fuzz("slots", Slots(folder), count, seed, most)


def frames(count, seed, folder, most=None):
    return fuzz("frames", Frames(folder), count, seed, most)


def notices(count, seed, folder, most=None):
    return fuzz("notices", Notices(folder), count, seed, most)


PROOFS = {"config": config, "state": state, "slots": slots, "frames": frames, "notices": notices}

if __name__ == "__main__":
    # An input that takes all memory must be told, not end us without a word.
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    main(PROOFS)
