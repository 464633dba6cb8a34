from __future__ import annotations

import pytest

from config.importing.readers import import_text, terms, verdict
from uphold.config.importing.reports import NotImportable


def test_what_needs_no_shell_gets_none():
    imported = import_text("procfile", "a: run --x=1\nb: run | tee log\nc:run ${PORT}\n")
    assert terms(imported, "a") == {"command": "run --x=1", "environment": {"PORT": "5000"}}
    assert terms(imported, "b")["shell"] is True
    assert terms(imported, "c")["command"] == "run $${PORT}"


def test_the_variables_beside_it_are_for_all():
    imported = import_text("procfile", "a: x\n", {".env": "A=1\nPORT=80\n"})
    assert imported.defaults["env_file"] == ".env"
    assert terms(imported)["environment"] == {"PORT": "80"}
    assert verdict(imported, "A") == ("translated", "env_file")
    assert verdict(imported, "PORT") == ("translated", "the first PORT")


def test_what_is_good_of_a_broken_env_is_copied_and_the_rest_is_lost():
    imported = import_text("procfile", "a: x\n", {".env": "A=${1}\nwhat?\nUPHOLD_SLOT=1\n"})
    assert imported.defaults["environment"] == {"A": "$${1}"}
    assert "env_file" not in imported.defaults
    assert verdict(imported, "(line 2)")[0] == "lost"
    assert verdict(imported, "UPHOLD_SLOT")[0] == "lost"


def test_names_are_made_fit_and_that_is_said():
    imported = import_text("procfile", "_a: x\n")
    assert verdict(imported, "_a")[1].endswith("the worker is called a")


def test_ports_end_where_there_are_none():
    imported = import_text("procfile", "a: x\nb: x\n", {".env": "PORT=65500\n"})
    assert "environment" not in terms(imported, "b")


def test_a_line_that_is_none_is_named():
    with pytest.raises(NotImportable, match="Procfile:2"):
        import_text("procfile", "a: x\nwhat?\n")
