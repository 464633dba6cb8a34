from __future__ import annotations

import json

from uphold.runner.describing import describe, place_of, shown


def raised(call):
    try:
        call()
    except Exception as cause:
        return cause
    raise AssertionError


def test_the_place_is_the_innermost_one_that_is_not_a_librarys(monkeypatch, tmp_path):
    code = compile("\nimport json\njson.loads('{')", str(tmp_path / "own.py"), "exec")
    cause = raised(lambda: exec(code, {}))
    assert place_of(cause) == f"{tmp_path}/own.py:3"
    monkeypatch.chdir(tmp_path)
    assert describe(cause).startswith("JSONDecodeError: Expecting property name")
    assert describe(cause).endswith("(own.py:3)")


def test_without_a_place_of_its_own_the_library_is_named():
    cause = json.JSONDecodeError("x", "", 0).with_traceback(None)
    assert place_of(cause) is None
    assert describe(cause) == "JSONDecodeError: x: line 1 column 1 (char 0)"


def test_an_error_without_a_text_is_named():
    assert describe(ValueError()) == "ValueError"


def test_a_path_is_shown_from_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert shown(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert shown("/elsewhere/b.py") == "/elsewhere/b.py"
