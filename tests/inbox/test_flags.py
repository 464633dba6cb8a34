"""What a flag file is taken for: an order, a refusal, something unfinished, or not ours."""

from __future__ import annotations

import json

import pytest

from uphold.core.specs import SenderSpec
from uphold.inbox.decoding import LARGEST
from uphold.inbox.flags import (
    Flag,
    Incomplete,
    NotOurs,
    Rejected,
    Rules,
    in_order,
    named_worker,
    read_flag,
    validate_label,
)
from uphold.inbox.handlers import HANDLERS
from uphold.inbox.signing import sign
from uphold.plugins import Handler, Urgency

NOW = 1_770_300_000.0
RULES = Rules(workers=frozenset({"web", "OrionMX"}), fallback=("OrionMX",))
KEY = SenderSpec(name="console", key="a key of sixteen letters or more")


def flag(**changes):
    content = {"task_id": "task_20260205_143015_ab12", "handler": "pause_watcher", **changes}
    return {key: value for key, value in content.items() if value is not ...}


def read(content, name="supervisor_x.flag", rules=RULES, now=NOW, modified=0.0):
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return read_flag(name, raw, rules=rules, now=now, modified=modified)


def code(content, **given):
    found = read(content, **given)
    assert isinstance(found, Rejected), found
    assert found.reason.endswith(".")
    return found.code


@pytest.mark.accepts("C-026", "C-027", "C-028")
def test_a_flag_needs_only_a_task_and_a_handler():
    assert read(flag()) == Flag(
        file="supervisor_x.flag",
        task_id="task_20260205_143015_ab12",
        handler="pause_watcher",
        worker_id="OrionMX",
        rank=(2, 20),
    )


@pytest.mark.accepts("C-026", "C-027", "C-028")
def test_label_and_params_may_be_there_empty_or_null():
    full = flag(label="evening stop", params={}, worker_id="web", issued_at=None)
    assert read(full).label == "evening stop"
    assert read(full).worker_id == "web"
    assert read(flag(label=None, params=None)).label is None
    assert read(flag(handler="rollback_code", params={"commits_back": 3})).params == {
        "commits_back": 3
    }


@pytest.mark.accepts("C-030", "C-040", "C-041", "C-042", "C-043", "C-044")
def test_every_handler_has_its_class_and_number_and_the_emergency_class_stands_first():
    table = [(each.name, each.urgency.name, each.number) for each in HANDLERS]
    assert table == [
        ("update_code", "CODE", 10),
        ("update_code_deps", "CODE", 11),
        ("rollback_code", "CODE", 12),
        ("pause_watcher", "OPERATIONAL", 20),
        ("resume_watcher", "OPERATIONAL", 21),
        ("restart_watcher", "OPERATIONAL", 22),
        ("diagnostics", "DIAGNOSTICS", 30),
        ("verify_db", "DIAGNOSTICS", 31),
    ]
    assert min(Urgency) is Urgency.EMERGENCY
    assert list(Urgency) == sorted(Urgency)


@pytest.mark.accepts("C-030")
@pytest.mark.parametrize("name", [each.name for each in HANDLERS])
def test_every_handler_is_taken_by_its_name(name):
    assert read(flag(handler=name)).handler == name


@pytest.mark.accepts("C-030")
@pytest.mark.parametrize("alias", ["pause", "resume", "restart"])
def test_short_names_mean_the_same(alias):
    assert read(flag(handler=alias)).handler == f"{alias}_watcher"


@pytest.mark.accepts("C-034")
@pytest.mark.parametrize(
    "name", ["halt", "PAUSE_WATCHER", "pause_watcher ", "", None, 7, ["pause"]]
)
def test_another_handler_is_refused_and_the_known_ones_are_named(name):
    found = read(flag(handler=name))
    assert found.code == "UPH_FLAG_HANDLER_UNKNOWN"
    assert "verify_db" in found.reason
    assert (found.task_id, found.handler) == ("task_20260205_143015_ab12", None)


