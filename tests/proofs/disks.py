"""Small disks for proofs, made of memory; only root can have them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
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
