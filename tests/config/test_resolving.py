from __future__ import annotations

import sys

import pytest

from uphold.config.loading import examine, load
from uphold.core.specs import Kind, Need, Probe, StopRule


def worker(tmp_path, text, **environ):
    (tmp_path / "uphold.toml").write_text(text)
    return load(tmp_path / "uphold.toml", environ=environ).workers[-1]


def test_tables_are_merged_with_the_defaults_and_everything_else_replaces_them(tmp_path):
    spec = worker(
        tmp_path,
        """
[defaults]
stop = { signal = "INT", grace = "5s" }
environment = { A = "1", B = "1" }
success_exit_codes = [0, 1]
labels = { a = "1" }
[workers.x]
command = "x"
stop.grace = "9s"
environment = { B = "2" }
success_exit_codes = [2]
""",
    )
    assert spec.stop == StopRule(signal="INT", grace=9.0)
    assert spec.environment == (("A", "1"), ("B", "2"))
    assert spec.success_exit_codes == (2,)
    assert spec.labels == (("a", "1"),)


def test_an_env_file_comes_below_every_declared_variable(tmp_path):
    (tmp_path / "e").write_text("A=file\nB=file\nC=file\n")
    text = "[defaults]\nenv_file = 'e'\nenvironment = { A = 'd', B = 'd' }\n"
    spec = worker(tmp_path, text + "[workers.x]\ncommand = 'x'\nenvironment = { A = 'w' }\n")
    assert spec.environment == (("A", "w"), ("B", "d"), ("C", "file"))


def test_a_default_dependency_spares_the_worker_it_names(tmp_path):
    text = (
        "[defaults]\ndepends_on = ['db']\n[workers.x]\ncommand = 'x'\n[workers.db]\ncommand = 'x'\n"
    )
    (tmp_path / "uphold.toml").write_text(text)
    x, db = load(tmp_path / "uphold.toml", environ={}).workers
    assert [name for name, _ in x.depends_on] == ["db"]
    assert db.depends_on == ()


@pytest.mark.accepts("B-74", "C-020")
def test_paths_are_taken_from_the_folder_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    text = "[workers.x]\ncommand = './run'\n"
    assert worker(tmp_path, text).working_dir == str(tmp_path)
    assert worker(tmp_path, text + "working_dir = 'a/./b'\n").working_dir == f"{tmp_path}/a/b"
    assert worker(tmp_path, text + "working_dir = '/srv'\n").working_dir == "/srv"
    assert worker(tmp_path, text).command == ("./run",)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("a  b\tc", ("a", "b", "c")), ("a 'b c' d\\ e", ("a", "b c", "d e")),
        ("run --name=${NAME}", ("run", "--name=two words 'quoted")), ("${NAME} x", ("two words 'quoted", "x")),
        ("run '${NAME}'", ("run", "two words 'quoted")), ('a $$X "$$Y"', ("a", "$X", "$Y")),
        ("a # b", ("a", "#", "b")), ("run ${GONE:} x", ("run", "", "x")),
    ],
)  # fmt: skip
def test_a_variable_stays_one_word_of_a_command(tmp_path, command, words):
    text = f'[workers.x]\ncommand = """{command}"""\n'.replace("\\", "\\\\")
    assert worker(tmp_path, text, NAME="two words 'quoted").command == words


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_command_is_split_by_how_it_is_written_not_by_how_another_reads(tmp_path, order):
    commands = {"a": "${NAME}", "b": "echo hi there"}
    text = "".join(f"[workers.{name}]\ncommand = '{commands[name]}'\n" for name in order)
    (tmp_path / "uphold.toml").write_text(text)
    workers = load(tmp_path / "uphold.toml", environ={"NAME": "echo hi there"}).workers
    assert {each.name: each.command for each in workers} == {
        "a": ("echo hi there",),
        "b": ("echo", "hi", "there"),
    }


def test_a_label_that_reads_like_a_dependency_is_not_taken_for_it(tmp_path):
    text = (
        "[workers.db]\ncommand = 'db'\nlive = { tcp = 1 }\nlabels = { db = 'healthy' }\n"
        "[workers.web]\ncommand = 'web'\ndepends_on = { db = 'healthy' }\n"
    )
    [(_, need)] = worker(tmp_path, text).depends_on
    assert need is Need.HEALTHY


def test_a_command_that_turns_out_empty_is_refused(tmp_path):
    (tmp_path / "uphold.toml").write_text("[workers.x]\ncommand = '\"${EMPTY}\" x'\n")
    [problem] = examine(tmp_path / "uphold.toml", environ={"EMPTY": ""}).problems
    assert "empty after substitution" in problem.text