@pytest.mark.parametrize("name", ["halt", None, 7, ["drain"], {}])
def test_a_handler_whose_plug_in_cannot_be_used_says_so_and_others_are_unknown_as_ever(name):
    rules = Rules(workers=RULES.workers, fallback=("web",), unusable={"drain": "not installed"})
    found = read(flag(handler="drain"), rules=rules)
    assert (found.code, "not installed" in found.reason) == ("UPH_PLUGIN_UNUSABLE", False)
    assert code(flag(handler=name), rules=rules) == "UPH_FLAG_HANDLER_UNKNOWN"


@pytest.mark.accepts("C-040", "C-045")
def test_flags_are_worked_through_by_class_number_and_time_whatever_the_order_of_files():
    emergency = Handler("stop_everything", Urgency.EMERGENCY, 0)
    rules = Rules(workers=frozenset({"web"}), fallback=("web",), handlers=(*HANDLERS, emergency))
    dropped = [
        read(flag(handler=handler), name=name, rules=rules, modified=modified)
        for handler, name, modified in (
            ("verify_db", "a.flag", 1),
            ("diagnostics", "b.flag", 2),
            ("restart_watcher", "c.flag", 3),
            ("pause_watcher", "z.flag", 5),
            ("pause_watcher", "e.flag", 4),
            ("pause_watcher", "d.flag", 5),
            ("rollback_code", "f.flag", 6),
            ("update_code_deps", "g.flag", 7),
            ("update_code", "h.flag", 8),
            ("stop_everything", "i.flag", 9),
            ("resume", "j.flag", 10),
        )
    ]
    assert [each.file[0] for each in in_order(dropped)] == list("ihgfedzjcba")


@pytest.mark.accepts("C-029")
@pytest.mark.parametrize(
    ("name", "worker"),
    [
        ("supervisor_pause_web.flag", "web"),
        ("supervisor_pause_watcher_web.flag", "web"),
        ("supervisor_resume_OrionMX.flag", "OrionMX"),
        ("supervisor_update_code_web.flag", "web"),
        ("supervisor_update_code_deps_web.flag", "web"),
        ("supervisor_rollback_code_web.flag", "web"),
        ("supervisor_diagnostics_web.flag", "web"),
        ("supervisor_restart_watcher_web.flag", "web"),
        ("supervisor_verify_db_web.flag", "web"),
        ("supervisor_verify_db.flag", None),
        ("supervisor_something_web.flag", None),
        ("supervisor_pause_../web.flag", None),
        ("supervisor_pause_NUL.flag", None),
    ],
)
def test_the_longest_action_in_a_name_wins_and_what_follows_is_the_worker(name, worker):
    assert named_worker(name, RULES) == worker


@pytest.mark.accepts("C-029")
def test_the_content_decides_and_the_name_is_a_hint_only():
    found = read(flag(handler="diagnostics", worker_id="web"), name="supervisor_pause_OrionMX.flag")
    assert (found.handler, found.worker_id) == ("diagnostics", "web")
    assert read(flag(), name="supervisor_pause_web.flag").worker_id == "web"


def test_without_any_addressee_the_only_worker_of_the_checkout_is_meant_or_nobody():
    assert read(flag()).worker_id == "OrionMX"
    for several in ((), ("web", "OrionMX")):
        rules = Rules(workers=RULES.workers, fallback=several)
        assert code(flag(), rules=rules) == "UPH_FLAG_ADDRESSEE"


@pytest.mark.accepts("C-035", "B-58", "S09")
def test_a_flag_for_a_worker_of_somebody_else_is_not_ours_whatever_else_is_wrong_with_it():
    theirs = NotOurs(file="supervisor_x.flag", worker_id="theirs")
    assert read(flag(worker_id="theirs")) == theirs
    assert read(flag(worker_id="theirs", handler="nonsense", label="\n", strange=1)) == theirs
    name = "supervisor_pause_theirs.flag"
    for content in (flag(), b"{", b"[1]", b'{"a": 1, "a": 1}', b"\xff"):
        assert read(content, name=name) == NotOurs(file=name, worker_id="theirs")


