"""The helper's answers, without a process around them: whatever goes wrong is an answer."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from inbox.sharing import lay_out
from leaks import held
from uphold.inbox import answering, folders, helping, shelves, surveys

SETTINGS = {
    "layout": {
        "state": "00_STATE", "logs": "05_LOGS", "inbox": "Worker_Inbox", "outbox": "Worker_Outbox",
    },
    "paths": ["00_STATE"],
    "pattern": "supervisor_*.flag",
    "owner": "me",
}  # fmt: skip

NOBODY = 65534


@pytest.fixture
def root(tmp_path):
    return lay_out(tmp_path / "share")


@pytest.fixture
def helper(root):
    return answering.Helper(str(root), json.loads(json.dumps(SETTINGS)))


def test_what_nobody_knows_is_refused(helper):
    for word in ("__init__", "answer", "rm", "_top"):
        answer = helper.answer({"id": 1, "do": word})
        assert (answer["id"], answer["no"]) == (1, "wrong")


@pytest.mark.accepts("T12")
@pytest.mark.parametrize(
    ("number", "meaning"),
    [
        (errno.EIO, "unreachable"),
        (errno.ESTALE, "unreachable"),
        (errno.EACCES, "failed"),
        (errno.ENOSPC, "failed"),
        (errno.EROFS, "failed"),
    ],
)
def test_every_call_may_fail_and_is_answered(helper, root, monkeypatch, number, meaning):
    """At each call that a request makes, the first, the second and so on until it succeeds."""
    requests = (
        {"do": "put", "folder": "state", "name": "x", "content": "", "new": False, "durable": True},
        {"do": "claim", "name": "supervisor_a.flag", "token": "t"},
        {"do": "append", "name": "l.log", "lines": "YQ==", "max_size": 10, "keep": 2},
    )
    for request in requests:
        for point in range(60):
            (root / "Worker_Inbox/supervisor_a.flag").write_text("{}")
            with monkeypatch.context() as patched:
                failing = Failing(point, number, patched)
                answer = helper.answer({"id": 1, **request})
            if not failing.failed:
                assert "ok" in answer
                break
            if "no" in answer:
                assert answer["no"] in {meaning, "unmounted"}
        else:
            raise AssertionError("it never succeeded")
    assert [path.name for path in (root / "00_STATE").iterdir()] == ["x"]


class Failing:
    """Lets one call of the file system fail."""

    def __init__(self, point, number, patched):
        self.failed = False
        self._left = point
        self._number = number
        for name in ("open", "rename", "mkdir", "fsync", "write"):
            patched.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, call):
        def calling(*args, **given):
            if self._left == 0 and not self.failed:
                self.failed = True
                raise OSError(self._number, os.strerror(self._number))
            self._left -= 1
            return call(*args, **given)

        return calling


def test_descriptors_are_given_back_whatever_happens(helper, root):
    helper.answer({"id": 1, "do": "flags", "most": 5})
    before = held()
    (root / "Worker_Outbox").rmdir()
    for _ in range(20):
        helper.answer({"id": 1, "do": "flags", "most": 5})
        helper.answer({"id": 1, "do": "put", "folder": "outbox", "name": "x", "content": "",
                       "new": False, "durable": False})  # fmt: skip
        helper.answer({"id": 1, "do": "peek", "name": "../x"})
        helper.answer({"id": 1, "do": "survey"})
        helper.answer({"id": 1, "do": "read", "path": "a/b", "limit": 1, "end": False})
    (root / "00_STATE").rmdir()
    for _ in range(20):
        assert helper.answer({"id": 1, "do": "survey"})["no"] == "unmounted"
    assert held() == before


@pytest.mark.accepts("P23")
def test_the_same_is_done_to_several_and_what_is_wrong_with_one_is_no_matter_of_the_others(
    helper, root
):
    inbox = root / "Worker_Inbox"
    for name in ("a", "b"):
        (inbox / f"supervisor_{name}.flag").write_text("[]")
    wanted = [{"name": f"supervisor_{name}.flag", "token": "t"} for name in ("a", "../x", "b")]
    claims = helper.answer({"id": 1, "do": "claim", "each": wanted})["ok"]
    assert ["ok" in each for each in claims] == [True, False, True]
    wanted = [
        {
            "receipt": f"{number}.json",
            "content": "",
            "claimed": each["ok"]["claimed"],
            "kept": f"kept{number}",
            "reason": "no list",
        }
        for number, each in enumerate((claims[0], claims[2]))
    ]
    (inbox / "rejected").mkdir()
    (inbox / "rejected" / "kept0.reason.txt").touch()
    answers = helper.answer({"id": 2, "do": "dismiss", "each": wanted})["ok"]
    assert ["ok" in each for each in answers] == [False, True]
    assert sorted(os.listdir(root / "Worker_Outbox")) == ["0.json", "1.json"]
    assert (inbox / "rejected" / "kept1.reason.txt").read_text() == "no list"


@pytest.mark.accepts("T12")
def test_an_inbox_that_cannot_be_opened_is_not_watched_and_that_is_all(helper, root, monkeypatch):
    assert helper.answer({"id": 1, "do": "watch"})["ok"] == ""
    inbox = root / "Worker_Inbox"
    inbox.rmdir()
    assert helper.answer({"id": 1, "do": "watch"})["ok"] == "there is no inbox"
    inbox.touch()
    reason = helper.answer({"id": 1, "do": "watch"})["ok"]
    assert reason == "it cannot be opened (Not a directory)"
    assert helper.lookout.descriptors() == ()

    def away(*_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(folders.Top, "folder", away)
    assert helper.answer({"id": 1, "do": "watch"})["no"] == "unreachable"


@pytest.mark.accepts("S08", "T12")
def test_a_file_that_becomes_a_socket_or_a_link_is_odd_and_hides_no_other(
    helper, root, monkeypatch
):
    inbox = root / "Worker_Inbox"
    os.mknod(inbox / "supervisor_a.flag", stat.S_IFSOCK | 0o600)
    (inbox / "supervisor_b.flag").symlink_to("/etc/passwd")
    (inbox / "supervisor_c.flag").write_text("{}")
    # As if they had been plain files until a moment ago.
    monkeypatch.setattr(shelves, "oddity", lambda _: "")
    entries = helper.answer({"id": 1, "do": "flags", "most": 5})["ok"]["entries"]
    found = {each["name"][11]: each["content"] for each in entries}
    assert found["a"]["odd"] == "not readable (No such device or address)"
    assert found["b"]["odd"] == "not readable (Too many levels of symbolic links)"
    assert found["c"]["raw"]


def test_a_pipe_in_the_place_of_a_log_does_not_mean_that_the_share_is_away(helper, root):
    os.mkfifo(root / "05_LOGS/l.log")
    request = {"do": "append", "name": "l.log", "lines": "YQ==", "max_size": 10, "keep": 2}
    assert helper.answer({"id": 1, **request})["no"] == "failed"


@pytest.fixture
def commons():
    """A share for everybody, and a helper of an ordinary user on it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = lay_out(Path(folder) / "share")
        for path in (root, *root.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        helper = answering.Helper(str(root), json.loads(json.dumps(SETTINGS)))

        def ask(**request):
            os.seteuid(NOBODY)
            try:
                return helper.answer({"id": 1, **request})
            finally:
                os.seteuid(0)

        yield root / "Worker_Inbox", ask


@pytest.mark.accepts("S09")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_what_only_its_owner_can_move_is_no_failure_and_hides_no_other(commons):
    inbox, ask = commons
    (inbox / "supervisor_a.flag").mkdir(mode=0o755)
    (inbox / "supervisor_b.flag").write_text("{}")
    wanted = [{"name": f"supervisor_{name}.flag", "token": "t"} for name in "ab"]
    kept, claimed = ask(do="claim", each=wanted)["ok"]
    assert kept == {"ok": {"kept": "Permission denied"}}
    assert claimed["ok"]["claimed"] == "me.t.supervisor_b.flag"
    assert ask(do="survey")["ok"]["kept_by"] is None

    os.chown(inbox, 0, 0)
    inbox.chmod(0o1777)
    (inbox / "supervisor_b.flag").write_text("{}")
    _, kept = ask(do="claim", each=wanted)["ok"]
    assert kept == {"ok": {"kept": "Operation not permitted"}}
    assert ask(do="survey")["ok"]["kept_by"] == "user 'root'"

    inbox.chmod(0o755)
    assert [each["no"] for each in ask(do="claim", each=wanted)["ok"]] == ["failed", "failed"]


@pytest.mark.accepts("T12")
def test_of_several_as_many_are_done_as_there_is_time_for_and_one_at_least(
    helper, root, monkeypatch
):
    wanted = []
    for number in range(5):
        (root / f"Worker_Inbox/supervisor_{number}.flag").write_text("[]")
        wanted.append({"name": f"supervisor_{number}.flag", "token": "t"})
    monkeypatch.setattr(answering, "LONGEST_LOOK", -1.0)
    for left in range(5, 0, -1):
        (claim,) = helper.answer({"id": 1, "do": "claim", "each": wanted[-left:]})["ok"]
        assert claim["ok"]["claimed"] == f"me.t.supervisor_{5 - left}.flag"
        assert len(list((root / "Worker_Inbox").glob("*.flag"))) == left - 1


def test_requests_are_answered_in_their_order_until_nobody_asks(root):
    ours, theirs = socket.socketpair()
    thread = threading.Thread(
        target=answering.serve, args=(str(root), json.dumps(SETTINGS), theirs.fileno())
    )
    mask = os.umask(0o022)
    try:
        thread.start()
        lines = [json.dumps({"id": number, "do": "sweep"}) for number in range(50)]
        ours.sendall("\n".join(lines).encode() + b"\n")
        answers = b""
        while answers.count(b"\n") < 50:
            answers += ours.recv(1 << 16)
        assert [json.loads(line)["id"] for line in answers.splitlines()] == list(range(50))
    finally:
        ours.close()
        thread.join(60)
        theirs.close()
        os.umask(mask)
    assert not thread.is_alive()


def test_the_program_says_how_it_is_used_and_needs_nothing_but_the_standard_library():
    program = str(Path(helping.__file__))
    ran = subprocess.run(
        [sys.executable, "-I", "-S", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "usage" in ran.stderr


def test_a_mark_knows_what_lies_beneath(root, tmp_path):
    mark = folders.Mark()
    with folders.Top(str(root), SETTINGS["layout"], mark):
        assert mark.device == root.stat().st_dev
    beneath = folders.Mark(device=-1, beneath=(root.stat().st_dev,))
    with pytest.raises(folders.Unmounted):
        folders.Top(str(root), SETTINGS["layout"], beneath)
    remounted = folders.Mark(device=-1, beneath=(-2,))
    with folders.Top(str(root), SETTINGS["layout"], remounted):
        assert remounted.device == root.stat().st_dev
        assert -2 in remounted.beneath


def test_names_are_cut_to_what_file_systems_take():
    assert shelves.shortened("x" * 300, 10) == "x" * 245
    assert len(os.fsencode(shelves.shortened("é" * 200, 48))) <= 207


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_survey_tries_to_write(root):
    (root / "05_LOGS").chmod(0o500)
    with folders.Top(str(root), SETTINGS["layout"], folders.Mark()) as top:
        assert surveys.survey(top, [])["logs"] == "Permission denied"
