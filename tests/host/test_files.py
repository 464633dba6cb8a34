from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys

import pytest

from proofs import disks
from uphold.errors import HostFailure
from uphold.host.files import (
    NETWORK_FILE_SYSTEMS,
    is_kept_in_place,
    keep_in_place,
    make_private_folder,
    network_filesystem,
    refuse_network_filesystem,
    user_name,
    write_atomically,
)


@pytest.mark.accepts("R-01", "P9")
def test_a_file_is_replaced_whole_and_private(tmp_path):
    path = tmp_path / "state.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new" * 100_000)
    assert path.read_bytes() == b"new" * 100_000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["state.json"]


def test_the_mode_is_as_asked_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "shared", b"x", mode=0o644)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o644


@pytest.mark.accepts("R-02", "B-10")
def test_a_reader_never_sees_a_part(tmp_path):
    path = tmp_path / "state"
    sizes = (10, 300_000)
    write_atomically(path, b"0" * sizes[0])
    program = (
        "import sys\nfrom pathlib import Path\nfrom uphold.host.files import write_atomically\n"
        f"path = Path({str(path)!r})\n"
        f"for turn in range(150): write_atomically(path, (b'0' * {sizes[0]}, b'1' * {sizes[1]})[turn % 2])"
    )
    writer = subprocess.Popen([sys.executable, "-c", program])
    looks = 0
    while writer.poll() is None:
        content = path.read_bytes()
        assert len(content) in sizes
        assert len(set(content)) == 1
        looks += 1
    assert writer.returncode == 0
    assert looks > 10


@pytest.mark.accepts("R-05", "P9")
def test_a_short_write_is_continued_and_a_failed_one_leaves_the_old_file_and_no_temporary_one(
    tmp_path,
):
    path = tmp_path / "state"
    write_atomically(path, b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_atomically(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.accepts("R-05")
def test_temporary_files_of_dead_writers_go_and_those_of_the_living_stay(tmp_path):
    path = tmp_path / "state"
    program = (
        "import os, sys, time\nfrom pathlib import Path\nfrom uphold.host import files\n"
        "files.os.fsync = lambda _: (print('writing', flush=True), time.sleep(1000))\n"
        f"files.write_atomically(Path({str(path)!r}), b'half')"
    )
    writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b"writing\n"
    write_atomically(path, b"while it lives")
    assert len(os.listdir(tmp_path)) == 2
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    write_atomically(path, b"after its death")
    assert os.listdir(tmp_path) == ["state"]


def test_files_of_others_are_not_taken_for_left_overs(tmp_path):
    for name in (".state.tmp.bak", ".other.1.2.tmp", "state.tmp"):
        (tmp_path / name).touch()
    write_atomically(tmp_path / "state", b"x")
    assert len(os.listdir(tmp_path)) == 4


@pytest.mark.accepts("S03")
def test_a_planted_link_is_replaced_and_its_target_untouched(tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "state").symlink_to(target)
    write_atomically(tmp_path / "state", b"new")
    assert target.read_text() == "precious"
    assert not (tmp_path / "state").is_symlink()


@pytest.mark.accepts("S03")
def test_a_private_folder_is_made_and_kept_private(tmp_path):
    folder = tmp_path / "home"
    make_private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    make_private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.accepts("S03")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722, 0o720])
def test_a_folder_others_could_write_to_is_refused(tmp_path, mode):
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(HostFailure, match="could be written to by other users") as caught:
        make_private_folder(folder)
    assert caught.value.code == "UPH_HOME_UNSAFE"
    assert "chmod 700" in caught.value.remedy


@pytest.mark.accepts("S03")
def test_links_files_and_missing_parents_are_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    for name in ("link", "file", "missing/home"):
        with pytest.raises(HostFailure) as caught:
            make_private_folder(tmp_path / name)
        assert caught.value.code == "UPH_HOME_UNSAFE"
        assert str(tmp_path / name) in caught.value.message


@pytest.mark.accepts("S03")
def test_a_parent_everybody_can_write_to_is_refused_unless_it_is_sticky(tmp_path):
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    with pytest.raises(HostFailure, match="could be swapped"):
        make_private_folder(parent / "home")
    assert not (parent / "home").exists()
    parent.chmod(0o1777)
    make_private_folder(parent / "home")


@pytest.mark.accepts("S03")
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    folder = tmp_path.__class__("/etc")
    if os.geteuid() == 0:
        folder = tmp_path / "theirs"
        folder.mkdir()
        os.chown(folder, 65534, 65534)
    with pytest.raises(HostFailure, match="belongs to user") as refused:
        make_private_folder(folder)
    assert refused.value.exit_code == 4
    assert "sudo -u " in refused.value.remedy


@pytest.mark.accepts("P1")
@pytest.mark.parametrize(
    "f_type", [0x6969, 0xFF534D42, -11317950, 0xFE534D42, 0x65735546, 0x01021997]
)
def test_network_file_systems_are_known_by_their_numbers(f_type):
    assert network_filesystem(f_type) in NETWORK_FILE_SYSTEMS.values()


@pytest.mark.accepts("P1")
@pytest.mark.parametrize("f_type", [0xEF53, 0x01021994, 0x58465342, 0x9123683E, 0x794C7630])
def test_local_file_systems_pass(f_type):
    assert network_filesystem(f_type) is None


@pytest.mark.accepts("P1")
def test_the_file_systems_here_pass_and_a_missing_path_is_an_error(tmp_path):
    refuse_network_filesystem(tmp_path)
    refuse_network_filesystem(tmp_path.__class__("/dev/shm"))
    with pytest.raises(HostFailure, match="cannot tell what file system"):
        refuse_network_filesystem(tmp_path / "missing")


@pytest.mark.accepts("P1")
def test_a_home_on_a_share_is_refused_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(NETWORK_FILE_SYSTEMS, 0x01021994, "a share")  # what /dev/shm lies on
    with pytest.raises(HostFailure, match="lies on a share") as caught:
        refuse_network_filesystem(tmp_path.__class__("/dev/shm"))
    assert "--home" in caught.value.remedy


def test_a_user_without_a_name_is_told_by_number():
    assert user_name(0) == "root"
    assert user_name(2_000_123_456) == "#2000123456"


@pytest.mark.accepts("P14")
def test_files_of_a_btrfs_home_can_be_changed_where_they_lie_when_it_is_full(tmp_path):
    if reason := disks.why_not_btrfs():
        pytest.skip(reason)
    with disks.copying(tmp_path / "image", tmp_path / "disk") as disk:
        home = disk / "home"
        home.mkdir()
        assert not is_kept_in_place(home)
        keep_in_place(home)
        keep_in_place(home)
        assert is_kept_in_place(home)
        for folder in (disk, home):
            (folder / "record").write_bytes(b"old")
            os.truncate(folder / "record", 4096)
            (folder / "record").write_bytes(b"old" * 1000)
        os.sync()
        disks.fill(disk)
        with (
            (disk / "record").open("r+b", buffering=0) as file,
            pytest.raises(OSError, match="No sp"),
        ):
            file.write(b"new")
        with (home / "record").open("r+b", buffering=0) as file:
            file.write(b"new")
        assert (home / "record").read_bytes().startswith(b"newold")


def test_elsewhere_files_lie_as_they_always_did(tmp_path):
    keep_in_place(tmp_path)
    assert is_kept_in_place(tmp_path) in (False, not disks.why_not_btrfs())
    assert not is_kept_in_place(tmp_path / "missing")
