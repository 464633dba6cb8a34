from __future__ import annotations

import pytest


@pytest.mark.accepts("E-25")
def test_a_good_file_is_fine(uphold, home):
    result = uphold("check")
    assert result == (0, f"{home.parent / 'uphold.toml'} is fine: 1 worker.\n", "")
    assert uphold("check", "--json").json["workers"] == ["api"]


@pytest.mark.accepts("P12", "E-25")
def test_every_problem_is_named_at_once(uphold, home):
    file = home.parent / "uphold.toml"
    file.write_text('[workers.api]\ncomand = "x"\n[workers.web]\ncommand = "y"\nreplicas = -1\n')
    result = uphold("check")
    assert result.code == 6
    assert "uphold.toml:2" in result.err
    assert "uphold.toml:5" in result.err
    shown = uphold("check", "--json")
    assert shown.code == 6
    assert (shown.json["ok"], len(shown.json["problems"])) == (False, 2)


def test_the_schema_is_json(uphold):
    assert uphold("check", "--schema").json["title"] == "uphold configuration"


@pytest.mark.parametrize("name", ["uphold.toml", "uphold.yaml"])
@pytest.mark.parametrize("size", [(), ("--full",)])
def test_a_starter_is_written_where_it_is_looked_for_and_is_right(
    uphold, tmp_path, monkeypatch, name, size
):
    monkeypatch.chdir(tmp_path)
    assert uphold("init", "-c", name, *size).code == 0
    assert uphold("check", "-c", name).code == 0


def test_init_replaces_nothing_unless_told(uphold, home):
    file = home.parent / "uphold.toml"
    before = file.read_text()
    result = uphold("init")
    assert result.code == 4
    assert "[UPH_FILE_EXISTS]" in result.err
    assert file.read_text() == before
    assert uphold("init", "--force", "--json").json["file"] == str(file)
    assert file.read_text() != before


@pytest.mark.accepts("E-25")
def test_init_where_one_may_not_write_is_not_permitted(uphold, home, as_somebody_else):
    as_somebody_else(home)
    result = uphold("init", "-c", str(home / "uphold.toml"))
    assert result.code == 4
    assert "cannot write" in result.err
    assert "Permission denied" in result.err


def test_init_where_there_is_no_folder_is_a_failure(uphold, home):
    assert uphold("init", "-c", str(home / "nowhere" / "uphold.toml")).code == 1


@pytest.mark.accepts("D-15")
def test_who_is_left_out_by_a_condition_is_named(uphold, home):
    file = home.parent / "uphold.toml"
    file.write_text(
        "[workers.api]\ncommand = 'true'\n[workers.chat]\ncommand = 'true'\nwhen = ''\n"
    )
    assert uphold("check").out.endswith("is fine: 1 worker; left out by 'when': chat.\n")
    shown = uphold("check", "--json").json
    assert (shown["workers"], shown["left_out"]) == (["api"], ["chat"])
