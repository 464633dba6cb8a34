"""The kernel's news about folders: real ones, on real file systems."""

from __future__ import annotations

import errno
import os
import resource

import pytest

from inbox.sharing import mounted
from uphold.host import inotify


@pytest.fixture
def watches():
    made = inotify.Watches()
    yield made
    made.close()


def test_what_happens_is_told_with_the_watch_and_the_name(tmp_path, watches):
    assert watches.read() == []
    watch = watches.add(str(tmp_path), inotify.CREATE | inotify.DELETE)
    (tmp_path / "näme").touch()
    (tmp_path / "näme").unlink()
    assert watches.read() == [(watch, inotify.CREATE, "näme"), (watch, inotify.DELETE, "näme")]
    assert watches.read() == []


def test_a_folder_has_one_watch_until_it_is_removed(tmp_path, watches):
    watch = watches.add(str(tmp_path), inotify.CREATE)
    assert watches.add(str(tmp_path), inotify.CREATE) == watch
    watches.remove(watch)
    watches.remove(watch)
    (tmp_path / "x").touch()
    assert watches.read() == [(watch, inotify.IGNORED, "")]
    assert watches.add(str(tmp_path), inotify.CREATE) != watch, "numbers are not used again"


def test_only_folders_can_be_watched(tmp_path, watches):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot watch") as failed:
        watches.add(str(tmp_path / "file"), inotify.CREATE)
    assert failed.value.errno == errno.ENOTDIR


def test_what_there_is_no_more_of_is_said():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open(os.devnull, os.O_RDONLY)
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))  # no more descriptors than now
    try:
        with pytest.raises(OSError, match="inotify is not available") as failed:
            inotify.Watches()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert failed.value.errno == errno.EMFILE


def test_a_system_without_it_is_like_one_that_has_no_more(monkeypatch):
    monkeypatch.setattr(inotify.ctypes, "CDLL", lambda *_, **__: object())
    with pytest.raises(OSError, match="not available"):
        inotify.Watches()


def test_local_file_systems_are_told_of_and_missing_folders_are_no_network(tmp_path):
    assert not inotify.is_untold("/proc")
    assert not inotify.is_untold("/none/such")
    assert not inotify.is_untold(str(tmp_path))


def test_a_file_system_that_others_change_is_known_by_path_and_descriptor(tmp_path, monkeypatch):
    monkeypatch.setattr(inotify, "_UNTOLD", ("tmpfs",))  # one that can be mounted anywhere
    root = tmp_path / "share"
    root.mkdir()
    with mounted(root) as allowed:
        if not allowed:
            pytest.skip("nothing may be mounted here")
        descriptor = os.open(root, os.O_RDONLY)
        try:
            assert inotify.is_untold(str(root))
            assert inotify.is_untold(descriptor)
        finally:
            os.close(descriptor)
