from __future__ import annotations

import pytest

from uphold.cli.arguments import seconds, split_at_verb


@pytest.mark.parametrize(
    ("words", "before", "verb", "after"),
    [
        (["status"], [], "status", []),
        (["--home", "x", "status", "--json"], ["--home", "x"], "status", ["--json"]),
        (["-c", "status", "stop"], ["-c", "status"], "stop", []),
        (["--label=a b", "stop", "api"], ["--label=a b"], "stop", ["api"]),
        (["--json"], ["--json"], None, []),
        (["--home"], ["--home"], None, []),
        ([], [], None, []),
    ],
)
def test_the_verb_is_the_first_word_that_is_no_option(words, before, verb, after):
    assert split_at_verb(words) == (before, verb, after)


@pytest.mark.accepts("C-121", "C-122")
@pytest.mark.parametrize("label", ["a", "Deploy 7_b-c", "x" * 100])
def test_a_good_label_goes_with_the_order(uphold, supervisor, label):
    supervisor.answers["submit"] = {"schema": 1, "job_id": "j", "results": []}
    assert uphold("stop", "api", "--label", label).code == 0
    assert supervisor.asked("submit")["label"] == label


@pytest.mark.accepts("C-121", "C-122", "C-107", "E-25")
@pytest.mark.parametrize("label", ["", "x" * 101, "a\nb", "a\n", "tab\t", "ümlaut", "a;b", "../x"])
def test_a_bad_label_is_refused_before_anything_happens(uphold, supervisor, label):
    result = uphold("stop", "api", "--label", label)
    assert result.code == 2
    assert "a label has 1 to 100 letters" in result.err
    assert supervisor.requests == []


def test_a_time_limit_may_carry_a_unit(uphold, supervisor):
    assert [seconds(text) for text in ("5", "500ms", "1.5s", "2m", "1h")] == [
        5,
        0.5,
        1.5,
        120,
        3600,
    ]
    for text in ("soon", "-1", "5 parsecs", "inf", "nan", ""):
        result = uphold("stop", "api", f"--timeout={text}")
        assert (result.code, supervisor.requests) == (2, [])


@pytest.mark.parametrize(
    "words",
    [
        ("scale", "web"),
        ("scale", "web=-1"),
        ("scale", "web=many"),
        ("scale", "=3"),
        ("signal", "web"),
        ("signal", "web", "BANG"),
        ("signal", "web", "999"),
        ("enable",),
        ("show",),
        ("why",),
        ("status", "--statu"),
        ("stop", "api", "--keep-workers"),
        ("restart", "api", "--keep-workers"),
        ("events", "--since", "tomorrow"),
        ("events", "-n", "x"),
        ("completion", "tcsh"),
        ("init", "--as", "procfile"),
        ("init", "--from", "Procfile", "--as", "foreman"),
        ("import", "Procfile", "-o", "uphold.yaml"),
        ("import",),
        ("export", "launchd"),
    ],
)
def test_what_cannot_be_understood_is_a_usage_error_and_reaches_nobody(uphold, supervisor, words):
    result = uphold(*words)
    assert result.code == 2
    assert result.err.startswith("uphold: ")
    assert "[UPH_USAGE]" in result.err
    assert supervisor.requests == []
