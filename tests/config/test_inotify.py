from __future__ import annotations

import os
import select

import pytest

from leaks import held
from uphold.config.inotify import FolderNews, entries_of


def hears(news):
    poll = select.poll()
    poll.register(news.descriptor, select.POLLIN)
    return bool(poll.poll(2000)) and news.concerns_us()


@pytest.fixture
def news(tmp_path):
    found = FolderNews([(str(tmp_path), "config")])
    yield found
    found.close()


def test_news_about_the_watched_name_only(tmp_path, news):
    (tmp_path / "other").write_text("x")
    assert not hears(news)
    (tmp_path / "config").write_text("x")
    assert hears(news)
    assert not news.concerns_us()


@pytest.mark.parametrize("how", ["replace", "delete", "chmod", "write", "folder"])
def test_every_way_in_which_a_file_changes(tmp_path, how):
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "config").write_text("x")
    (folder / "new").write_text("y")
    news = FolderNews([(str(folder), "config")])
    try:
        {
            "replace": lambda: os.replace(folder / "new", folder / "config"),
            "delete": lambda: os.unlink(folder / "config"),
            "chmod": lambda: os.chmod(folder / "config", 0o600),
            "write": lambda: (folder / "config").write_text("z"),
            "folder": lambda: os.rename(folder, tmp_path / "g"),
        }[how]()
        assert hears(news)
    finally:
        news.close()


def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path):
    before = len(held())
    with pytest.raises(OSError, match="cannot watch"):
        FolderNews([(str(tmp_path / "none"), "x")])
    assert len(held()) == before


def test_every_link_on_the_way_counts(tmp_path):
    base = os.path.realpath(tmp_path)
    os.makedirs(f"{base}/v1")
    os.symlink("v1", f"{base}/..data")
    os.symlink("..data/config", f"{base}/config")
    os.symlink(f"{base}", f"{base}/v1/up")
    assert entries_of(f"{base}/config") == [
        (base, "config"),
        (base, "..data"),
        (f"{base}/v1", "config"),
    ]
    assert entries_of(f"{base}/v1/up/x/../y") == [(f"{base}/v1", "up"), (base, "y")]


def test_links_in_a_circle_end(tmp_path):
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    assert len(entries_of(str(tmp_path / "a"))) <= 50