@pytest.mark.accepts("C-035", "B-58", "S09")
@pytest.mark.parametrize("unusable", [(), ("drain",)], ids=["unknown", "unusable"])
def test_a_flag_for_a_plug_in_of_somebody_else_is_not_ours_either(unusable):
    rules = Rules(workers=frozenset({"web"}), fallback=("web",), unusable=unusable)
    theirs, ours = "supervisor_drain_b1.flag", "supervisor_drain_web.flag"
    found = read(flag(handler="drain"), name=theirs, rules=rules)
    assert found == NotOurs(file=theirs, worker_id="b1")
    if unusable:
        assert read(b"{", name=theirs, rules=rules) == found, "its content is not needed"
    wanted = "UPH_PLUGIN_UNUSABLE" if unusable else "UPH_FLAG_HANDLER_UNKNOWN"
    assert code(flag(handler="drain"), name=ours, rules=rules) == wanted
    assert code(flag(handler="drain", worker_id="web"), name=theirs, rules=rules) == wanted
    assert code(flag(handler="drain"), name="supervisor_drain.flag", rules=rules) == wanted


@pytest.mark.accepts("S06", "C-035")
@pytest.mark.parametrize(
    "worker",
    [
        "../web", "/etc/passwd", "web/..", "..", ".", "", " web", "web ", "web\n", "web\0",
        "web.2", "@pump", "-web", "_web", "w" * 65, "wéb", "web\u202e", "C:\\web", "CON", "nul",
        "com1", "WEB", "orionmx", 7, True, ["web"], {"id": "web"}, 1.5,
    ],
)  # fmt: skip
def test_no_path_no_device_and_no_other_spelling_becomes_a_worker(worker):
    assert code(flag(worker_id=worker)) == "UPH_FLAG_ADDRESSEE"


@pytest.mark.accepts("C-107", "C-121", "C-122", "C-123", "C-124", "C-T11", "B-73")
@pytest.mark.parametrize(
    "label", [None, "a", "A b-c_9", "x" * 100, " ", "-", "0", "evening stop before the move"]
)
def test_a_label_that_is_right(label):
    assert validate_label(label) == (True, "")
    assert read(flag(label=label)).label == label


@pytest.mark.accepts("C-107", "C-121", "C-122", "C-123", "C-T12", "C-T13", "B-73")
@pytest.mark.parametrize(
    "label",
    ["x" * 101, "", "a\n", "\n", "a\tb", "a\rb", "a\x00", "a/b", "a.b", "é", "a\u00a0b", "٣",
     "a\u2028b", "<b>", "$(x)", "a;b", 7, True, ["a"], {}],
)  # fmt: skip
def test_a_label_that_is_wrong_refuses_the_whole_flag(label):
    fine, message = validate_label(label)
    assert not fine
    assert message.startswith("a label")
    assert code(flag(label=label)) == "UPH_LABEL_INVALID"


@pytest.mark.parametrize(
    "task",
    ["", "a b", "../x", "a/b", "a.b", "a\n", "é", "-a", "_a", "x" * 101, None, 7, True, ["a"]],
)
def test_a_task_id_must_be_fit_for_a_file_name(task):
    found = read(flag(task_id=task))
    assert found.code == "UPH_FLAG_INVALID"
    assert found.task_id is None
    assert (found.handler, found.worker_id) == ("pause_watcher", "OrionMX")


@pytest.mark.accepts("E-29", "B-56")
@pytest.mark.parametrize(
    ("handler", "params"),
    [
        ("pause_watcher", {"commits_back": 1}),
        ("rollback_code", {"commits": 1}),
        ("rollback_code", {"Commits_back": 1}),
        ("rollback_code", {"commits_back": 1, "force": True}),
        ("rollback_code", {"commits_back": 0}),
        ("rollback_code", {"commits_back": 11}),
        ("rollback_code", {"commits_back": -1}),
        ("rollback_code", {"commits_back": True}),
        ("rollback_code", {"commits_back": 1.0}),
        ("rollback_code", {"commits_back": "1"}),
        ("rollback_code", {"commits_back": None}),
        ("rollback_code", {"commits_back": [1]}),
        ("update_code", []),
        ("update_code", "main"),
        ("update_code", {"ref": "--upload-pack=x"}),
    ],
)
def test_params_that_are_unknown_or_wrong_are_refused(handler, params):
    assert code(flag(handler=handler, params=params)) == "UPH_FLAG_PARAMS"


