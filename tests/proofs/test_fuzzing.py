"""T18 in the gate: every saved input, and some fresh ones from a fixed seed."""

from __future__ import annotations

import pytest

from proofs.fuzzing import PROOFS, corpus, fuzz
from uphold.errors import UpholdError

FRESH = {"config": 1000, "state": 80, "slots": 400, "frames": 200, "notices": 2000}


@pytest.mark.slow
@pytest.mark.accepts("T18", "S45")
@pytest.mark.parametrize("name", PROOFS)
def test_no_input_is_answered_with_a_mistake(name, tmp_path):
    """A fixed number of them: a faster machine must not try, and find, more than a slower one."""
    verdict = PROOFS[name](2, 18, tmp_path, FRESH[name])
    assert verdict.violations == ()


def test_the_saved_inputs_are_few_and_small():
    sizes = [len(data) for name in PROOFS for _, data in corpus(name).values()]
    assert sum(sizes) < 200_000


class Fragile:
    """A reader with a mistake: it raises what nobody documented."""

    async def open(self):
        pass

    async def close(self):
        pass

    async def take(self, kind, data):
        try:
            if b"\0" in data:
                raise UpholdError("documented")
            if data.count(b"{") > 3:
                raise KeyError("not documented")
        except UpholdError:
            pass


def test_a_mistake_is_found_and_told_with_its_input():
    verdict = fuzz("frames", Fragile(), 2, 7, 1000)
    assert 0 < len(verdict.violations) <= 2
    assert "KeyError" in verdict.violations[0]
