"""Room for descriptors, asked for in a process of its own: what is raised stays so."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

PROGRAM = """
import json, resource, sys
from uphold.host.processes.descriptors import make_room
seen = []
for slots in map(int, sys.argv[1:]):
    make_room(slots)
    seen.append(resource.getrlimit(resource.RLIMIT_NOFILE))
print(json.dumps(seen))
"""
HARD = 4096


def limits_after(*slots: int, soft: int = 1024) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, slots)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, HARD)),
        capture_output=True,
        check=True,
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found


def test_a_few_workers_need_no_more_than_every_process_may_have():
    assert limits_after(0, 1, 200) == [[1024, HARD]] * 3


def test_many_get_what_they_need_with_room_for_some_more_and_no_more():
    assert limits_after(300, 301) == [[2048, HARD]] * 2


def test_it_never_shrinks_and_never_passes_what_the_machine_allows():
    assert limits_after(300, 1, 100_000) == [[2048, HARD], [2048, HARD], [HARD, HARD]]


def test_where_we_may_have_little_we_take_what_there_is():
    assert limits_after(1, soft=64) == [[512, HARD]]
