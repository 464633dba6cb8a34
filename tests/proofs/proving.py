"""The shape all long proofs share, so that the gate and `make soak` run the same code.

A proof is a function of a count, a seed and a folder of its own. In the gate a test calls it
with a small count and asserts that `violations` is empty; `make soak` runs the module as a
program: `PYTHONPATH=tests python tests/proofs/crashing.py warm 10000 --seed 7`. It prints one
line of JSON. Imports are written as pytest finds them: `from proofs.proving import Verdict`.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a proof found out."""

    count: int
    """How many cases were really tried."""
    violations: tuple[str, ...] = ()
    """One full sentence each, with the seed and round that show it again."""
    figures: tuple[str, ...] = ()
    """Measured values worth a place in the table, such as "p99 12 ms"."""


Proof = Callable[[int, int, Path], Verdict]
"""Try `count` cases drawn from `seed`, in `folder`."""


def program(proofs: Mapping[str, Proof]) -> int:
    """Run one proof by its name and print its verdict as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("proof", choices=sorted(proofs))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="uphold-proof-") as folder:
        verdict = proofs[args.proof](args.count, seed, Path(folder))
    print(json.dumps({**asdict(verdict), "seed": seed, "seconds": time.monotonic() - began}))
    return 1 if verdict.violations else 0


def main(proofs: Mapping[str, Proof]) -> None:
    """Be the program of a proof's module."""
    sys.exit(program(proofs))
