from __future__ import annotations

import pytest

from uphold.config.loading import load
from uphold.core.specs import Gate, Layout
from uphold.errors import ConfigInvalid

KEY = "canary-key-of-the-console"


def settings(tmp_path, text, **environ):
    path = tmp_path / "uphold.toml"
    path.write_text(text + "\n[workers.watcher]\ncommand = 'x'\n")
    return load(path, environ=environ)


def problems(tmp_path, text):
    with pytest.raises(ConfigInvalid) as caught:
        settings(tmp_path, text)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.accepts("C-020")
def test_the_share_and_its_layout_come_from_the_file(tmp_path):
    text = "[inbox]\nshare = '${SHARE_ROOT}'\nlayout = { inbox = 'In' }\n"
    inbox = settings(tmp_path, text, SHARE_ROOT="/mnt/s").inbox
    assert inbox.share == "/mnt/s"
    assert inbox.layout == Layout(inbox="In")
    assert len(inbox.paths) == 6
    assert settings(tmp_path, "[inbox]\nshare = 'sub'\n").inbox.share == str(tmp_path / "sub")


@pytest.mark.parametrize("path", ["/etc", "../up", "a/../../b", "", "~x", "a\\\\b"])
def test_nothing_on_the_share_lies_outside_it(tmp_path, path):
    (problem,) = problems(tmp_path, f'[inbox]\nshare = "/s"\nlayout = {{ logs = "{path}" }}\n')
    assert "uphold.toml:3" in problem


@pytest.mark.parametrize("pattern", ["*", "../*.flag", "supervisor_*", "a/b.flag"])
def test_a_pattern_that_could_take_other_files_is_refused(tmp_path, pattern):
    (problem,) = problems(tmp_path, f"[inbox]\nshare = '/s'\npattern = '{pattern}'\n")
    assert "supervisor_*.flag" in problem


@pytest.mark.accepts("S10", "S43")
def test_a_sender_has_a_key_that_is_shown_nowhere_and_what_it_may_do(tmp_path):
    text = "[inbox]\nshare = '/s'\n[inbox.senders.console]\nkey = '${K}'\nmay = ['diagnostics']\n"
    found = settings(tmp_path, text, K=KEY)
    (sender,) = found.inbox.senders
    assert (sender.name, sender.key, sender.may) == ("console", KEY, ("diagnostics",))
    assert KEY in found.secrets
    (problem,) = problems(tmp_path, text.replace("${K}", "short"))
    assert "at least 16" in problem
    assert "short" not in problem


def test_the_checkout_is_found_from_the_file(tmp_path):
    text = "[deploy]\nworkers = ['watcher']\ngate = { healthy_for = '5s' }\n"
    deploy = settings(tmp_path, text).deploy
    assert (deploy.repo, deploy.workers) == (str(tmp_path), ("watcher",))
    assert deploy.gate == Gate(healthy_for=5.0)
    assert deploy.python == "python3"


def test_a_worker_that_does_not_exist_is_named_with_the_nearest(tmp_path):
    (problem,) = problems(tmp_path, "[deploy]\nworkers = ['watchr']\n")
    assert "'watchr'" in problem
    assert "'watcher'" in problem


@pytest.mark.accepts("S35")
@pytest.mark.parametrize("name", ["--upload-pack=x", "a..b", "a b", "", "x.lock", "a@{1}", "-x"])
def test_names_that_git_could_take_for_options_or_ranges_are_refused(tmp_path, name):
    for key in ("remote", "branch"):
        (problem,) = problems(tmp_path, f"[deploy]\n{key} = '{name}'\n")
        assert f"uphold.toml:2: [deploy]: {key}" in problem


def test_sections_without_their_key_say_what_is_missing(tmp_path):
    (problem,) = problems(tmp_path, "[inbox]\npoll_every = '1s'\n")
    assert "needs a share" in problem


def test_owners_are_users_by_name_or_number(tmp_path):
    found = settings(tmp_path, "[inbox]\nshare = '.'\nowners = ['alice', 1004]\n")
    assert found.inbox.owners == ("alice", "1004")
    for wrong in ("'alice'", "[-1]", "['a b']", "[true]"):
        (problem,) = problems(tmp_path, f"[inbox]\nshare = '.'\nowners = {wrong}\n")
        assert "uphold.toml:3" in problem
