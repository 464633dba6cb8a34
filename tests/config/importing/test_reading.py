from __future__ import annotations

import os

import pytest

from uphold.config.importing.reading import import_file
from uphold.errors import UpholdError


def refused(path, **more):
    with pytest.raises(UpholdError) as found:
        import_file(str(path), **more)
    assert found.value.remedy
    return found.value.code, found.value.exit_code, found.value.message


def test_a_file_that_is_not_there_or_no_text_is_unreadable(tmp_path):
    assert refused(tmp_path / "Procfile")[:2] == ("UPH_IMPORT_UNREADABLE", 6)
    assert refused(tmp_path)[:2] == ("UPH_IMPORT_UNREADABLE", 6)
    (tmp_path / "Procfile").write_bytes(b"web: \xff\xfe\n")
    assert "not UTF-8" in refused(tmp_path / "Procfile")[2]
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe")[:2] == ("UPH_IMPORT_UNREADABLE", 6)


def test_a_file_of_no_known_kind_asks_for_one(tmp_path):
    file = tmp_path / "compose.yaml"
    file.write_text("services: {}\n")
    assert refused(file)[:2] == ("UPH_IMPORT_UNKNOWN", 2)
    assert refused(file, kind="process-compose")[:2] == ("UPH_IMPORT_EMPTY", 6)


def test_a_file_that_cannot_be_parsed_names_the_line(tmp_path):
    file = tmp_path / "supervisord.conf"
    file.write_text("[program:a]\ncommand=x\nwhat\n")
    code, exit_code, message = refused(file)
    assert (code, exit_code) == ("UPH_IMPORT_INVALID", 6)
    assert "supervisord.conf:3" in message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("supervisord.conf", "[supervisord]\n"),
        ("Procfile", "# nothing\n"),
        ("process-compose.yaml", ""),
        ("x.service", "[Unit]\nDescription=x\n"),
    ],
)
def test_a_file_without_programs_is_empty(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert refused(tmp_path / name)[:2] == ("UPH_IMPORT_EMPTY", 6)


def test_an_include_that_matches_nothing_is_what_makes_it_empty(tmp_path):
    (tmp_path / "supervisord.conf").write_text("[include]\nfiles=conf.d/*.conf\n")
    with pytest.raises(UpholdError) as found:
        import_file(str(tmp_path / "supervisord.conf"))
    assert "no file matches" in found.value.remedy


def test_files_beside_it_are_found_from_anywhere(tmp_path, monkeypatch):
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "b.conf").write_text("[program:b]\ncommand=y\n")
    (tmp_path / "supervisord.conf").write_text("[include]\nfiles=%(here)s/conf.d/*.conf\n")
    monkeypatch.chdir("/")
    imported = import_file(str(tmp_path / "supervisord.conf"))
    assert [draft.name for draft in imported.workers] == ["b"]
    (tmp_path / "a.service").write_text("[Service]\nExecStart=/x\nNice=1\n")
    (tmp_path / "a.service.d").mkdir()
    (tmp_path / "a.service.d" / "n.conf").write_text("[Service]\nNice=2\n")
    (worker,) = import_file(str(tmp_path / "a.service")).workers
    assert worker.terms["limits"] == {"nice": 2}


def test_for_a_configuration_elsewhere_paths_are_written_in_full(tmp_path):
    (tmp_path / "Procfile").write_text("web: x\n")
    (tmp_path / ".env").write_text("A=1\n")
    imported = import_file(str(tmp_path / "Procfile"), target="/")
    assert imported.defaults["working_dir"] == str(tmp_path)
    assert imported.defaults["env_file"] == str(tmp_path / ".env")
