from __future__ import annotations

import pytest

from uphold.config.loading import load
from uphold.config.templates import KINDS, LANGUAGES, starter


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_starter_is_right_as_it_stands(tmp_path, kind, language):
    path = tmp_path / f"uphold.{language}"
    path.write_text(starter(kind, language))
    assert load(path, environ={}).workers


@pytest.mark.parametrize("kind", KINDS)
def test_both_languages_start_the_same(tmp_path, kind):
    found = []
    for language in LANGUAGES:
        path = tmp_path / f"uphold.{language}"
        path.write_text(starter(kind, language))
        found.append(load(path, environ={}).workers)
    assert found[0] == found[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_commented_out_is_right_too(tmp_path, language):
    lines = starter("minimal", language).splitlines()
    begin = next(number for number, line in enumerate(lines) if "web" in line and "#" in line)
    lines[begin:] = [
        line.removeprefix("# " if language == "toml" else "#") for line in lines[begin:]
    ]
    path = tmp_path / f"uphold.{language}"
    path.write_text("\n".join(line or "" for line in lines))
    assert [spec.name for spec in load(path, environ={}).workers] == ["hello", "web"]
