from __future__ import annotations

import os

import pytest

from uphold.config.files import NotRead, Shelf, as_recognised, marks_on_disk, read_bytes


def test_text_comes_without_a_byte_order_mark(tmp_path):
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    assert Shelf().read(str(tmp_path / "f")) == "a = 1\r\n"


def test_marks_tell_whether_a_file_is_still_the_one_that_was_read(tmp_path):
    path = tmp_path / "f"
    path.write_text("one")
    shelf = Shelf()
    shelf.read(str(path))
    path.touch()
    assert marks_on_disk(shelf.marks) == shelf.marks
    path.write_text("two")
    assert marks_on_disk(shelf.marks) != shelf.marks
    path.write_text("one")
    assert marks_on_disk(shelf.marks) == shelf.marks
    path.unlink()
    assert marks_on_disk(shelf.marks) == {str(path): None}


def test_a_file_that_could_not_be_read_is_remembered(tmp_path):
    shelf = Shelf()
    with pytest.raises(NotRead, match="does not exist") as caught:
        shelf.read(str(tmp_path / "none"))
    assert caught.value.missing
    assert shelf.marks == {str(tmp_path / "none"): None}


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/etc/passwd/x", "a\0b"])
def test_strange_paths_are_refused(path):
    with pytest.raises(NotRead):
        read_bytes(path)


def test_a_pipe_nobody_writes_to_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRead, match="regular"):
        read_bytes(str(tmp_path / "pipe"))


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    (tmp_path / "f").write_bytes(b"a\nb\n\xff")
    with pytest.raises(NotRead, match="line 3"):
        Shelf().read(str(tmp_path / "f"))


def test_names_are_short_below_the_current_folder_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert as_recognised(f"{tmp_path}/a/b") == "a/b"
    assert as_recognised(f"{tmp_path}x/b") == f"{tmp_path}x/b"
    monkeypatch.chdir("/")
    assert as_recognised("/etc/x") == "/etc/x"
