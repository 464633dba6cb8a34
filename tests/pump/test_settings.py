"""Settings are read leniently: whatever is wrong, output is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from uphold.pump.settings import AllSettings, parse_json, read_settings


def test_a_slot_has_what_differs_and_the_defaults_otherwise() -> None:
    settings = AllSettings(
        {
            "default": {"max_size": 5000, "keep": 2},
            "slots": {"web.2": {"keep": 9, "overflow": "drop"}},
        }
    )
    assert settings.problems == []
    assert settings.of("api.log").keep == 2
    for log in ("web.2.log", "web.2.err.log"):
        found = settings.of(log)
        assert (found.max_size, found.keep, found.overflow) == (5000, 9, "drop")
    assert settings.of("web.log").compress is True


def test_what_is_said_of_a_worker_holds_for_all_its_slots() -> None:
    settings = AllSettings({"slots": {"web": {"keep": 7}, "web.3": {"keep": 1}}})
    assert [settings.of(log).keep for log in ("web.log", "web.2.log", "web.3.log")] == [7, 7, 1]
    assert settings.of("webby.log").keep == 5


@pytest.mark.parametrize(
    "told",
    [
        [],
        {"default": 3},
        {"slots": [1]},
        {"default": {"keep": True}},
        {"default": {"max_size": "10MB"}},
        {"slots": {"w": {"overflow": "explode"}}},
        {"slots": {"w": None}},
    ],
)
def test_what_is_wrong_is_named_and_the_default_holds(told: object) -> None:
    settings = AllSettings(told)
    assert len(settings.problems) == 1
    found = settings.of("w.log")
    assert (found.max_size, found.keep, found.compress, found.overflow) == (
        10_000_000,
        5,
        True,
        "block",
    )


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"a": 1} trailing', "\0", '{"default"'])
def test_a_broken_file_is_a_problem_not_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "logs.json").write_text(text)
    folder = os.open(tmp_path, os.O_RDONLY)
    settings = read_settings(folder)
    os.close(folder)
    assert len(settings.problems) == 1
    assert settings.of("w.log").keep == 5


def test_a_missing_file_is_no_problem_and_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    assert read_settings(folder).problems == []
    (tmp_path / "elsewhere").write_text('{"default": {"keep": 1}}')
    (tmp_path / "logs.json").symlink_to("elsewhere")
    settings = read_settings(folder)
    os.close(folder)
    assert len(settings.problems) == 1
    assert settings.of("w.log").keep == 5


def test_json_is_parsed_as_the_json_package_would() -> None:
    value = {"a": [1, 2.5, None, True, "ü\n\\"], "b": {"c": {}}}
    for text in (json.dumps(value), json.dumps(value, indent=2) + "\n   ", " 7 "):
        assert parse_json(text) == json.loads(text)
