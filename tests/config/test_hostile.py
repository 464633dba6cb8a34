"""Hostile files are read to the end or refused, in few words, and never cost without bounds.

How long each takes is measured by `hostile.py` as a program; a busy machine must not decide
whether these tests pass.
"""

from __future__ import annotations

import sys

import pytest

from config.hostile import FILES, SIZE, filled, written
from uphold.config.loading import examine
from uphold.config.places import AND_MORE, MOST_PROBLEMS


@pytest.mark.accepts("S45", "T18")
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_read_or_refused_in_few_words(tmp_path, name):
    reading = examine(written(tmp_path, name), environ={"A": "value-of-a"})
    assert (reading.settings is None) == bool(reading.problems)
    assert len(reading.problems) <= MOST_PROBLEMS + 1
    assert all(len(problem.text) < 2000 for problem in reading.problems)
    if len(reading.problems) > MOST_PROBLEMS:
        assert reading.problems[-1].text == AND_MORE


def test_most_files_are_as_large_as_they_claim():
    large = [name for name, (text, _, env) in FILES.items() if len(env or text) >= 0.8 * SIZE]
    assert len(large) > 150


MULTIPLYING = (
    "[defaults]\nlabels={{{many}}}\n",
    "[defaults]\nenvironment={{{many}}}\n",
    "[defaults]\ncommand=[{words}]\n",
    "[defaults]\nsuccess_exit_codes=[{numbers}]\n",
    "[defaults]\nstop.command=[{words}]\n",
)


@pytest.mark.accepts("S45")
@pytest.mark.parametrize("defaults", MULTIPLYING)
@pytest.mark.parametrize("own", ["", "labels.a='b'\nenvironment.a='b'\nstop.grace={n}\n"])
def test_what_defaults_say_is_not_paid_for_by_each_worker(tmp_path, defaults, own):
    """Counted in calls, which no busy machine changes: 350 values more, for some 500 workers."""
    few = calls(tmp_path / "few", defaults, own, 50)
    many = calls(tmp_path / "many", defaults, own, 400)
    assert many - few < 50_000


def calls(folder, defaults, own, width):
    folder.mkdir()
    head = defaults.format(
        many=",".join(f"k{n}='v'" for n in range(width)),
        words=",".join("'x'" for _ in range(width)),
        numbers=",".join("1" for _ in range(width)),
    )
    path = folder / "uphold.toml"
    path.write_text(head + filled("[workers.w{n}]\ncommand='x'\n" + own, size=30_000))
    return counted(lambda: examine(path, environ={}))


def counted(work):
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_every_circle_is_found_by_following_each_link_once(tmp_path):
    def pairs(count):
        path = tmp_path / f"{count}.toml"
        lines = (f"[workers.w{n}]\ncommand='x'\ndepends_on=['w{n ^ 1}']\n" for n in range(count))
        path.write_text("".join(lines))
        return counted(lambda: examine(path, environ={}))

    assert pairs(800) < 5 * pairs(200)
