from __future__ import annotations

import pytest

from config.importing.readers import import_text, terms, verdict
from uphold.config.importing.reports import NotImportable


def unit(*lines: str, files=None, **more):
    text = "\n".join(["[Service]", "ExecStart=/bin/x", *lines])
    return import_text("systemd", text, files, **more)


def command(*lines: str):
    return terms(import_text("systemd", "\n".join(["[Service]", *lines])))["command"]


@pytest.mark.parametrize(
    ("lines", "written"),
    [
        (("ExecStart=/bin/x -a b",), "/bin/x -a b"),
        (('ExecStart=/bin/x "a b"',), ["/bin/x", "a b"]),
        (("ExecStart=/bin/x $$HOME",), ["/bin/x", "$HOME"]),
        (("ExecStart=/bin/x 100%% %n %N %p %t %h",), ["/bin/x", "100%", "shop.service", "shop", "shop", "/run", "${HOME}"]),
        (("Environment=A=1", "ExecStart=/bin/x ${A} $A"), "/bin/x 1 1"),
        (("Environment='A=1 2'", "ExecStart=/bin/x ${A}"), ["/bin/x", "1 2"]),
        (("Environment='A=1 2'", "ExecStart=/bin/x $A"), "exec /bin/x $A"),
        (("ExecStart=/bin/x --a=${A}b $C",), 'exec /bin/x --a="$${A}"b $C'),
        (("ExecStart=:/bin/x ${A}",), ["/bin/x", "$${A}"]),
        (("ExecStart=/bin/x", "ExecStart=", "ExecStart=/bin/y"), "/bin/y"),
        (("Type=oneshot", "ExecStart=/bin/x", "ExecStart=-/bin/y"), "{ /bin/x; } && exec /bin/y"),
        (("Type=oneshot", "ExecStart=/bin/x a ; /bin/y"), "{ /bin/x a; } && exec /bin/y"),
        (("ExecStartPre=-/bin/p 'a b'", "ExecStart=/bin/x"), "{ /bin/p 'a b' || true; } && exec /bin/x"),
    ],
)  # fmt: skip
def test_a_command_means_the_same_as_there(lines, written):
    assert command(*lines) == written


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("Type=notify", "ready", {"notify": True}),
        ("WorkingDirectory=-/srv", "working_dir", "/srv"),
        ("WorkingDirectory=~", "working_dir", "${HOME}"),
        ('Environment=A=1 "B=x y"', "environment", {"A": "1", "B": "x y"}),
        ("PassEnvironment=LANG TZ", "pass_environment", ["LANG", "TZ"]),
        ("UMask=0077", "umask", "0077"),
        ("KillSignal=2", "stop", {"grace": "90s", "signal": "INT"}),
        ("TimeoutStopSec=1min 30s", "stop", {"grace": "90s"}),
        ("TimeoutStopSec=infinity", "stop", {"grace": "86400s"}),
        ("TimeoutSec=500ms", "stop", {"grace": "500ms"}),
        ("LimitNOFILE=1024:4096", "limits", {"nofile": 1024}),
        ("Nice=-5", "limits", {"nice": -5}),
        ("MemoryMax=512M", "limits", {"memory": "512MiB"}),
        ("CPUQuota=150%", "limits", {"cpu": 1.5}),
        ("WatchdogSec=10", "heartbeat", {"stale_after": "10s"}),
        ("SuccessExitStatus=TEMPFAIL 143", "success_exit_codes", [0, 75, 143]),
        ("ExecStop=/bin/stop", "stop", {"grace": "90s", "command": ["/bin/stop"]}),
        (
            "ExecStop=/bin/stop $A",
            "stop",
            {"grace": "90s", "command": ["sh", "-c", "/bin/stop $A"]},
        ),
        ("StandardOutput=null", "logs", {"keep": 0, "max_size": "1MB"}),
        ("Type=forking", "enabled", False),
    ],
)
def test_a_setting_becomes_a_key(line, key, value):
    assert terms(unit(line))[key] == value


