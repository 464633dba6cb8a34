from __future__ import annotations

import pytest

from config.importing.readers import import_text, terms, verdict
from uphold.config.importing.reports import NotImportable


def program(*lines: str, **more):
    return import_text("supervisord", "\n".join(["[program:web]", "command=x", *lines]), **more)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("directory=/srv", "working_dir", "/srv"),
        ("directory=~/x", "working_dir", "${HOME}/x"),
        ("user=nobody", "user", "nobody"),
        ("umask=007", "umask", "007"),
        ("autostart=no", "autostart", False),
        ("autorestart=1", "restart", "always"),
        ("autorestart=false", "restart", "no"),
        ("autorestart=unexpected", "restart", "on-failure"),
        ("exitcodes=0, 3", "success_exit_codes", [0, 3]),
        ("stopsignal=SIGUSR1", "stop", {"signal": "USR1"}),
        ("stopsignal=9", "stop", {"signal": "KILL"}),
        ("stopwaitsecs=7", "stop", {"grace": "7s"}),
        ("stdout_logfile_maxbytes=512KB", "logs", {"max_size": "512KiB"}),
        ("stdout_logfile_maxbytes=5000", "logs", {"max_size": "5000B"}),
        ("stderr_logfile_backups=2", "logs", {"keep": 2}),
        (
            "environment=A=\"1, 2\",B=x-y,C='${z}'",
            "environment",
            {"A": "1, 2", "B": "x-y", "C": "$${z}"},
        ),
    ],
)
def test_a_setting_is_translated(line, key, value):
    imported = program(line)
    assert terms(imported)[key] == value
    assert verdict(imported, line.partition("=")[0])[0] == "translated"


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("stopasgroup=false", "the whole group"),
        ("startsecs=3", "stable_after"),
        ("startretries=3", "max_restarts"),
        ("stdout_logfile=/var/log/x", "logs are in the home"),
        ("stdout_logfile=/dev/fd/1", "`uphold run` shows it"),
        ("stderr_logfile=NONE", "always kept"),
        ("stdout_logfile_maxbytes=0", "without any limit"),
        ("directory=x", "folder of the file"),
        ("environment=UPHOLD_SLOT=1", "without UPHOLD_SLOT"),
    ],
)
def test_a_setting_is_approximated_and_it_is_said_how(line, how):
    kind, told = verdict(program(line), line.partition("=")[0])
    assert kind == "approximated"
    assert how in told


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("stdout_logfile=syslog", "logger"),
        ("stdout_events_enabled=true", "logs -f"),
        ("stderr_capture_maxbytes=1MB", "--grep"),
        ("serverurl=unix:///x", "socket"),
        ("directory=~bob/x", "in full"),
        ("flavour=mint", "manual"),
        ("depends_on=db", "by hand"),
    ],
)
def test_a_setting_is_lost_and_it_is_said_why(line, why):
    kind, told = verdict(program(line), line.partition("=")[0])
    assert kind == "lost"
    assert why in told


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("autostart=maybe", "true or false"),
        ("numprocs=many", "whole number"),
        ("numprocs=100000", "whole number"),
        ("stopsignal=STOP", "can end a process"),
        ("umask=9", "octal"),
        ("environment=A", "KEY="),
        ('environment=A="x', "closing quotation"),
        ("command=", "empty"),
        ("command='x", "closing quotation"),
        ("directory=%(nobody)s", "is not known"),
        ("stdout_logfile_maxbytes=10", "out of range"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_its_line(line, words):
    with pytest.raises(NotImportable) as found:
        program(line)
    assert found.value.at == "supervisord.conf:3"
    assert words in found.value.text


def test_output_that_goes_to_a_terminal_is_not_kept_without_end():
    imported = program("stdout_logfile=/dev/stdout", "stdout_logfile_maxbytes=0")
    assert "logs" not in terms(imported)
    assert verdict(imported, "stdout_logfile_maxbytes")[0] == "translated"


def test_a_program_without_a_command_is_named():
    with pytest.raises(NotImportable, match=r"\[program:web\] has no command"):
        import_text("supervisord", "[program:web]\nuser=x\n")


def test_a_variable_in_a_command_stays_one_word():
    imported = import_text("supervisord", "[program:a]\ncommand=x %(ENV_Y)s\n")
    assert terms(imported)["command"] == "x ${Y}"
    assert verdict(imported, "command")[0] == "approximated"


def test_own_variables_are_known_where_they_are_asked_for():
    imported = import_text(
        "supervisord", "[program:a]\ncommand=x %(ENV_Y)s\nenvironment=Y=1\ndirectory=/%(ENV_Y)s\n"
    )
    assert terms(imported)["command"] == "x 1"
    assert terms(imported)["working_dir"] == "/1"


def test_processes_that_differ_become_workers_and_others_replicas():
    text = (
        "[program:a]\ncommand=x %(process_num)d\nnumprocs=2\nprocess_name=a%(process_num)d\n"
        "[program:b]\ncommand=x\nnumprocs=2\nprocess_name=b%(process_num)d\n"
        "[program:c]\ncommand=x %(process_num)d\nprocess_name=see.%(process_num)d\n"
    )
    imported = import_text("supervisord", text)
    assert [draft.name for draft in imported.workers] == ["a0", "a1", "b", "see-0"]
    assert terms(imported, "a1")["command"] == "x 1"
    assert terms(imported, "b")["replicas"] == 2


def test_priorities_become_dependencies_on_the_rank_before():
    text = (
        "[program:late]\ncommand=x\n"
        "[program:first]\ncommand=x\npriority=1\n"
        "[program:by-hand]\ncommand=x\npriority=2\nautostart=false\n"
        "[program:second]\ncommand=x\npriority=2\n"
    )
    imported = import_text("supervisord", text)
    assert "depends_on" not in terms(imported, "first")
    assert terms(imported, "second")["depends_on"] == {"first": "started"}
    assert terms(imported, "late")["depends_on"] == {"second": "started"}
    assert verdict(imported, "(priority)")[0] == "approximated"


def test_equal_priorities_order_nothing():
    imported = program("priority=5")
    assert "depends_on" not in terms(imported)
    assert verdict(imported, "priority")[0] == "translated"


def test_hundreds_of_programs_do_not_depend_on_hundreds():
    many = "".join(f"[program:p{n}]\ncommand=x\npriority=1\n" for n in range(30))
    imported = import_text("supervisord", f"{many}[program:z]\ncommand=x\n")
    assert "depends_on" not in terms(imported, "z")


def test_members_of_a_group_are_a_team_and_strangers_are_named():
    text = "[program:a]\ncommand=x %(group_name)s\n[group:g.1]\nprograms=a, b\n"
    imported = import_text("supervisord", text)
    assert terms(imported)["team"] == "g-1"
    assert terms(imported)["command"] == "x g.1"
    assert "no program is called b" in verdict(imported, "programs")[1]
    with pytest.raises(NotImportable, match="names no programs"):
        import_text("supervisord", "[group:g]\npriority=1\n")


def test_included_files_are_read_and_named():
    files = {"/srv/conf.d/a.conf": "[program:a]\ncommand=x\nflavour=mint\n"}
    imported = import_text("supervisord", "[include]\nfiles=/srv/conf.d/*.conf\n", files)
    assert [draft.name for draft in imported.workers] == ["a"]
    assert verdict(imported, "files") == (
        "translated",
        "read: conf.d/a.conf; they became part of this file",
    )
    assert [line.at for line in imported.report if line.setting == "flavour"] == ["conf.d/a.conf:3"]


def test_an_included_file_that_cannot_be_read_is_named():
    files = {"/srv/conf.d/a.conf": None}
    with pytest.raises(NotImportable, match=r"conf\.d/a\.conf cannot be read"):
        import_text("supervisord", "[include]\nfiles=/srv/conf.d/*.conf\n", files)


def test_the_last_of_a_setting_counts_and_the_others_are_named():
    imported = import_text("supervisord", "[program:a]\ncommand=x\n[program:a]\ncommand=y\n")
    assert terms(imported)["command"] == "y"
    assert [line.how for line in imported.report if line.setting == "command"] == [
        "nothing: it is given again at supervisord.conf:4",
        "command",
    ]


def test_the_daemon_s_own_settings_reach_all_programs_or_are_lost():
    text = (
        "[supervisord]\nidentifier=not a name\nminfds=1024\ndirectory=/srv\nuser=root\nnew=1\n"
        "[program:a]\ncommand=x\n"
    )
    imported = import_text("supervisord", text)
    assert imported.defaults["working_dir"] == "/srv"
    assert "limits" not in imported.defaults
    assert imported.supervisor == {}
    assert verdict(imported, "identifier")[0] == "lost"
    assert verdict(imported, "user") == (
        "lost",
        "start uphold as that user; a worker's own `user` needs root",
    )
    assert verdict(imported, "new")[0] == "lost"


def test_a_section_without_settings_is_told_too():
    imported = program("[ctlplugin:x]")
    assert ("[ctlplugin:x]", "lost") in [(line.section, line.verdict) for line in imported.report]


def test_elsewhere_programs_still_run_where_the_file_lies():
    imported = program("directory=x", target="/etc")
    assert terms(imported)["working_dir"] == "/srv/x"
    assert imported.defaults["working_dir"] == "/srv"
