"""The quick named tuples are what `typing.NamedTuple` would have made."""

from __future__ import annotations

import pickle
import typing

import pytest

from uphold import tuples
from uphold.errors import Problem
from uphold.host.locks import Ownership, Standing


class Quick(tuples.NamedTuple):
    """A thing."""

    name: str
    size: int = 3
    """How large."""

    @property
    def both(self) -> str:
        return f"{self.name}{self.size}"

    @classmethod
    def small(cls) -> Quick:
        return cls("s", 0)

    def __str__(self) -> str:
        return "quick"


class Real(typing.NamedTuple):
    """A thing."""

    name: str
    size: int = 3

    @property
    def both(self) -> str:
        return f"{self.name}{self.size}"


def test_it_is_a_tuple_with_names_defaults_and_methods():
    quick, real = Quick("a"), Real("a")
    assert quick == real == ("a", 3)
    assert quick.both == real.both == "a3"
    assert Quick.small() == ("s", 0)
    assert str(quick) == "quick"
    assert quick._replace(size=4) == Real("a", 4)
    assert pickle.loads(pickle.dumps(quick)) == quick


@pytest.mark.parametrize(
    "name",
    ["__doc__", "__module__", "__slots__", "_fields", "_field_defaults"],
)
def test_the_class_says_the_same_of_itself(name):
    assert getattr(Quick, name) == getattr(Real, name)
    assert typing.get_type_hints(Quick) == typing.get_type_hints(Real)
    assert Quick.__qualname__ == "Quick"
    assert Quick.__bases__ == Real.__bases__ == (tuple,)


@pytest.mark.parametrize("words", [(), ("a", 1, 2)])
def test_a_wrong_number_of_values_is_refused(words):
    with pytest.raises(TypeError):
        Quick(*words)


def test_those_of_uphold_are_made_so():
    assert str(Problem("a", "b")) == "a: b"
    assert Ownership(Standing.STOPPED).reason == ""
    assert not hasattr(Problem("a", "b"), "__dict__")
