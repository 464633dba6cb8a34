from __future__ import annotations

import pytest

from uphold.config.importing.reports import (
    Book,
    Names,
    NotImportable,
    Setting,
    Source,
    Verdict,
    translated,
)
from uphold.core.names import is_worker_name


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("web", "web"),
        ("my.app:1", "my-app-1"),
        ("__log", "log"),
        ("...", "worker"),
        ("x" * 80, "x" * 64),
        ("runtime", "runtime-2"),
    ],
)
def test_a_name_is_made_fit(wanted, given):
    assert Names().give(wanted) == given
    assert is_worker_name(given)


def test_no_name_is_given_twice_not_even_in_another_case():
    names = Names()
    assert [names.give(name) for name in ("Web", "web", "WEB")] == ["Web", "web-2", "WEB-3"]


def test_what_nobody_judged_is_lost_and_order_is_that_of_the_source():
    book = Book()
    first, second = (Setting(f"f:{n}", "[s]", f"k{n}", "v") for n in (1, 2))
    book.expect(first, second)
    book.judge(second, translated("x"))
    book.expect(second)
    assert [(line.setting, line.verdict) for line in book.lines()] == [
        ("k1", Verdict.LOST),
        ("k2", Verdict.TRANSLATED),
    ]


@pytest.mark.parametrize(
    ("target", "path", "written"),
    [
        (None, "db", "db"),
        ("/srv", "db", "db"),
        ("/etc", "db", "/srv/db"),
        ("/etc", "./db", "/srv/db"),
        ("/etc", ".", "/srv"),
        ("/etc", "/abs", "/abs"),
    ],
)
def test_a_path_means_the_same_wherever_the_configuration_lies(target, path, written):
    source = Source(name="x", text="", folder="/srv", target=target)
    assert source.path(path) == written


def test_workers_without_a_folder_run_where_the_source_lies():
    assert Source(name="x", text="", folder="/srv").working_dir() == {}
    away = Source(name="x", text="", folder="/srv", target="/etc")
    assert away.working_dir() == {"working_dir": "/srv"}


def test_what_cannot_be_imported_says_where():
    assert str(NotImportable("a:3", "no")) == "a:3: no"
