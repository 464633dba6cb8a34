from __future__ import annotations

import tomllib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uphold.config.importing.emitting import toml_of
from uphold.config.importing.reports import Draft, Import, Line, Verdict

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
PATIENT = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
"""How long a busy machine takes to make an example says nothing about the code."""
VALUES = st.recursive(
    TEXT | st.booleans() | st.integers(-(10**9), 10**9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def imported(terms=None, report=(), **more):
    return Import(
        kind="test",
        workers=(Draft("web", {"command": "x"} if terms is None else terms),),
        report=report,
        **more,
    )


@PATIENT
@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_whatever_is_written_is_read_as_it_was(terms):
    text = toml_of(imported(terms), source="f")
    assert tomllib.loads(text)["workers"]["web"] == terms


@PATIENT
@given(TEXT, TEXT, TEXT)
def test_no_remark_can_become_a_setting(source, setting, how):
    lines = (
        Line("f:1", "[s]", setting, Verdict.LOST, how, "web"),
        Line("f:2", "[s]", setting, Verdict.APPROXIMATED, how, None),
    )
    text = toml_of(imported(report=lines), source=source)
    assert tomllib.loads(text) == {"workers": {"web": {"command": "x"}}}


def test_remarks_stand_where_they_concern_and_translations_need_none():
    lines = (
        Line("f:1", "", "a", Verdict.LOST, "gone", None),
        Line("f:2", "", "b", Verdict.APPROXIMATED, "nearly", "web"),
        Line("f:3", "", "c", Verdict.TRANSLATED, "same", "web"),
    )
    text = toml_of(
        imported(report=lines, supervisor={"name": "n"}, defaults={"restart": "no"}), source="f"
    )
    assert text == (
        "# Imported from f (test): 1 translated, 1 approximated, 1 lost.\n"
        "# What was approximated or lost is said below. Look at it, then: uphold check\n"
        "# lost: a (f:1): gone\n"
        "\n[supervisor]\n"
        'name = "n"\n'
        "\n[defaults]    # what holds for each of them unless it says otherwise\n"
        'restart = "no"\n'
        "\n[workers.web]\n"
        "# approximated: b (f:2): nearly\n"
        'command = "x"\n'
    )


def test_keys_stand_in_the_order_of_the_manual_and_wide_tables_last():
    wide = {f"VARIABLE_{number}": "a value of some length" for number in range(5)}
    text = toml_of(imported({"environment": wide, "restart": "no", "command": "x"}), source="f")
    keys = [line.split(" =")[0] for line in text.splitlines() if " = " in line]
    assert keys == ["command", "restart", *wide]
    assert "[workers.web.environment]" in text


def test_a_script_is_written_as_lines():
    text = toml_of(imported({"command": 'echo """a"""\nb \\ "'}), source="f")
    assert '"""\necho ""\\"a""\\"\nb \\\\ \\""""' in text
