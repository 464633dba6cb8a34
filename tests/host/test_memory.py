"""Memory goes back to the kernel when it is free."""

from __future__ import annotations

import mmap
import subprocess
import sys

from uphold.host.memory import can_be_changed, shared_maps

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


def test_what_is_mapped_to_be_shared_is_found_and_can_be_changed(tmp_path):
    path = tmp_path / "shared file"
    path.write_bytes(bytes(3 * mmap.PAGESIZE))
    assert shared_maps(str(path)) == ()
    with path.open("r+b") as file:
        read_only = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        assert shared_maps(str(path)) == ()
        both = mmap.mmap(file.fileno(), 0)
    ((address, size),) = shared_maps(str(path))
    assert address % mmap.PAGESIZE == 0
    assert size == len(both)
    assert can_be_changed([(address, size)])
    path.write_bytes(b"")  # what is mapped lies beyond its end now: whoever changes it is killed
    assert not can_be_changed([(address, size)])
    read_only.close()
    both.close()


def test_what_is_not_mapped_cannot_be_changed():
    assert can_be_changed([])
    assert not can_be_changed([(mmap.PAGESIZE, mmap.PAGESIZE)])
