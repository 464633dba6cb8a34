"""Memory goes back to the kernel when it is free."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from uphold.host.memory import give_back, use_one_heap
use_one_heap()
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
parts = [bytearray(b"x" * 4000) for _ in range(20_000)]
last = bytearray(4000)  # above the rest, so that the heap cannot simply shrink
full = held()
del parts
give_back()
print(full - held())
"""


def test_what_is_free_is_given_back_from_the_middle_of_the_heap_too():
    ran = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(ran.stdout) > 15_000  # pages, of the 20,000 that were filled


KEEPING = """
import gc
from uphold.host.memory import settle_down
class Thing: pass
kept = [Thing() for _ in range(1000)]
lost = Thing()
lost.itself = lost
del lost
settle_down()
print(len([each for each in gc.get_objects() if isinstance(each, Thing)]), gc.get_freeze_count() > 1000)
kept.clear()
"""


def test_what_stays_is_searched_for_cycles_once_and_never_again():
    ran = subprocess.run(
        [sys.executable, "-I", "-c", KEEPING], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["0", "True"]
