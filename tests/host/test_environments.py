from __future__ import annotations

import pytest

from uphold.core.specs import Heartbeat, WorkerSpec
from uphold.errors import HostFailure
from uphold.host.environments import DEFAULT_PATH, Account, Environments, find_program

OURS = {"UPHOLD_WORKER": "web", "UPHOLD_SLOT": "web.2", "UPHOLD_NONCE": "n"}
SENSITIVE = {
    "UPHOLD_HOME": "x",
    "LD_PRELOAD": "x",
    "PYTHONPATH": "x",
    "PYTHONSTARTUP": "x",
    "NOTIFY_SOCKET": "x",
    "WATCHDOG_USEC": "x",
    "LISTEN_FDS": "x",
}


def environment(inherited, account=None, **terms):
    spec = WorkerSpec(name="web", **terms)
    return Environments(inherited).compose(spec, slot="web.2", nonce="n", account=account)


@pytest.mark.accepts("S46")
def test_only_a_short_harmless_list_is_inherited():
    base = {name: name for name in ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ")}
    base |= {"LANGUAGE": "de", "LC_ALL": "C", "LC_TIME": "C", "TMPDIR": "/t"}
    more = {"SECRET": "x", "AWS_TOKEN": "x", "EDITOR": "x", **SENSITIVE}
    assert environment(base | more) == base | OURS


@pytest.mark.accepts("S46")
def test_a_cleared_environment_has_only_what_was_declared():
    got = environment(
        {"PATH": "p", "HOME": "h", "TOKEN": "t", "APP_A": "1"},
        clear_environment=True,
        pass_environment=("TOKEN", "APP_*"),
        environment=(("COLOUR", "blue"),),
        team="front",
    )
    expected = {"TOKEN": "t", "APP_A": "1", "COLOUR": "blue", "UPHOLD_TEAM": "front"}
    assert got == expected | OURS


@pytest.mark.accepts("S46")
def test_a_wide_pattern_does_not_let_sensitive_names_through():
    harmless = {"LDAP": "x", "PYRAMID": "x", "PATH": "p"}
    got = environment(SENSITIVE | harmless, pass_environment=("*", "LD*", "PY*", "L*"))
    assert got == harmless | OURS


@pytest.mark.accepts("S46")
@pytest.mark.parametrize("name", [name for name in SENSITIVE if not name.startswith("UPHOLD")])
def test_a_sensitive_name_that_is_declared_gets_through(name):
    assert environment(SENSITIVE, pass_environment=(name,))[name] == "x"


def test_a_pattern_as_narrow_as_the_sensitive_one_declares_it():
    got = environment(SENSITIVE, pass_environment=("PYTHON*",))
    assert {name for name in got if name in SENSITIVE} == {"PYTHONPATH", "PYTHONSTARTUP"}


@pytest.mark.accepts("P7")
def test_our_own_marks_cannot_be_declared_away():
    got = environment(
        {"UPHOLD_NONCE": "stolen"},
        pass_environment=("UPHOLD_NONCE",),
        environment=(("UPHOLD_NONCE", "forged"), ("UPHOLD_SLOT", "other")),
    )
    assert got["UPHOLD_NONCE"] == "n"
    assert got["UPHOLD_SLOT"] == "web.2"


def test_declared_values_win_over_inherited_ones():
    assert environment({"TZ": "UTC"}, environment=(("TZ", "CET"),))["TZ"] == "CET"


def test_what_describes_the_user_follows_the_user():
    account = Account(uid=7, gid=7, name="app", home="/srv/app", shell="/bin/zsh")
    own = {"HOME": "/srv/app", "USER": "app", "LOGNAME": "app", "SHELL": "/bin/zsh"}
    root = {"PATH": "p", "HOME": "/root", "USER": "root"}
    assert environment(root, account) == {"PATH": "p", **own, **OURS}
    cleared = environment(root, account, clear_environment=True, pass_environment=("HOME",))
    assert cleared == {"HOME": "/srv/app", **OURS}


@pytest.mark.accepts("B-95")
def test_there_is_always_a_path():
    assert environment({})["PATH"] == DEFAULT_PATH
    assert "PATH" not in environment({}, clear_environment=True)


@pytest.mark.accepts("B-95")
def test_programs_are_found_by_the_path_of_the_worker(tmp_path):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "tool").mkdir()
    (tmp_path / "b" / "tool").write_text("not executable")
    (tmp_path / "c" / "tool").write_text("")
    (tmp_path / "c" / "tool").chmod(0o755)
    path = f"{tmp_path}/a:{tmp_path}/b:c"
    assert find_program("tool", path, str(tmp_path)) == f"{tmp_path}/c/tool"
    assert find_program("c/tool", "", str(tmp_path)) == f"{tmp_path}/c/tool"
    assert find_program(f"{tmp_path}/c/tool", "", "/") == f"{tmp_path}/c/tool"
    assert find_program("sh", None, "/").endswith("/sh")


@pytest.mark.accepts("B-95", "B-91")
def test_what_is_not_found_is_named_with_where_it_was_looked_for(tmp_path):
    (tmp_path / "plain").write_text("")
    cases = {
        "nonesuch": ("UPH_START_NOT_FOUND", "/one:/two"),
        "./nonesuch": ("UPH_START_NOT_FOUND", str(tmp_path)),
        "./plain": (
            "UPH_START_NOT_EXECUTABLE",
            str(tmp_path / "plain").replace("/plain", "/./plain"),
        ),
    }
    for command, (code, where) in cases.items():
        with pytest.raises(HostFailure) as caught:
            find_program(command, "/one:/two", str(tmp_path))
        assert caught.value.code == code
        assert where in caught.value.message


def test_the_notify_socket_is_handed_to_every_worker_unless_it_names_another():
    spec = WorkerSpec(name="web")
    inherited = {"NOTIFY_SOCKET": "/run/systemd/notify"}

    def socket_of(spec):
        composed = Environments(inherited, "/run/uphold/x.sock").compose(
            spec, slot="web", nonce="n"
        )
        return composed["NOTIFY_SOCKET"]

    assert socket_of(spec) == "/run/uphold/x.sock"
    named = WorkerSpec(name="web", pass_environment=("NOTIFY_SOCKET",))
    assert socket_of(named) == "/run/systemd/notify"
    declared = WorkerSpec(name="web", environment=(("NOTIFY_SOCKET", "/mine"),))
    assert socket_of(declared) == "/mine"


def test_a_worker_is_told_how_it_is_to_beat():
    by_notify = environment({}, heartbeat=Heartbeat(stale_after=2.5))
    assert by_notify["WATCHDOG_USEC"] == "2500000"
    assert "UPHOLD_BEAT_FILE" not in by_notify
    by_file = environment({}, heartbeat=Heartbeat(file="/srv/beat.json"))
    assert by_file["UPHOLD_BEAT_FILE"] == "/srv/beat.json"
    assert "WATCHDOG_USEC" not in by_file
    assert environment({}) == {"PATH": DEFAULT_PATH} | OURS
