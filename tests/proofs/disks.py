"""Small disks for proofs, made of memory; only root can have them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from uphold.testing.waiting import until


def why_not(*programs):
    """Say why this machine cannot mount disks for a proof; None if it can."""
    if os.geteuid() != 0:
        return "only root can mount a disk"
    lost = [name for name in programs if not shutil.which(name, path=_paths())]
    if lost:
        return f"{', '.join(lost)} is not installed (tools/provide.sh)"
    with tempfile.TemporaryDirectory() as folder:
        if _run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder).returncode:
            return "mounting is not allowed here"
        _run("umount", folder)
    return None


def why_not_loop():
    """Say why an image cannot be mounted; None if it can."""
    reason = why_not("mkfs.ext4", "losetup")
    if reason:
        return reason
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image"
        make_ext4(image, 8)
        try:
            with mounted("-o", "loop", image, Path(folder) / "disk"):
                return None
        except OSError as problem:
            return f"there are no loop devices: {problem}"


def make_ext4(image, mebibytes):
    """Make an image with an empty file system, journal included.

    Blocks of 4 KiB, as every disk beyond the smallest has: with smaller ones a full disk ends
    whoever maps a file of it into memory, and SQLite does.
    """
    with image.open("wb") as opened:
        opened.truncate(mebibytes << 20)
    done = _run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0", image)
    assert done.returncode == 0, done.stderr


def why_not_btrfs():
    """Say why a disk that writes each change to a new place cannot be had here; None if it can."""
    reason = why_not("mkfs.btrfs", "btrfs", "losetup")
    if reason:
        return reason
    with tempfile.TemporaryDirectory() as folder:
        try:
            with limited(Path(folder) / "image", Path(folder) / "disk", 4):
                return None
        except OSError as problem:
            return f"there is no btrfs: {problem}"


@contextmanager
def copying(image, folder):
    """Mount a disk that writes each change to a new place, so that a full one takes none."""
    _make_btrfs(image)
    with mounted("-o", "loop", image, folder):
        yield folder


def fill(folder):
    """Take all the room there is for contents, until it is really gone."""
    for _ in range(2):  # what was promised twice over comes out when it is written
        with suppress(OSError), (folder / "ballast").open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        os.sync()


@contextmanager
def limited(image, folder, mebibytes):
    """Mount a disk with much room, of which only so much may be used: EDQUOT, not ENOSPC.

    By btrfs, as its limits hold for root too; those of ext4 do not.
    """
    top = image.with_name(f"{image.name}.top")
    _make_btrfs(image)
    with mounted("-o", "loop", image, top):
        _demand("btrfs", "quota", "enable", top)
        _demand("btrfs", "subvolume", "create", top / "limited")
        _demand("btrfs", "qgroup", "limit", f"{mebibytes}M", top / "limited")
        with mounted("--bind", top / "limited", folder):
            yield folder


def _make_btrfs(image):
    with image.open("wb") as opened:
        opened.truncate(128 << 20)  # the smallest there is
    _demand("mkfs.btrfs", "-q", "-f", image)


def _demand(*words):
    done = _run(*words)
    if done.returncode:
        raise OSError(done.stderr.strip())


@contextmanager
def mounted(*words):
    """Mount as the words for `mount` say; the last is the folder, made if it is not there."""
    folder = Path(words[-1])
    folder.mkdir(parents=True, exist_ok=True)
    done = _run("mount", *words)
    if done.returncode:
        raise OSError(done.stderr.strip())
    try:
        yield folder
    finally:
        # Whoever used it has been ended, but may need a moment to be gone.
        until(lambda: _run("umount", folder).returncode == 0, 30, f"umount of {folder}")


def remount(folder, options):
    """Change the options of a mounted disk; whoever wrote there may need a moment to be gone."""
    words = ("mount", "-o", f"remount,{options}", folder)
    until(lambda: _run(*words).returncode == 0, 30, f"{options} for {folder}")


def in_memory(folder, prefix):
    """Make a folder in memory where there is any; below `folder` otherwise."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=memory if usable else folder))


def _run(*words):
    found = shutil.which(words[0], path=_paths()) or words[0]
    return subprocess.run([found, *words[1:]], capture_output=True, text=True, check=False)


def _paths():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
