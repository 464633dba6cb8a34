from __future__ import annotations

import os
import pwd
import resource
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from drivers.conftest import status, variables
from leaks import held
from uphold.core.specs import Limits, Logs, StopRule
from uphold.host.environments import DEFAULT_PATH
from uphold.host.processes.slotlocks import read_record
from uphold.testing.waiting import eventually

ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody" if ROOT else "daemon")
OTHER_USER = {"user": "nobody"} if ROOT else {}


def descriptors(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.accepts("S25", "P13")
@pytest.mark.parametrize("slow", [{}, {"limits": Limits(nofile=64)}, OTHER_USER])
def test_a_worker_inherits_its_output_its_lock_and_nothing_else(act, slow):
    leak = os.open("/dev/null", os.O_RDONLY)

    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000", **slow)
        # While it is being loaded it has its libraries open.
        await eventually(lambda: descriptors(pid) == [0, 1, 2, 3], what=f"{descriptors(pid)}")
        assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
        assert os.readlink(f"/proc/{pid}/fd/1") == str(stage.home.fifo("web"))
        assert os.readlink(f"/proc/{pid}/fd/2") == str(stage.home.fifo("web"))
        assert os.readlink(f"/proc/{pid}/fd/3") == str(stage.home.slot_lock("web"))

    act(scene)
    os.close(leak)


@pytest.mark.accepts("S46")
def test_the_environment_inside_a_worker_is_the_expected_set(act):
    inherited = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/somewhere",
        "LC_ALL": "C",
        "SECRET_TOKEN": "canary",
        "LD_PRELOAD": "canary",
        "PYTHONPATH": "canary",
        "NOTIFY_SOCKET": "canary",
        "UPHOLD_NONCE": "canary",
        "UPHOLD_OTHER": "canary",
        "APP_LEVEL": "info",
    }

    async def scene(stage):
        await stage.next_supervisor(inherited=inherited)
        terms = {"pass_environment": ("APP_*",), "environment": (("COLOUR", "blue"),), "team": "a"}
        pid = await stage.start("web.2", "sleep", "1000", **terms)
        nonce = stage.seen("Started", "web.2").identity.nonce
        assert {each.decode() for each in variables(pid)} == {
            "PATH=/usr/bin:/bin",
            "HOME=/somewhere",
            "LC_ALL=C",
            "APP_LEVEL=info",
            "COLOUR=blue",
            f"STAGE={stage.folder}",
            "UPHOLD_WORKER=web",
            "UPHOLD_SLOT=web.2",
            f"UPHOLD_NONCE={nonce}",
            "UPHOLD_TEAM=a",
        }
        cleared = await stage.start("bare", "sleep", "1000", clear_environment=True)
        names = {each.decode().partition("=")[0] for each in variables(cleared)}
        assert names == {"STAGE", "UPHOLD_WORKER", "UPHOLD_SLOT", "UPHOLD_NONCE"}

    act(scene)


@pytest.mark.accepts("S02")
def test_what_is_secret_is_never_in_a_command_line(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000", environment=(("TOKEN", "canary"),))
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert line == b"sleep\x001000\x00"

    act(scene)


@pytest.mark.parametrize("slow", [{}, {"limits": Limits(nice=1)}])
def test_a_worker_gets_default_signals_and_an_empty_mask(act, slow):
    ignored = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})

    async def scene(stage):
        seen = status(await stage.start("web", "sleep", "1000", **slow))
        internal = 0b11 << 31  # 32 and 33 belong to the C library, which ignores them in a spawn
        for key in ("SigBlk", "SigIgn", "SigCgt"):
            assert int(seen[key], 16) & ~internal == 0, key

    try:
        act(scene)
    finally:
        signal.signal(signal.SIGUSR1, ignored)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.mark.parametrize("slow", [{}, {"limits": Limits(nofile=64)}])