@pytest.mark.parametrize("commits", range(1, 11))
def test_a_rollback_takes_one_to_ten_commits(commits):
    found = read(flag(handler="rollback_code", params={"commits_back": commits}))
    assert found.params == {"commits_back": commits}


def test_a_key_that_no_flag_has_is_refused_by_name_and_harmlessly_shown():
    assert code(flag(Label="x")) == "UPH_FLAG_INVALID"
    found = read(flag(**{"\x1b[31m" + "y" * 500: 1}))
    assert "\x1b" not in found.reason
    assert len(found.reason) < 200


@pytest.mark.accepts("P22", "B-76", "B-77")
@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-02-05T14:00:00Z", 0),
        ("2026-02-05T14:00:00.000Z", 0),
        ("2026-02-05 14:00:00", 0),
        ("2026-02-05T14:00:00", 0),
        ("2026-02-05T15:00:00+01:00", 0),
        ("2026-02-05T14:00:00.5", 0.5),
    ],
)
def test_times_are_read_as_databases_and_people_write_them_and_naive_ones_are_utc(written, seconds):
    assert read(flag(issued_at=written)).issued_at == NOW + seconds


@pytest.mark.accepts("P22", "S09")
def test_a_flag_expires_five_minutes_after_its_time_as_clocks_differ():
    at = flag(expires_at="2026-02-05T14:00:00Z")
    assert isinstance(read(at, now=NOW + 300), Flag)
    assert code(at, now=NOW + 301) == "UPH_FLAG_EXPIRED"
    assert isinstance(read(flag(), now=NOW + 1e9), Flag), "without the time it holds"


@pytest.mark.parametrize(
    "written",
    ["", "soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
     "99999-01-01", 1770300000, True, [], "2026-02-05T14:00:00Z" * 9, "\uff12\uff10\uff12\uff16-02-05T14:00:00Z"],
)  # fmt: skip
@pytest.mark.parametrize("key", ["issued_at", "expires_at"])
def test_a_time_that_is_none_is_refused(key, written):
    assert code(flag(**{key: written})) in {"UPH_FLAG_INVALID", "UPH_FLAG_EXPIRED"}


def test_a_flag_from_the_future_or_that_ends_before_it_begins_is_refused():
    assert isinstance(read(flag(issued_at="2026-02-05T14:05:00Z")), Flag)
    assert code(flag(issued_at="2026-02-05T14:05:01Z")) == "UPH_FLAG_INVALID"
    upside_down = flag(issued_at="2026-02-05T14:00:00Z", expires_at="2026-02-05T13:59:00Z")
    assert code(upside_down) == "UPH_FLAG_INVALID"


@pytest.mark.accepts("P21", "C-033")
@pytest.mark.parametrize(
    "raw", [b"", b" ", b"{", b'{"task_id": "a', b'{"a": 1,}', b"\xe2\x82", b"x"]
)
def test_what_is_no_json_yet_is_waited_for_and_given_up_with_a_reason(raw):
    found = read(raw)
    assert isinstance(found, Incomplete)
    given_up = found.given_up()
    assert given_up.code == "UPH_FLAG_UNREADABLE"
    assert "30 s" in given_up.reason


@pytest.mark.accepts("P21")
def test_a_flag_counts_only_when_its_last_byte_is_there():
    raw = json.dumps(flag(label="whole")).encode()
    for length in range(len(raw)):
        assert isinstance(read(raw[:length]), Incomplete), length
    assert isinstance(read(raw), Flag)


