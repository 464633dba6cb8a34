from __future__ import annotations

import os

import pytest

from uphold.config.advice import warnings
from uphold.config.loading import load
from uphold.host.processes.hierarchies import Hierarchies


def advice(tmp_path, text, **environ):
    path = tmp_path / "uphold.toml"
    path.write_text(text)
    os.chmod(path, 0o644)
    found = warnings(load(path, environ=environ), environ=environ)
    return [(problem.at.rpartition("/")[2], problem.text) for problem in found]


def test_a_sound_configuration_gets_none(tmp_path):
    text = "[workers.a]\ncommand = 'sh -c true'\n[workers.b]\ncommand = 'no | such'\nshell = true\n"
    assert advice(tmp_path, text, PATH=os.environ["PATH"]) == []


@pytest.mark.accepts("B-95")
def test_programs_that_are_not_on_the_path(tmp_path):
    [(at, text)] = advice(
        tmp_path, "[workers.a]\n\ncommand = 'no-such-program'\n", PATH="/bin:/usr/bin"
    )
    assert at == "uphold.toml:3"
    assert "'no-such-program' is not on PATH (/bin:/usr/bin)" in text


@pytest.mark.accepts("B-95")
def test_the_workers_own_path_counts(tmp_path):
    own = tmp_path / "bin"
    own.mkdir()
    (own / "mine").write_text("#!/bin/sh\n")
    text = f"[workers.a]\ncommand = 'mine'\nenvironment = {{ PATH = '{own}' }}\n"
    assert "not on PATH" in advice(tmp_path, text, PATH="/bin")[0][1]
    os.chmod(own / "mine", 0o755)
    (tmp_path / "bin2").mkdir()
    assert advice(tmp_path, text.replace("/bin'", "/bin:/x'"), PATH="/bin") == []


def test_programs_with_a_path_are_looked_for_from_the_working_folder(tmp_path):
    (tmp_path / "run").write_text("#!/bin/sh\n")
    [(_, text)] = advice(tmp_path, "[workers.a]\ncommand = './run'\n")
    assert "not executable" in text
    [(_, text)] = advice(tmp_path, "[workers.a]\ncommand = './none'\n")
    assert "there is no file" in text


def test_missing_folders_and_accounts(tmp_path):
    text = "[uphold.workers.a]\ncommand = 'sh'\nworking_dir = 'gone'\nuser = 'nobody-here'\ngroup = 'none-here'\n"
    found = advice(tmp_path, text)
    assert [at for at, _ in found] == ["uphold.toml:3", "uphold.toml:4", "uphold.toml:5"]
    assert "does not exist" in found[0][1]
    assert "no user 'nobody-here'" in found[1][1]
    assert "no group 'none-here'" in found[2][1]


def test_numbers_of_users_need_no_name(tmp_path):
    text = "[workers.a]\ncommand = 'sh'\nuser = 54321\ngroup = 54321\n"
    assert advice(tmp_path, text, PATH="/bin") == []


def test_what_only_looks_like_a_number_is_none(tmp_path):
    text = "[inbox]\nshare = '/x'\nowners = ['²']\n[workers.a]\ncommand = 'sh'\nuser = '²'\ngroup = '²'\n"
    found = [said for _, said in advice(tmp_path, text, PATH="/bin")]
    assert len([each for each in found if "no user '²'" in each]) == 2
    assert len([each for each in found if "no group '²'" in each]) == 1


def test_waiting_for_a_worker_that_may_not_run(tmp_path):
    text = "[workers.a]\ncommand = 'sh'\nenabled = false\n[workers.b]\ncommand = 'sh'\ndepends_on = ['a']\n"
    [(at, text)] = advice(tmp_path, text, PATH="/bin")
    assert at == "uphold.toml:6"
    assert "waits for 'a'" in text


def test_groups_that_cannot_be_made_here(tmp_path, monkeypatch):
    text = (
        "[workers.a]\ncommand = 'sh'\ncontainment = 'group'\n"
        "[workers.b]\ncommand = 'sh'\nlimits = { processes = 9 }\n"
    )
    monkeypatch.setattr("uphold.config.advice._hierarchies", Hierarchies)
    [(at, grouped), (below, capped)] = advice(tmp_path, text, PATH="/bin")
    assert (at, below) == ("uphold.toml:3", "uphold.toml:6")
    assert "no control group" in grouped
    assert "limits.processes" in capped
    monkeypatch.setattr(
        "uphold.config.advice._hierarchies", lambda: Hierarchies(tree="/x", pids="/y")
    )
    assert advice(tmp_path, text, PATH="/bin") == []


def test_limits_that_no_group_keeps_here(tmp_path, monkeypatch):
    text = (
        "[workers.a]\ncommand = 'sh'\nlimits = { memory = '1GB', cpu = 1 }\n"
        "[workers.b]\ncommand = 'sh'\ncontainment = 'group'\nlimits = { memory = '1GB' }\n"
    )
    monkeypatch.setattr("uphold.config.advice._hierarchies", lambda: Hierarchies(tree="/x"))
    (at, memory), (_, cpu), (_, firm) = advice(tmp_path, text, PATH="/bin")
    assert at == "uphold.toml:3"
    assert "it is watched" in memory
    assert "without that limit" in cpu
    assert "will not start" in firm
    monkeypatch.setattr(
        "uphold.config.advice._hierarchies", lambda: Hierarchies(tree="/x", memory="/y", cpu="/z")
    )
    assert advice(tmp_path, text, PATH="/bin") == []


def test_a_file_that_everybody_may_write(tmp_path):
    path = tmp_path / "uphold.toml"
    path.write_text("[workers]\n")
    settings = load(path, environ={})
    os.chmod(path, 0o666)
    os.chmod(tmp_path, 0o777)
    texts = [problem.text for problem in warnings(settings, environ={})]
    assert len(texts) == 2
    assert "may write" in texts[0]
    assert "may replace" in texts[1]
    os.chmod(path, 0o644)
    os.chmod(tmp_path, 0o1777)
    assert warnings(settings, environ={}) == []


def test_a_python_worker_whose_module_cannot_be_found(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "good.py").touch()
    text = "[workers.a]\npython = '{}:A'\n"
    for target in ("app", "app.good", "email.mime", "uphold"):
        assert advice(tmp_path, text.format(target)) == []
    for target in ("app.gone", "gone", "gone.gone"):
        [(at, found)] = advice(tmp_path, text.format(target))
        assert at == "uphold.toml:2"
        assert f"there is no module '{target}' in {tmp_path}, nor installed." in found


def test_an_owner_of_flags_whom_nobody_knows(tmp_path):
    text = "[workers]\n[inbox]\nshare = '.'\nowners = ['root', 7, 'no-such-user-here']\n"
    [(at, found)] = advice(tmp_path, text)
    assert at == "uphold.toml:4"
    assert "no user 'no-such-user-here'" in found


def test_a_checkout_from_which_nobody_is_said_to_run(tmp_path):
    text = "[workers.a]\ncommand = 'sh'\n[deploy]\nrepo = '.'\n"
    [(at, found)] = advice(tmp_path, text)
    assert at == "uphold.toml:3"
    assert "stops nobody" in found
    assert advice(tmp_path, f"{text}workers = ['a']\n") == []
