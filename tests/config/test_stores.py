from __future__ import annotations

import pytest

from uphold.config.loading import load
from uphold.errors import ConfigInvalid

WORKERS = "[workers]\n"


def settings(tmp_path, text, **environ):
    path = tmp_path / "uphold.toml"
    path.write_text(text + WORKERS)
    return load(path, environ=environ)


def problems(tmp_path, text):
    with pytest.raises(ConfigInvalid) as caught:
        settings(tmp_path, text)
    return [str(problem) for problem in caught.value.problems]


def test_without_a_section_there_is_no_store(tmp_path):
    assert settings(tmp_path, "").store is None


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:p@host/name",
        "mariadb://u@host:3306/name",
        "postgresql://host/name?sslmode=require",
        "postgres://u:p%40x@[::1]:5432/name",
        "mysql+pymysql://host/name",
        "sqlite:////var/lib/copy.db",
    ],
)
def test_addresses_of_three_kinds_of_databases_are_taken(tmp_path, url):
    assert settings(tmp_path, f"[store]\nurl = '{url}'\n").store.url == url


def test_a_file_is_meant_from_the_folder_of_the_configuration(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    found = settings(folder, "[store]\nurl = 'sqlite:///copy.db'\n").store.url
    assert found == f"sqlite:///{tmp_path}/a%20folder/copy.db"


@pytest.mark.parametrize(
    "url", ["", "oracle://h/n", "mysql://host", "mysql://host/", "host/name", "mysql:/host/x"]
)
def test_an_address_that_can_never_work_is_refused_with_its_line(tmp_path, url):
    (problem,) = problems(tmp_path, f"[store]\nurl = '{url}'\n")
    assert "uphold.toml:2" in problem
    assert "url" in problem


@pytest.mark.accepts("S43")
def test_no_message_repeats_the_address(tmp_path):
    (problem,) = problems(tmp_path, "[store]\nurl = 'mysqll://u:canary-password@host/name'\n")
    assert "canary" not in problem


@pytest.mark.accepts("S43", "C-155")
def test_its_password_is_known_as_a_secret_however_it_came_in(tmp_path):
    url = "[store]\nurl = 'mysql://u:${DB_WORD}@host/name'\n"
    found = settings(tmp_path, url, DB_WORD="canary-one")
    assert found.store.url == "mysql://u:canary-one@host/name"
    assert "canary-one" in found.secrets
    quoted = settings(tmp_path, "[store]\nurl='mysql://u:can%40ry/3@h/n'\n").secrets
    assert {"can%40ry/3", "can@ry/3"} <= set(quoted)
    assert "canary-two" in settings(tmp_path, "[store]\nurl='mysql://u:canary-two@h/n'\n").secrets


def test_a_section_without_an_address_says_what_is_missing(tmp_path):
    (problem,) = problems(tmp_path, "[store]\nspool = '1GiB'\n")
    assert "needs a url" in problem


@pytest.mark.accepts("S42")
@pytest.mark.parametrize("name", ["jobs_t; DROP TABLE x", "Jobs", "", "a" * 42, 'x"', "1x"])
def test_names_of_tables_that_would_need_quoting_are_refused(tmp_path, name):
    text = f"[store]\nurl = 'sqlite:///x'\ncritical_tables = ['{name}']\n"
    (problem,) = problems(tmp_path, text)
    assert "uphold.toml:3" in problem


def test_how_much_the_journal_keeps_can_be_said(tmp_path):
    found = settings(tmp_path, "[journal]\nevents_for = '7d'\nmax_size = '64MiB'\n").journal
    assert (found.events_for, found.max_size, found.events_at_most) == (7 * 86400, 2**26, 100_000)