@pytest.mark.accepts("S11", "E-30")
@pytest.mark.parametrize(
    "raw",
    [b"[]", b"7", b'"x"', b"null", b"NaN", b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}',
     b'{"task_id": "a", "task_id": "b"}', b'{"a": "\\ud800"}', b'{"\\udfff": 1}',
     b'{"a": ' + b"9" * 5000 + b"}", b'{"a": ' + b"[" * 9 + b"]" * 9 + b"}",
     b"[" * 30000 + b"]" * 30000, b'{"a":' * 8000 + b"1" + b"}" * 8000, b" " * (LARGEST + 1)],
)  # fmt: skip
def test_json_that_nobody_may_write_is_refused_at_once(raw):
    assert code(raw) == "UPH_FLAG_UNREADABLE"


def test_a_byte_order_mark_and_windows_line_ends_are_fine():
    text = json.dumps(flag(), indent=2).replace("\n", "\r\n")
    assert isinstance(read(b"\xef\xbb\xbf" + text.encode() + b"\r\n"), Flag)


@pytest.mark.accepts("S10")
def test_unsigned_flags_are_accepted_unless_signatures_are_required():
    strict = Rules(workers=RULES.workers, fallback=("web",), require_signature=True, senders=(KEY,))
    assert read(flag()).sender is None
    assert code(flag(), rules=strict) == "UPH_FLAG_SIGNATURE"
    signed = flag(worker_id="web", expires_at="2026-02-05T14:10:00Z")
    signed["signature"] = sign(signed, KEY.name, KEY.key)
    assert read(signed, rules=strict).sender == "console"


@pytest.mark.accepts("S10", "P23")
def test_a_wrong_signature_is_refused_even_where_none_is_needed():
    assert code(flag(signature="console:" + "0" * 64)) == "UPH_FLAG_SIGNATURE"


@pytest.mark.accepts("S10", "P23")
def test_a_sender_may_do_only_what_it_was_allowed_by_whatever_name():
    rules = Rules(
        workers=RULES.workers,
        senders=(SenderSpec(name="console", key=KEY.key, may=("pause", "diagnostics")),),
    )
    for handler, allowed in (("pause_watcher", True), ("pause", True), ("update_code", False)):
        signed = flag(handler=handler, worker_id="web", expires_at="2026-02-05T14:10:00Z")
        signed["signature"] = sign(signed, KEY.name, KEY.key)
        if allowed:
            assert read(signed, rules=rules).handler == "pause_watcher"
        else:
            assert code(signed, rules=rules) == "UPH_FLAG_NOT_PERMITTED"


@pytest.mark.accepts("S10", "P23")
@pytest.mark.parametrize(
    ("may", "allowed"), [(("empty",), True), (("pause",), False), (None, True)]
)
def test_the_same_holds_for_handlers_of_plug_ins(may, allowed):
    drain = Handler("drain", Urgency.OPERATIONAL, 40, aliases=("empty",))
    rules = Rules(
        workers=RULES.workers,
        senders=(SenderSpec(name="console", key=KEY.key, may=may),),
        handlers=(*HANDLERS, drain),
    )
    signed = flag(handler="drain", worker_id="web", expires_at="2026-02-05T14:10:00Z")
    signed["signature"] = sign(signed, KEY.name, KEY.key)
    if allowed:
        assert read(signed, rules=rules).sender == "console"
    else:
        assert code(signed, rules=rules) == "UPH_FLAG_NOT_PERMITTED"


@pytest.mark.accepts("P22", "S10")
def test_a_signed_flag_names_its_worker_and_holds_for_a_quarter_of_an_hour():
    rules = Rules(workers=RULES.workers, fallback=("web",), senders=(KEY,))

    def signed(**changes):
        content = flag(**changes)
        return {**content, "signature": sign(content, KEY.name, KEY.key)}

    issued = "2026-02-05T14:00:00Z"
    assert code(signed(issued_at=issued), rules=rules) == "UPH_FLAG_SIGNATURE", "no worker_id"
    assert code(signed(worker_id="web"), rules=rules) == "UPH_FLAG_SIGNATURE", "no time"
    life = signed(worker_id="web", issued_at=issued)
    assert read(life, rules=rules).expires_at == NOW + 900
    assert isinstance(read(life, rules=rules, now=NOW + 1200), Flag)
    assert code(life, rules=rules, now=NOW + 1201) == "UPH_FLAG_EXPIRED"