def test_folder_and_umask_are_the_workers_own_and_ours_stay(act, slow):
    here, mask = os.getcwd(), os.umask(0o022)
    os.umask(mask)

    async def scene(stage):
        folder = str(stage.folder)
        pid = await stage.start("web", "sleep", "9", working_dir=folder, umask=0o027, **slow)
        assert os.readlink(f"/proc/{pid}/cwd") == folder
        assert int(status(pid)["Umask"], 8) == 0o027
        assert os.getsid(pid) == os.getpgid(pid) == pid

    act(scene)
    assert os.getcwd() == here
    assert os.umask(mask) == mask


def test_the_umask_of_a_worker_is_never_ours_for_a_moment(act, monkeypatch):
    """It would be that of all our threads, and of whatever they start meanwhile."""

    async def scene(stage):
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", lambda _: pytest.fail("our own was changed"))
            pid = await stage.start("open", "sleep", "1000", umask=0)
        assert int(status(pid)["Umask"], 8) == 0

    act(scene)


def test_those_who_start_beside_one_with_a_umask_are_not_born_with_it(act):
    ours = os.umask(0o022)

    async def scene(stage):
        masks = {f"w{n}": None if n % 2 else 0 for n in range(40)}
        launches = [stage.launch(n, "sleep", "1000", umask=mask) for n, mask in masks.items()]
        await stage.driver.start_all(launches)
        for slot, mask in masks.items():
            pid = (await stage.told("Started", slot)).identity.pid
            assert int(status(pid)["Umask"], 8) == (0o022 if mask is None else mask), slot

    try:
        act(scene)
    finally:
        os.umask(ours)


def test_a_few_workers_never_see_another_limit_than_ours(act):
    """Nothing is handed back to them late, as nothing was raised."""

    async def scene(stage):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        await stage.next_supervisor(nofile=before)
        await stage.start("web", "sleep", "1000")
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before

    act(scene)


def test_limits_are_set_at_birth_and_otherwise_those_we_were_started_with(act):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    async def scene(stage):
        await stage.next_supervisor(nofile=(99, hard))
        plain = await stage.start("plain", "sleep", "1000")
        assert resource.prlimit(plain, resource.RLIMIT_NOFILE) == (99, hard)
        limited = await stage.start("few", "sleep", "1000", limits=Limits(nofile=64, nice=7))
        assert resource.prlimit(limited, resource.RLIMIT_NOFILE) == (64, 64)
        assert os.getpriority(os.PRIO_PROCESS, limited) == 7
        nice = await stage.start("nice", "sleep", "1000", limits=Limits(nice=3))
        assert resource.prlimit(nice, resource.RLIMIT_NOFILE) == (99, hard)

    act(scene)


