from __future__ import annotations

import json

import pytest

PROCFILE = "web: serve --port 80\nworker: work | tee log\n"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with a Procfile and nothing of uphold."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
    monkeypatch.delenv("UPHOLD_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Procfile").write_text(PROCFILE)
    return tmp_path


def test_the_configuration_is_printed_and_the_report_beside_it(uphold, shop):
    result = uphold("import", "Procfile")
    assert result.code == 0
    assert '[workers.web]\ncommand = "serve --port 80"' in result.out
    assert "translated    Procfile:1  web" in result.err
    assert result.err.endswith(
        "Procfile (procfile): 2 workers; 2 translated, 3 approximated, 0 lost.\n"
    )
    (shop / "uphold.toml").write_text(result.out)
    assert uphold("check").code == 0


def test_quietly_there_is_no_report(uphold, shop):
    assert uphold("import", "Procfile", "-q").err == ""


def test_programs_get_everything_in_one_document(uphold, shop):
    result = uphold("import", "Procfile", "--json")
    found = result.json
    assert result.err == ""
    assert (found["schema"], found["kind"], found["source"], found["file"]) == (
        1,
        "procfile",
        "Procfile",
        None,
    )
    assert found["workers"] == ["web", "worker"]
    assert found["counts"] == {"translated": 2, "approximated": 3, "lost": 0}
    assert found["report"][0] == {
        "at": "Procfile:1",
        "section": "",
        "setting": "web",
        "verdict": "translated",
        "how": "command; it needs no shell",
        "worker": "web",
    }
    assert found["toml"] == uphold("import", "Procfile", "-q").out


def test_a_file_is_written_where_it_was_asked_for_and_nothing_is_replaced(uphold, shop):
    (shop / "sub").mkdir()
    result = uphold("import", "Procfile", "-o", "sub/uphold.toml")
    assert result.code == 0
    assert result.out.startswith(f"wrote {shop / 'sub' / 'uphold.toml'}; ")
    assert f'working_dir = "{shop}"' in (shop / "sub" / "uphold.toml").read_text()
    again = uphold("import", "Procfile", "--output", "sub/uphold.toml")
    assert again.code == 4
    assert "[UPH_FILE_EXISTS]" in again.err
    assert uphold("import", "Procfile", "-o", "sub/uphold.toml", "--force").code == 0


def test_init_from_writes_the_file_beside_the_source(uphold, shop, monkeypatch):
    monkeypatch.chdir("/")
    result = uphold("init", "--from", str(shop / "Procfile"))
    assert result.code == 0
    assert "2 translated" in result.err
    assert uphold("check", "-c", str(shop / "uphold.toml")).code == 0
    assert uphold("init", "--from", str(shop / "Procfile")).code == 4
    other = str(shop / "other.toml")
    shown = uphold("init", "--from", str(shop / "Procfile"), "-c", other, "--json")
    assert (shown.json["file"], shown.json["problems"]) == (other, [])


def test_the_kind_can_be_told(uphold, shop):
    (shop / "list.txt").write_text(PROCFILE)
    assert uphold("import", "list.txt").code == 2
    assert uphold("import", "list.txt", "--as", "procfile", "-q").code == 0
    assert uphold("init", "--from", "list.txt", "--as", "procfile").code == 0


def test_what_is_still_to_be_mended_is_said_at_once(uphold, shop, monkeypatch):
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    (shop / "supervisord.conf").write_text("[program:a]\ncommand=x %(ENV_NOT_SET_ANYWHERE)s\n")
    result = uphold("init", "--from", "supervisord.conf")
    assert result.code == 0
    assert "still to be mended" in result.err
    assert "the variable NOT_SET_ANYWHERE is not set" in result.err


@pytest.mark.parametrize(
    ("name", "text", "code", "exit_code"),
    [
        ("nothing.conf", None, "UPH_IMPORT_UNREADABLE", 6),
        ("what.txt", "hello", "UPH_IMPORT_UNKNOWN", 2),
        ("supervisord.conf", "[program:x]\nwhat\n", "UPH_IMPORT_INVALID", 6),
        ("a.service", "[Service]\nExecStart=/x \0\n", "UPH_IMPORT_INVALID", 6),
        ("supervisord.conf", "[supervisord]\n", "UPH_IMPORT_EMPTY", 6),
    ],
)
def test_what_cannot_be_imported_is_one_error_with_a_remedy(
    uphold, shop, name, text, code, exit_code
):
    if text is not None:
        (shop / name).write_text(text)
    for words in (("import", name), ("init", "--from", name)):
        result = uphold(*words, "--json")
        assert result.code == exit_code
        error = json.loads(result.out)["error"]
        assert error["code"] == code
        assert error["remedy"]
    assert not (shop / "uphold.toml").exists()


@pytest.mark.accepts("S21")
def test_a_hostile_file_cannot_command_the_terminal(uphold, shop):
    (shop / "Procfile").write_text("web: echo \x1b[2J\n")
    result = uphold("import", "Procfile")
    assert "\x1b" not in result.err + result.out
