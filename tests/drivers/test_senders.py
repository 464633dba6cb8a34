"""Who sent it: only the kernel's word and the nonce of a run count."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from uphold.core.statuses import Identity
from uphold.drivers import senders as module
from uphold.drivers.senders import Sender, Senders
from uphold.host.proctable import boot_id, read_nonce, read_stat
from uphold.testing.waiting import until


class Nursery:
    """Starts processes and ends them all."""

    def __init__(self):
        self.born = []

    def start(self, program="import time; time.sleep(600)", nonce=None, **options):
        environment = {"PATH": os.environ["PATH"], **({"UPHOLD_NONCE": nonce} if nonce else {})}
        process = subprocess.Popen(
            [sys.executable, "-ISc", program], env=environment, text=True, **options
        )
        self.born.append(process)
        if nonce:
            until(lambda: read_nonce(process.pid) == nonce)
        return process

    def end(self):
        for process in self.born:
            process.kill()
            process.wait()


@pytest.fixture
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.end()


def identity(pid, nonce="n-1"):
    began = read_stat(pid).start_ticks
    return Identity(pid=pid, start_ticks=began, boot_id=boot_id(), inode=0, nonce=nonce)


@pytest.mark.accepts("S05")
def test_a_main_process_is_known_by_its_number(nursery):
    senders = Senders(lambda _: True)
    main = nursery.start()
    assert senders.find(main.pid) == "foreign"
    senders.introduce("web", 3, identity(main.pid), child=True)
    assert senders.find(main.pid) == Sender("web", 3, introduced=True)


@pytest.mark.accepts("S05")
def test_the_number_of_an_adopted_one_counts_only_while_it_lives(nursery):
    """Somebody else reaps it: after its end the number may be anybody's."""
    living = {"web"}
    senders = Senders(living.__contains__)
    main = nursery.start()
    senders.introduce("web", 3, identity(main.pid), child=False)
    assert senders.find(main.pid) == Sender("web", 3, introduced=True)
    living.clear()
    assert senders.find(main.pid) == "gone"


@pytest.mark.accepts("S05")
def test_a_child_of_a_worker_is_known_by_its_session_also_when_it_has_just_ended(nursery):
    senders = Senders(lambda _: True)
    program = (
        "import os, time\n"
        "pid = os.fork()\n"
        "if not pid: os._exit(0)\n"
        "print(pid, flush=True)\n"
        "time.sleep(600)"
    )
    main = nursery.start(program, start_new_session=True, stdout=subprocess.PIPE)
    child = int(main.stdout.readline())
    until(lambda: read_stat(child).state == "Z")
    senders.introduce("web", 1, identity(main.pid), child=True)
    assert senders.find(child) == Sender("web", 1, introduced=True)
    main.stdout.close()


@pytest.mark.accepts("S05")
def test_one_that_left_the_session_is_known_by_the_nonce_of_its_run(nursery):
    senders = Senders(lambda _: True)
    main, helper = nursery.start(nonce="n-1"), nursery.start(nonce="n-1", start_new_session=True)
    senders.introduce("web", 1, identity(main.pid), child=True)
    assert senders.find(helper.pid) == Sender("web", 1, introduced=True)


@pytest.mark.accepts("S05")
def test_others_are_not_believed_whatever_their_nonce(nursery):
    senders = Senders(lambda _: True)
    main = nursery.start()
    senders.introduce("web", 1, identity(main.pid), child=True)
    assert senders.find(nursery.start(nonce="n-2", start_new_session=True).pid) == "foreign"
    assert senders.find(os.getpid()) == "foreign"
    assert senders.find(1) == "foreign"
    assert senders.find(0) == "invisible"
    gone = nursery.start("")
    gone.wait()
    assert senders.find(gone.pid) == "gone"


def test_a_run_may_speak_before_its_start_is_told(nursery):
    senders = Senders(lambda _: True)
    senders.expect("web", 2, "n-7")
    early = nursery.start(nonce="n-7", start_new_session=True)
    assert senders.find(early.pid) == Sender("web", 2, introduced=False)
    senders.introduce("web", 2, identity(early.pid, "n-7"), child=True)
    assert senders.find(early.pid) == Sender("web", 2, introduced=True)


def test_after_its_end_nobody_speaks_for_a_run(nursery):
    senders = Senders(lambda _: True)
    main, helper = nursery.start(), nursery.start(nonce="n-1", start_new_session=True)
    senders.introduce("web", 1, identity(main.pid), child=True)
    assert isinstance(senders.find(helper.pid), Sender)
    senders.dismiss("web", 1)
    assert senders.find(main.pid) == "foreign"
    assert senders.find(helper.pid) == "foreign"


def test_the_end_of_an_older_run_does_not_silence_a_newer_one(nursery):
    senders = Senders(lambda _: True)
    main = nursery.start()
    senders.introduce("web", 2, identity(main.pid), child=True)
    senders.dismiss("web", 1)
    senders.dismiss("other", 9)
    assert senders.find(main.pid) == Sender("web", 2, introduced=True)


@pytest.mark.accepts("S05")
def test_a_main_process_may_only_be_named_within_its_own_slot(nursery):
    senders = Senders(lambda _: True)
    web, db = nursery.start(), nursery.start()
    senders.introduce("web", 1, identity(web.pid, "n-1"), child=True)
    senders.introduce("db", 1, identity(db.pid, "n-2"), child=True)
    child = nursery.start(nonce="n-1", start_new_session=True)
    assert senders.belongs(child.pid, "web")
    assert not senders.belongs(db.pid, "web")
    assert not senders.belongs(1, "web")


def test_what_is_remembered_of_strangers_has_a_limit(nursery, monkeypatch):
    monkeypatch.setattr(module, "_MOST_KNOWN", 2)
    senders = Senders(lambda _: True)
    for _ in range(5):
        senders.find(nursery.start().pid)
    assert len(senders._seen) <= 2