def test_a_worker_of_another_user_is_that_user_in_every_respect(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000", user=NOBODY.pw_name)
        await stage.driver.start(launch)
        if not ROOT:
            failed = await stage.told("StartFailed", "web")
            assert failed.fault.code == "UPH_START_NOT_PERMITTED"
            assert failed.hopeless
            return
        pid = (await stage.told("Started", "web")).identity.pid
        await eventually(lambda: variables(pid))
        seen = status(pid)
        assert set(seen["Uid"].split()) == {str(NOBODY.pw_uid)}
        assert set(seen["Gid"].split()) == {str(NOBODY.pw_gid)}
        expected = {str(gid) for gid in os.getgrouplist("nobody", NOBODY.pw_gid)}
        assert set(seen["Groups"].split()) == expected
        own = {b"USER=nobody", b"LOGNAME=nobody", f"HOME={NOBODY.pw_dir}".encode()}
        assert own <= set(variables(pid))
        assert Path(stage.home.fifo("web")).stat().st_uid == NOBODY.pw_uid
        await stage.driver.stop("web", StopRule())
        await stage.told("Gone", "web")

    act(scene)


@pytest.mark.accepts("B-95", "B-72")
@pytest.mark.parametrize(
    ("command", "terms", "code", "words"),
    [
        (("nonesuch",), {}, "UPH_START_NOT_FOUND", ["'nonesuch'", DEFAULT_PATH]),
        (("./nonesuch",), {}, "UPH_START_NOT_FOUND", ["'./nonesuch'", "looked from"]),
        (("./plain",), {}, "UPH_START_NOT_EXECUTABLE", ["plain", "chmod +x"]),
        (("./text",), {}, "UPH_START_NOT_EXECUTABLE", ["text", "#!"]),
        (("./orphan",), {}, "UPH_START_NOT_FOUND", ["orphan", "#!"]),
        (("sleep", "1"), {"working_dir": "/no/such"}, "UPH_START_NO_DIRECTORY", ["/no/such"]),
        (("sleep", "1"), {"user": "no-such-user"}, "UPH_START_NO_USER", ["'no-such-user'"]),
        (("sleep", "1"), {"group": "no-such"}, "UPH_START_NO_USER", ["'no-such'"]),
        (("sleep", "1"), {"user": "²"}, "UPH_START_NO_USER", ["'²'"]),
        (("sleep", "1"), {"group": "²"}, "UPH_START_NO_USER", ["'²'"]),
    ],
)
@pytest.mark.parametrize("slow", [{}, {"limits": Limits(nice=1)}])
def test_what_can_never_start_is_hopeless_and_says_why(act, command, terms, code, words, slow):
    async def scene(stage):
        await stage.next_supervisor(inherited={"PATH": DEFAULT_PATH})
        (stage.folder / "plain").write_text("#!/bin/sh\n")
        for name, content in {"text": "echo hello\n", "orphan": "#!/no/such/interpreter\n"}.items():
            (stage.folder / name).write_text(content)
            (stage.folder / name).chmod(0o755)
        all_terms = {"working_dir": str(stage.folder), **terms, **slow}
        await stage.driver.start(stage.launch("web", *command, **all_terms))
        failed = await stage.told("StartFailed", "web")
        assert (failed.fault.code, failed.hopeless) == (code, True)
        for word in words:
            assert word in failed.fault.message
        assert stage.kinds("web") == ["StartFailed"]
        assert stage.marked() == []

    act(scene)


def test_a_failed_start_leaves_the_slot_free_and_no_descriptor_behind(act):
    async def scene(stage):
        await stage.start("warm", "sleep", "1000")
        before = held()
        for generation in range(1, 4):
            await stage.driver.start(stage.launch("web", "nonesuch", generation=generation))
        assert held() == before
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=4))
        assert stage.kinds("web") == ["StartFailed"] * 3 + ["Started"]

    act(scene)


def test_an_intent_that_became_no_process_is_taken_back(act):
    """Otherwise every later start would have to look for the process that never was."""

    async def scene(stage):
        script = stage.folder / "text"
        script.write_text("no interpreter")
        script.chmod(0o755)
        await stage.driver.start(stage.launch("web", str(script)))
        assert stage.kinds("web") == ["StartFailed"]
        assert read_record(stage.home.slot_lock("web")) is None
        await stage.next_supervisor()
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert stage.kinds("web") == ["Started"]
        assert stage.driver.scanner.looks == 0

    act(scene)


