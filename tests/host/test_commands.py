"""Programs that end well, badly, late, or not at all."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from uphold.host.commands import Allowance, Done, clean_environment, run
from uphold.testing.waiting import until


def shell(text: str, tmp_path: Path, **more: object) -> Done:
    return run(["/bin/sh", "-c", text], cwd=tmp_path, **more)  # type: ignore[arg-type]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.accepts("C-120")
def test_tells_code_and_both_outputs(tmp_path: Path):
    done = shell("echo out; echo err >&2; exit 3", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert not done.ok
    assert done.error == "'/bin/sh' ended with 3."


def test_a_program_that_ends_with_zero_is_fine_and_stands_in_its_folder(tmp_path: Path):
    done = shell("pwd", tmp_path)
    assert done.ok
    assert done.stdout.strip() == os.path.realpath(tmp_path)


@pytest.mark.accepts("C-120")
def test_a_missing_program_is_an_answer(tmp_path: Path):
    done = run(["no-such-program-anywhere"], cwd=tmp_path)
    assert done.returncode is None
    assert done.error == "there is no program 'no-such-program-anywhere' in the PATH."


def test_a_missing_folder_and_a_file_without_the_right_to_run_are_answers(tmp_path: Path):
    missing = run(["/bin/true"], cwd=tmp_path / "gone")
    assert "cannot be run in the folder" in missing.error
    (tmp_path / "plain").write_text("x")
    plain = run([str(tmp_path / "plain")], cwd=tmp_path)
    assert plain.returncode is None
    assert "cannot be run" in plain.error
    assert run(["/bin/true", "a\0b"], cwd=tmp_path).returncode is None


@pytest.mark.accepts("C-120", "C-147b")
def test_the_whole_group_is_ended_when_the_limit_is_over(tmp_path: Path):
    done = shell("sleep 1000 & echo $!; echo $$; wait", tmp_path, limit=3.0)
    assert done.timed_out
    assert "did not end within 3 s" in done.error
    child, itself = map(int, done.stdout.split())
    assert is_gone(itself)
    until(lambda: is_gone(child), 30, "the child's end")


def test_one_that_does_not_listen_is_ended_all_the_same(tmp_path: Path):
    done = shell("trap '' TERM; echo $$; while :; do sleep 1; done", tmp_path, limit=3.0)
    assert done.timed_out
    assert done.returncode == -signal.SIGKILL
    assert is_gone(int(done.stdout))


def test_one_that_listens_may_tidy_up_first(tmp_path: Path):
    text = "trap 'rm lock; exit 1' TERM; : >lock; echo set; while :; do sleep 0.05; done"
    done = shell(text, tmp_path, limit=3.0)
    assert done.timed_out
    assert done.stdout == "set\n"
    assert not (tmp_path / "lock").exists()


def test_left_overs_in_its_group_end_with_it_and_keep_nobody_waiting(tmp_path: Path):
    done = shell("sleep 1000 & echo $!", tmp_path, limit=60)
    assert done.ok
    until(lambda: is_gone(int(done.stdout)), 30, "the left-over's end")


def test_one_that_left_its_group_and_keeps_the_output_open_keeps_nobody_waiting(tmp_path: Path):
    # Waited for: until it has left the group it would be ended with it.
    away = "setsid sh -c 'touch away; exec sleep 1000' & left=$!"
    text = f"{away}; until [ -e away ]; do sleep 0.01; done; echo $left"
    done = shell(text, tmp_path, limit=60)
    assert done.ok
    os.kill(int(done.stdout), signal.SIGKILL)


def test_one_that_closes_its_output_is_still_waited_for(tmp_path: Path):
    done = shell("exec >&- 2>&-; sleep 0.3; : >made; exit 4", tmp_path)
    assert done.returncode == 4
    assert (tmp_path / "made").exists()


def test_a_flood_is_kept_up_to_its_bound_with_beginning_and_end(tmp_path: Path):
    code = "print('first'); print('x' * 3_000_000); print('last')"
    done = run([sys.executable, "-c", code], cwd=tmp_path, most=1000)
    assert done.ok
    assert not done.whole
    assert done.stdout.startswith("first\n")
    assert done.stdout.endswith("last\n")
    assert "bytes left out" in done.stdout
    assert len(done.stdout) < 1100


def test_output_up_to_the_bound_is_whole(tmp_path: Path):
    done = run([sys.executable, "-c", "print('x' * 999)"], cwd=tmp_path, most=1000)
    assert done.whole
    assert done.stdout == "x" * 999 + "\n"


def test_input_is_given_however_long_and_however_little_is_read(tmp_path: Path):
    long = b"line\n" * 100_000
    assert shell("wc -c", tmp_path, input=long).stdout.strip() == str(len(long))
    assert shell("head -c 4", tmp_path, input=long).stdout == "line"
    assert shell("cat", tmp_path).stdout == ""


def test_nothing_of_ours_reaches_it_but_what_is_meant_to(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    first, second = os.pipe()
    try:
        os.set_inheritable(second, True)
        done = shell(f"env; test -e /proc/self/fd/{second}", tmp_path)
        kept = shell(f"test -e /proc/self/fd/{second}", tmp_path, keep=[second])
    finally:
        os.close(first)
        os.close(second)
    assert "s3cret" not in done.stdout
    assert "GIT_DIR" not in done.stdout
    assert "PATH=" in done.stdout
    assert done.returncode == 1
    assert kept.ok


def test_an_environment_is_composed_of_harmless_ones_named_ones_and_own_ones():
    here = {"HOME": "/h", "LC_ALL": "C", "PIP_X": "1", "SSH_AUTH_SOCK": "/s", "OTHER": "x"}
    assert clean_environment(here, ("PIP_*", "SSH_AUTH_SOCK"), A="1") == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "PIP_X": "1",
        "SSH_AUTH_SOCK": "/s",
        "A": "1",
    }


def test_it_can_be_called_on_threads_beside_a_running_loop(tmp_path: Path):
    async def several() -> list[Done]:
        calls = (asyncio.to_thread(shell, f"echo {n}", tmp_path) for n in range(8))
        return await asyncio.gather(*calls)

    assert [done.stdout for done in asyncio.run(several())] == [f"{n}\n" for n in range(8)]


def test_bytes_that_are_no_text_come_back_as_they_were(tmp_path: Path):
    done = shell(r"printf '\377'", tmp_path)
    assert os.fsencode(done.stdout) == b"\xff"


ORPHANS = """
import ctypes, sys
from uphold.host.commands import run
from uphold.host.proctable import main_children
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for limit in (60, 0.3):
    wait = "wait" if limit < 1 else "true"
    run(["/bin/sh", "-c", f"(sleep 1000 & sleep 1000) & {wait}"], cwd="/", limit=limit)
print(main_children())
"""


def test_orphans_of_its_group_are_buried_by_a_supervisor_that_takes_them_in(tmp_path: Path):
    done = run([sys.executable, "-c", ORPHANS], cwd=tmp_path, limit=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.accepts("S38")
def test_a_program_and_its_children_write_and_take_no_more_than_they_are_allowed(tmp_path: Path):
    allowance = Allowance(file=100_000, memory=64 << 20)
    done = shell("head -c 300000 /dev/zero > large; ls", tmp_path, allowance=allowance)
    assert os.strerror(errno.EFBIG) in done.stderr
    assert (tmp_path / "large").stat().st_size == 100_000
    hungry = run([sys.executable, "-c", "bytes(1 << 28)"], cwd=tmp_path, allowance=allowance)
    assert "MemoryError" in hungry.stderr
    assert shell("ulimit -c", tmp_path, allowance=allowance).stdout == "0\n"
