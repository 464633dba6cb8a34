"""What real trees of processes use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from uphold.host import trees
from uphold.host.trees import proportional, read_command, read_tree, read_trees, read_use, resident
from uphold.testing.waiting import until

THREE = """
import os, sys, threading, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)
if len(sys.argv) > 1:
    threading.Thread(target=lambda: os.fork() or time.sleep(1000)).start()
time.sleep(1000)
"""


@pytest.fixture
def tree():
    started = []

    def start(*words):
        command = [sys.executable, "-ISc", THREE, *words]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        started.append(process)
        return process.pid

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.wait()


def whole(main):
    until(lambda: len(read_tree(main)) == 3)
    return read_tree(main)


def test_a_tree_is_its_main_process_and_everything_below(tree):
    main = tree()
    found = whole(main)
    assert found[0].pid == main
    assert sum(use.rss for use in found) > found[0].rss > 100_000
    assert read_command(main).startswith(sys.executable)


def test_children_of_threads_belong_to_it_too(tree):
    main = tree("threaded")
    assert until(lambda: len(read_tree(main)) == 4)


def test_a_look_at_all_finds_the_same_as_asking_each(tree, monkeypatch):
    mains = [tree(), tree()]
    until(lambda: all(len(read_tree(main)) == 3 for main in mains))
    asked = read_trees([*mains, 2**22 + 1])
    monkeypatch.setattr(trees, "_FEW", 0)
    monkeypatch.setattr(trees, "_MANY_OTHERS", 10**6)
    looked = read_trees([*mains, 2**22 + 1])
    numbers = {main: {use.pid for use in uses} for main, uses in asked.items()}
    assert numbers == {main: {use.pid for use in uses} for main, uses in looked.items()}
    assert set(numbers) == set(mains)
    assert [uses[0].pid for uses in looked.values()] == mains


def test_who_is_gone_uses_nothing():
    gone = 2**22 + 1
    assert read_use(gone) is None
    assert read_tree(gone) == []
    assert read_command(gone) == ""
    assert resident([gone]) == proportional([gone]) == 0


def test_shared_memory_counts_once_when_it_matters(tree):
    main = tree()
    pids = [use.pid for use in whole(main)]
    assert 0 < proportional(pids) < resident(pids)