@pytest.mark.parametrize("free", range(7))
def test_a_start_for_which_there_are_too_few_descriptors_keeps_none_of_them(act, free):
    async def scene(stage):
        await stage.start("warm", "sleep", "1000")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        before = held()
        fillers = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before) + 10, limits[1]))
        try:
            with suppress(OSError):
                while True:
                    fillers.append(os.dup(0))
            for filler in fillers[len(fillers) - free :]:
                os.close(filler)
            await stage.driver.start(stage.launch("web", "sleep", "1000"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for filler in fillers[: len(fillers) - free]:
                os.close(filler)
        if stage.seen("Started", "web"):
            await stage.driver.kill("web")
            await stage.told("Gone", "web")
        stage.driver.remove("web")
        assert held() == before

    act(scene)


def test_no_descriptor_left_to_be_had_is_a_failure_that_may_pass(act):
    async def scene(stage):
        await stage.start("warm", "sleep", "1000")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = len(os.listdir("/proc/self/fd"))
        tight = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        fillers = [os.open("/dev/null", os.O_RDONLY) for _ in range(tight - used)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (tight, limits[1]))
        try:
            await stage.driver.start(stage.launch("web", "sleep", "1000"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for filler in fillers:
                os.close(filler)
        failed = stage.seen("StartFailed", "web")
        assert not failed.hopeless
        assert failed.fault.code == "UPH_START_NO_RESOURCES"
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert stage.kinds("web") == ["StartFailed", "Started"]

    act(scene)


def test_a_shell_command_is_run_by_the_shell(act):
    async def scene(stage):
        pid = await stage.start("web", "echo $((6 * 7)); exec sleep 1000", shell=True)
        await eventually(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\x00")
        fifo = os.open(stage.home.fifo("web"), os.O_RDONLY | os.O_NONBLOCK)
        assert os.read(fifo, 100) == b"42\n"
        os.close(fifo)

    act(scene)


@pytest.mark.accepts("P13", "B-72")
def test_output_of_a_worker_that_ended_waits_in_its_fifo(act):
    told = []

    async def scene(stage):
        await stage.next_supervisor(on_fifo=told.append)
        for generation in (1, 2):
            launch = stage.launch("web", "echo", f"run {generation}", generation=generation)
            await stage.driver.start(launch)
            await eventually(lambda n=generation: stage.kinds("web").count("Exited") == n)
        path = Path(stage.home.fifo("web"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        assert os.read(fifo, 100) == b"run 1\nrun 2\n"
        os.close(fifo)
        assert told == ["web"], "told when the FIFO was made, and only then"

    act(scene)


def test_split_streams_have_a_fifo_each(act):
    async def scene(stage):
        program = "echo out; echo err >&2"
        terms = {"shell": True, "logs": Logs(split=True)}
        await stage.driver.start(stage.launch("web", program, **terms))
        await stage.told("Exited", "web")
        for stream, text in (("out", b"out\n"), ("err", b"err\n")):
            fifo = os.open(stage.home.fifo("web", stream), os.O_RDONLY | os.O_NONBLOCK)
            assert os.read(fifo, 100) == text
            os.close(fifo)

    act(scene)


def test_what_one_run_does_to_its_output_does_not_reach_the_next(act):
    async def scene(stage):
        program = "os.set_blocking(1, False)"
        pid = await stage.start_python("web", program)
        os.kill(pid, signal.SIGKILL)
        await stage.told("Exited", "web")
        pid = await stage.start("web", "sleep", "1000", generation=2)
        flags = Path(f"/proc/{pid}/fdinfo/1").read_text().split()[3]
        assert not int(flags, 8) & os.O_NONBLOCK

    act(scene)


def test_a_worker_can_open_its_output_again(act):
    """Shell scripts write to /dev/stderr; the FIFO must therefore be the worker's own."""

    async def scene(stage):
        await stage.driver.start(
            stage.launch("web", "echo again > /dev/stdout", shell=True, **OTHER_USER)
        )
        assert (await stage.told("Exited", "web")).exit.code == 0

    act(scene)


def test_in_file_mode_output_goes_to_the_log_which_is_rotated_at_a_start_only(act):
    async def scene(stage):
        logs = Logs(mode="file", max_size=5, keep=2)
        for generation in range(1, 5):
            launch = stage.launch(
                "web", "echo", f"run {generation}", generation=generation, logs=logs
            )
            await stage.driver.start(launch)
            await eventually(lambda n=generation: stage.kinds("web").count("Exited") == n)
        log = stage.home.log("web")
        assert log.read_text() == "run 4\n"
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        assert sorted(path.name for path in log.parent.iterdir()) == [
            "web.log",
            "web.log.1",
            "web.log.2",
        ]
        assert log.with_name("web.log.1").read_text() == "run 3\n"
        assert log.with_name("web.log.2").read_text() == "run 2\n"

    act(scene)


def test_python_is_found_by_the_path_of_the_worker_itself(act):
    async def scene(stage):
        folder = stage.folder / "bin"
        folder.mkdir()
        (folder / "special").symlink_to("/bin/sleep")
        path = (("PATH", f"bin:{os.path.dirname(sys.executable)}"),)
        terms = {"working_dir": str(stage.folder), "environment": path}
        await stage.driver.start(stage.launch("web", "special", "1000", **terms))
        assert stage.kinds("web") == ["Started"]

    act(scene)
