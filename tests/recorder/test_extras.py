from __future__ import annotations

import sys

import pytest

from uphold.errors import StoreUnavailable
from uphold.recorder.extras import require_packages


@pytest.mark.parametrize("dialect", ["mysql", "postgresql", "sqlite"])
def test_nothing_is_said_while_all_is_there(dialect):
    require_packages(dialect)


@pytest.mark.parametrize(
    ("dialect", "name"), [("mysql", "pymysql"), ("postgresql", "psycopg"), ("sqlite", "sqlalchemy")]
)
def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch, dialect, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(StoreUnavailable, match=name) as caught:
        require_packages(dialect)
    assert caught.value.code == "UPH_STORE_EXTRA_MISSING"
    assert "uphold[sql]" in caught.value.remedy
