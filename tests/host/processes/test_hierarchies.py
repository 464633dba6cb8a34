from __future__ import annotations

import os
from pathlib import Path

import pytest

from uphold.host.processes.hierarchies import (
    Hierarchies,
    delegated,
    find_hierarchies,
    is_offered,
    place_all,
)

HYBRID = r"""
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/cpu,pids rw,relatime - cgroup cgroup rw,cpu,pids
41 31 0:38 / /sys/fs/cgroup/uni\040fied rw,relatime shared:4 master:2 - cgroup2 cgroup2 rw,nsdelegate
"""
MEMBERSHIPS = """\
9:name=systemd:/
8:cpu,pids:/jobs
4:memory:/elsewhere
0::/user.slice/me
"""


def test_our_folders_are_found_in_both_versions():
    assert place_all(HYBRID, MEMBERSHIPS) == [
        ("memory", "/sys/fs/cgroup/memory/elsewhere"),
        ("cpu", "/sys/fs/cgroup/cpu,pids/jobs"),
        ("pids", "/sys/fs/cgroup/cpu,pids/jobs"),
        ("", "/sys/fs/cgroup/uni fied/user.slice/me"),
    ]


def test_a_mount_of_a_part_shows_what_lies_in_that_part():
    """As in a container whose mount begins at its own group."""
    mount = "41 31 0:38 {} /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    assert place_all(mount.format("/docker/abc"), "0::/docker/abc") == [("", "/sys/fs/cgroup")]
    assert place_all(mount.format("/docker/abc"), "0::/docker/abc/x") == [("", "/sys/fs/cgroup/x")]
    assert place_all(mount.format("/docker/abc"), "0::/system.slice") == []
    assert place_all(mount.format("/"), "0::/../outside") == []
    assert place_all("", "0::/") == []


def test_a_group_that_was_removed_keeps_its_name():
    mount = "41 31 0:38 / /g rw - cgroup2 cgroup2 rw"
    assert place_all(mount, "0::/gone (deleted)") == [("", "/g/gone")]


def test_a_group_for_the_supervisor_alone_lies_in_the_one_that_is_ours(tmp_path):
    own = tmp_path / "supervisor"
    own.mkdir()
    assert delegated(str(own)) == str(own)
    try:
        os.setxattr(tmp_path, "user.delegate", b"1")
    except OSError:
        pytest.skip("files cannot be marked here")
    assert delegated(str(own)) == str(tmp_path)
    assert delegated(str(tmp_path)) == str(tmp_path)


def test_processes_are_counted_where_the_controller_is_offered(tmp_path):
    controllers = tmp_path / "cgroup.controllers"
    assert not is_offered(str(tmp_path), "pids")
    controllers.write_text("cpu memory hugetlb\n")
    assert not Hierarchies(tree=str(tmp_path)).counts
    controllers.write_text("cpu memory pids\n")
    assert Hierarchies(tree=str(tmp_path)).counts
    assert Hierarchies(pids="/anywhere").counts
    assert not Hierarchies().counts


@pytest.mark.skipif(os.geteuid() != 0, reason="what others may write differs from place to place")
def test_what_is_found_here_can_be_written():
    for folder in filter(None, find_hierarchies()):
        made = Path(folder) / f"uphold-test-{os.getpid()}"
        made.mkdir()
        assert (made / "cgroup.procs").exists()
        made.rmdir()