@pytest.mark.parametrize(
    ("line", "kind", "how"),
    [
        ("Type=simple", "translated", "up once"),
        ("Type=oneshot", "translated", "completed"),
        ("Type=dbus", "approximated", "not waited for"),
        ("Type=forking", "lost", "foreground"),
        ("KillMode=control-group", "translated", "everything"),
        ("KillMode=mixed", "approximated", "whole group"),
        ("KillMode=none", "lost", "left running"),
        ("RemainAfterExit=yes", "translated", "exited"),
        ("ExecReload=/bin/kill -HUP $MAINPID", "lost", "uphold signal NAME HUP"),
        ("ExecReload=/bin/reload", "lost", "by hand"),
        ("ExecStartPost=/bin/x", "lost", "depends_on"),
        ("ExecStop=/bin/kill $MAINPID", "lost", "MAINPID"),
        ("PrivateTmp=yes", "lost", "sandbox"),
        ("StateDirectory=shop", "lost", "folders"),
        ("LimitCORE=0", "lost", "limit"),
        ("LimitNOFILE=infinity", "lost", "number"),
        ("MemoryMax=half", "lost", "limits.memory"),
        ("MemoryMax=5K", "lost", "limits.memory"),
        ("CPUQuota=x", "lost", "limits.cpu"),
        ("TasksMax=5", "lost", "limits.processes"),
        ("StandardOutput=file:/x", "lost", "home"),
        ("StandardError=journal", "approximated", "uphold logs"),
        ("RestartPreventExitStatus=3", "lost", "success_exit_codes"),
        ("WatchdogSec=0", "translated", "off"),
        ("Environment=UPHOLD_SLOT=1", "approximated", "UPHOLD_SLOT"),
        ("RestartSec=5", "translated", "not restarted"),
        ("Flavour=mint", "lost", "no such setting"),
        ("SyslogIdentifier=%q", "lost", "%q is not known"),
        ("[Unit]\nDocumentation=man:x", "translated", "labels.documentation"),
        ("[Unit]\nDefaultDependencies=no", "lost", "systemd"),
        ("[Unit]\nConditionPathExists=/x", "lost", "before a start"),
        ("[Unit]\nRequires=db.service", "lost", "depends_on"),
        ("[Install]\nAlias=x.service", "lost", "names"),
        ("[Install]\nWantedBy=multi-user.target", "approximated", "autostart"),
        ("[X-Own]\nThing=1", "lost", "no section"),
    ],
)
def test_the_verdict_says_what_became_of_it(line, kind, how):
    found = verdict(unit(line), line.rpartition("\n")[2].partition("=")[0])
    assert found[0] == kind
    assert how in found[1]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((), {"restart": "no"}),
        (("Restart=always",), {"restart": "always", "max_restarts": 5, "stable_after": "10s"}),
        (("Restart=always", "RestartSec=5"), {"restart": "always", "max_restarts": "unlimited"}),
        (("Restart=on-abort",), {"restart": "on-failure", "max_restarts": 5, "stable_after": "10s"}),
        (("Restart=always", "[Unit]", "StartLimitIntervalSec=0"), {"restart": "always", "max_restarts": "unlimited"}),
        (("Restart=always", "RestartMaxDelaySec=1min", "RestartSteps=5"), {"restart": "always", "max_restarts": 5, "stable_after": "10s"}),
    ],
)  # fmt: skip
def test_restarts_are_read_together(lines, found):
    made = terms(unit(*lines))
    keys = ("restart", "max_restarts", "stable_after")
    assert {key: made[key] for key in keys if key in made} == found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Restart=often", "Restart must be"),
        ("RestartSec=soon", "must be a time"),
        ("[Unit]\nStartLimitBurst=x", "whole number"),
        ("KillSignal=STOP", "can end"),
        ("UMask=x", "octal"),
        ("Nice=50", "Nice"),
        ("LimitNOFILE=x", "LimitNOFILE"),
        ("Environment=A", "KEY=value"),
        ("Environment='A=1", "closing quotation"),
        ("ExecStart='x", "closing quotation"),
        ("ExecStartPre=-", "is empty"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(line, words):
    with pytest.raises(NotImportable, match=words):
        unit(line)


def test_a_template_needs_an_instance():
    with pytest.raises(NotImportable, match="template"):
        unit("Nice=%i", name="x@.service")
    assert unit(name="dir/x@a.service").workers[0].name == "x-a"


def test_an_environment_file_is_taken_if_it_is_there():
    there = unit("EnvironmentFile=-/e", "EnvironmentFile=/f", files={"/e": "A=1"})
    assert terms(there)["env_file"] == "/e"
    assert [line.verdict for line in there.report if line.setting == "EnvironmentFile"] == [
        "approximated",
        "lost",
    ]
    assert "env_file" not in terms(unit("EnvironmentFile=-/e"))


def test_drop_ins_add_to_the_unit():
    files = {"shop.service.d/a.conf": "[Service]\nNice=3\n"}
    imported = unit("Nice=1", files=files)
    assert terms(imported)["limits"] == {"nice": 3}
    assert [line.how for line in imported.report if line.setting == "Nice"] == [
        "nothing: shop.service.d/a.conf:2 replaces it",
        "limits.nice",
    ]
    with pytest.raises(NotImportable, match="cannot be read"):
        unit(files={"shop.service.d/a.conf": None})


def test_a_unit_that_runs_nothing_gives_no_worker():
    assert import_text("systemd", "[Service]\nType=oneshot\n").workers == ()
