"""A class that does not keep the contract is refused when it is declared."""

from __future__ import annotations

import abc

import pytest

import uphold
from uphold.sdk.workers import is_abstract, is_async

WHOLE = {
    "setup": "async def setup(self): pass",
    "run": "async def run(self, stopping): pass",
    "health": "def health(self): return uphold.Health()",
}


def declare(base: str = "uphold.Worker", **parts: str) -> type:
    body = "\n    ".join({**WHOLE, **parts}.values())
    names: dict = {"uphold": uphold, "abc": abc, "__name__": "app"}
    exec(compile(f"\n\nclass Job({base}):\n    {body}\n    pass\n", "app.py", "exec"), names)
    return names["Job"]


@pytest.mark.accepts("D-14")
@pytest.mark.parametrize("part", WHOLE)
def test_a_class_that_lacks_a_part_is_refused_by_name_and_place(part: str):
    with pytest.raises(TypeError) as refused:
        declare(**{part: ""})
    text = str(refused.value)
    assert "the class Job (app.py:3) is not a whole uphold.Worker" in text
    assert f"it has no {part} (write '" in text
    assert all(f"no {other}" not in text for other in WHOLE if other != part)


@pytest.mark.accepts("D-14")
@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("run", "async def run(self): pass", "does not take the stop signal"),
        ("run", "async def run(self, stopping, more): pass", "does not take the stop signal"),
        ("run", "async def run(self, stopping): yield", "its run yields"),
        ("run", "def run(self, stopping): yield", "its run yields"),
        ("health", "async def health(self): pass", "must answer at once"),
        ("health", "health = 'fine'", "its health is no method"),
    ],
)
def test_a_part_that_cannot_be_called_as_agreed_is_refused(part: str, text: str, words: str):
    with pytest.raises(TypeError, match=words):
        declare(**{part: text})


@pytest.mark.parametrize(
    "run",
    [
        "def run(self, stopping): pass",
        "async def run(self, *anything): pass",
        "async def run(self, stop, speed=1): pass",
    ],
)
def test_other_ways_to_write_a_run_are_fine(run: str):
    assert not is_abstract(declare(run=run))


def test_what_others_are_to_complete_may_lack_parts_and_they_may_not():
    class Half(uphold.Worker, abstract=True):
        async def setup(self): ...

        def health(self):
            return uphold.Health()

    assert is_abstract(Half)
    with pytest.raises(TypeError, match="no run"):
        type("Still", (Half,), {})

    class Full(Half):
        async def run(self, stopping): ...

    assert not is_abstract(Full)


def test_a_class_with_abstract_methods_is_abstract():
    assert is_abstract(
        declare("uphold.Worker, abc.ABC", more="@abc.abstractmethod\n    def f(self): ...")
    )
    assert is_abstract(uphold.Worker)


def test_an_async_function_is_known_behind_a_decorator():
    import functools

    def logged(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    async def run(): ...

    assert is_async(logged(run))
    assert not is_async(logged(lambda: None))
