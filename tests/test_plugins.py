from __future__ import annotations

import pytest

from uphold.core import orders
from uphold.errors import UpholdError
from uphold.plugins import HANDLERS, UNUSABLE, Handler, Urgency, fault_of_handler, find, told

GOOD = Handler(
    "drain",
    Urgency.OPERATIONAL,
    40,
    wish=lambda flag: orders.StopWorkers(names=(flag.worker_id,)),
)


def offer(folder, package, module, **entries):
    """Lay a package into a folder, as an installer does."""
    (folder / f"{package}.py").write_text(module)
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (about / "entry_points.txt").write_text(f"[{HANDLERS}]\n{points}")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_an_installed_package_is_found_by_what_it_offers(site):
    offer(site, "found_here", "value = 42", answer="found_here:value")
    assert find(HANDLERS, "answer") == 42


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("leaving", "raise SystemExit(3)"),
        ("raising", "raise ValueError('x')"),
        ("missing", "import nothing_of_that_name"),
    ],
)
def test_one_that_cannot_be_loaded_says_so_whatever_it_raises(site, name, line):
    offer(site, name, line, answer=f"{name}:value")
    with pytest.raises(UpholdError, match=f"{name}:value cannot be loaded") as caught:
        find(HANDLERS, "answer")
    assert caught.value.code == UNUSABLE


def test_what_two_packages_offer_is_nobody_s(site):
    offer(site, "one_of_two", "value = 1", answer="one_of_two:value")
    offer(site, "two_of_two", "value = 2", answer="two_of_two:value")
    with pytest.raises(UpholdError, match=r"more than once .* by one_of_two, two_of_two"):
        find(HANDLERS, "answer")


def test_what_nobody_offers_is_not_found():
    with pytest.raises(UpholdError, match="no installed package offers a 'nothing_at_all'"):
        find(HANDLERS, "nothing_at_all")


def test_a_right_handler_has_no_fault():
    assert fault_of_handler("drain", GOOD) == ""


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "other"}, "the handler itself 'other'"),
        ({"aliases": "stop"}, "must be a tuple"),
        ({"aliases": ("Drain",)}, "'Drain' is no name"),
        ({"aliases": (5,)}, "5 is no name"),
        ({"urgency": 2}, "one of uphold.plugins.Urgency"),
        ({"number": True}, "from 0 to 999"),
        ({"number": 1000}, "from 0 to 999"),
        ({"params": ["size"]}, "its params must be"),
        ({"params": {"size": 5}}, "its params must be"),
        ({"params": {5: str}}, "5 is no name"),
        ({"params": {"how many": str}}, "'how many' is no name"),
        ({"params": {f"a{number}": str for number in range(33)}}, "may have 32 aliases"),
        ({"aliases": tuple(f"a{number}" for number in range(33))}, "may have 32 aliases"),
        ({"wish": None}, "its wish must be a function"),
    ],
)
def test_a_wrong_one_is_told_what_is_wrong(change, fault):
    assert fault in fault_of_handler("drain", GOOD._replace(**change))


@pytest.mark.parametrize("thing", [None, tuple(GOOD), lambda flag: None, "drain"])
def test_only_a_handler_is_one(thing):
    assert "must be an uphold.plugins.Handler" in fault_of_handler("drain", thing)


@pytest.mark.parametrize("name", ["", "Drain", "1st", "dr-ain", "drain\n", "x" * 65, "../drain"])
def test_no_other_names_are_allowed(name):
    assert "is no name" in fault_of_handler(name, GOOD._replace(name=name))


def test_what_was_raised_is_told_in_a_few_words():
    assert told(ValueError("that is wrong.")) == "ValueError: that is wrong"
    assert told(KeyError()) == "KeyError"
    assert len(told(ValueError("x" * 5000))) == 300