def test_a_default_command_is_a_command(tmp_path):
    spec = worker(tmp_path, "[defaults]\ncommand = 'x y'\n[workers.x]\n")
    assert spec.command == ("x", "y")


def test_the_supervisor_is_called_like_the_host_unless_told(tmp_path):
    (tmp_path / "uphold.toml").write_text("[workers]\n")
    found = load(tmp_path / "uphold.toml", environ={})
    assert found.supervisor.name
    assert found.workers == ()


@pytest.mark.accepts("B-42")
def test_quarantine_is_kept_as_declared_and_inherited(tmp_path):
    text = "[defaults]\nquarantined = true\n[workers.a]\ncommand='x'\n[workers.b]\ncommand='x'\n"
    (tmp_path / "uphold.toml").write_text(text + "quarantined = false\n")
    a, b = load(tmp_path / "uphold.toml", environ={}).workers
    assert (a.quarantined, b.quarantined) == (True, False)


def test_a_worker_cannot_take_the_log_of_uphold_itself(tmp_path):
    path = tmp_path / "uphold.toml"
    path.write_text("[workers.runtime]\ncommand = 'x'\n[workers.supervisor]\ncommand = 'x'\n")
    from uphold.config.loading import examine

    found = examine(path, environ={}).problems
    assert [problem.at.rpartition(":")[2] for problem in found] == ["1", "3"]


@pytest.mark.accepts("D-14")
def test_a_python_worker_is_a_class_hosted_by_the_runner_of_the_same_interpreter(tmp_path):
    spec = worker(tmp_path, "[workers.x]\npython = 'app.${PART}:A.B'\n", PART="indexer")
    assert (spec.kind, spec.python) == (Kind.PYTHON, "app.indexer:A.B")
    assert spec.command == (sys.executable, "-P", "-m", "uphold.runner", "app.indexer:A.B")
    assert not spec.shell
    assert spec.ready == Probe(way="notify")
    text = "[workers.x]\npython = 'app:A'\nready = { tcp = '127.0.0.1:80' }\n"
    assert worker(tmp_path, text).ready.way == "tcp"


def test_what_a_worker_runs_replaces_what_workers_run_by_default(tmp_path):
    text = "[defaults]\ncommand = 'run'\nshell = true\n[workers.x]\npython = 'app:A'\n"
    spec = worker(tmp_path, text)
    assert (spec.python, spec.shell) == ("app:A", False)
    text = "[defaults]\npython = 'app:A'\n[workers.x]\ncommand = 'run'\n"
    spec = worker(tmp_path, text)
    assert (spec.kind, spec.python, spec.command) == (Kind.PROCESS, None, ("run",))
    spec = worker(tmp_path, "[defaults]\npython = 'app:A'\n[workers.x]\n")
    assert (spec.kind, spec.python) == (Kind.PYTHON, "app:A")


@pytest.mark.accepts("D-15")
@pytest.mark.parametrize(
    ("value", "there"),
    [("", False), ("false", False), ("No", False), ("off", False), ("0", False), (" ", False),
     ("true", True), ("a-token", True), ("1", True)],
)  # fmt: skip
def test_a_worker_is_there_only_when_its_variable_says_so(tmp_path, value, there):
    text = "[workers.a]\ncommand = 'a'\n[workers.b]\ncommand = 'b'\nwhen = '${TOKEN:}'\n"
    (tmp_path / "uphold.toml").write_text(text)
    settings = load(tmp_path / "uphold.toml", environ={"TOKEN": value})
    assert [spec.name for spec in settings.workers] == (["a", "b"] if there else ["a"])
    assert settings.left_out == (() if there else ("b",))


def test_a_condition_may_be_plain_and_by_default(tmp_path):
    text = "[defaults]\nwhen = false\n[workers.a]\ncommand = 'a'\n[workers.b]\ncommand = 'b'\nwhen = true\n"
    assert worker(tmp_path, text).name == "b"


def test_nobody_can_come_after_a_worker_that_is_left_out(tmp_path):
    text = "[workers.a]\ncommand = 'a'\ndepends_on = ['b']\n[workers.b]\ncommand = 'b'\nwhen = ''\n"
    (tmp_path / "uphold.toml").write_text(text)
    [problem] = examine(tmp_path / "uphold.toml", environ={}).problems
    assert "comes after 'b', which its 'when' leaves out" in problem.text
