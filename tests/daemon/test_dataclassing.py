"""The supervisor's dataclasses: those of the standard library in all but their cost."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from uphold.daemon import dataclassing


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RealPlace:
    KIND: ClassVar[str] = "place"
    name: str
    number: int = 3
    tags: list[str] = dataclasses.field(default_factory=list)
    secret: str = dataclasses.field(default="", repr=False, compare=False)


@dataclassing.dataclass(frozen=True, slots=True, kw_only=True)
class LeanPlace:
    KIND: ClassVar[str] = "place"
    name: str
    number: int = 3
    tags: list[str] = dataclassing.field(default_factory=list)
    secret: str = dataclassing.field(default="", repr=False, compare=False)


@dataclasses.dataclass(slots=True)
class RealTally:
    good: int
    bad: int = 0
    sum: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.sum = self.good + self.bad


@dataclassing.dataclass(slots=True)
class LeanTally:
    good: int
    bad: int = 0
    sum: int = dataclassing.field(init=False)

    def __post_init__(self) -> None:
        self.sum = self.good + self.bad


@dataclassing.dataclass(frozen=True, slots=True)
class LeanPoint:
    x: int
    y: int = 0


@dataclassing.dataclass(frozen=True, slots=True)
class LeanDeep(LeanPoint):
    z: int = 0


BOTH = pytest.mark.parametrize("place", [RealPlace, LeanPlace])
TALLIES = pytest.mark.parametrize("tally", [RealTally, LeanTally])


@BOTH
def test_fields_have_values_defaults_and_factories(place: Any):
    one, other = place(name="a"), place(name="b", number=4, tags=["x"], secret="s")
    assert (one.name, one.number, one.tags, one.secret) == ("a", 3, [], "")
    assert (other.name, other.number, other.tags, other.secret) == ("b", 4, ["x"], "s")
    assert one.tags is not place(name="a").tags
    assert place.KIND == "place"


@BOTH
@pytest.mark.parametrize(
    ("args", "named"), [(("a",), {}), ((), {}), ((), {"name": "a", "unknown": 1})]
)
def test_wrong_arguments_are_refused(place: Any, args: Any, named: Any):
    with pytest.raises(TypeError, match=f"{place.__name__}.__init__"):
        place(*args, **named)


@BOTH
def test_equal_is_who_has_equal_fields_that_count(place: Any):
    assert place(name="a") == place(name="a", secret="other")
    assert place(name="a") != place(name="b")
    assert place(name="a") != "a"
    assert place.__eq__(place(name="a"), "a") is NotImplemented


def test_hashes_agree_with_equality():
    assert hash(LeanPoint(1, 2)) == hash(LeanPoint(1, 2)) == hash((1, 2))
    assert len({LeanPoint(1), LeanPoint(1), LeanPoint(2)}) == 2
    assert LeanTally.__hash__ is None


@BOTH
def test_what_is_frozen_cannot_be_changed(place: Any, monkeypatch: pytest.MonkeyPatch):
    one = place(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        one.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del one.name
    assert one.name == "a"


@BOTH
def test_values_show_their_fields(place: Any):
    assert repr(place(name="a")) == f"{place.__name__}(name='a', number=3, tags=[])"


@BOTH
@pytest.mark.parametrize("module", [dataclasses, dataclassing])
def test_values_are_copied_with_changes(place: Any, module: Any):
    if (place, module) == (RealPlace, dataclassing):
        pytest.skip("values of the real module are the real module's business")
    one = place(name="a", tags=["x"])
    changed = module.replace(one, number=9)
    assert (changed.name, changed.number, changed.tags) == ("a", 9, ["x"])
    assert [each.name for each in module.fields(one)] == ["name", "number", "tags", "secret"]
    assert module.is_dataclass(one)
    assert module.is_dataclass(place)


@BOTH
def test_values_survive_copying_and_pickling(place: Any):
    one = place(name="a", tags=["x"])
    assert copy.copy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one


@TALLIES
def test_what_a_class_does_after_its_making_is_done(tally: Any):
    one = tally(2, bad=3)
    assert one.sum == 5
    one.bad = 4
    assert (one.bad, tally.__match_args__) == (4, ("good", "bad"))
    with pytest.raises(AttributeError):
        one.unknown = 1
    with pytest.raises(ValueError, match="init=False"):
        (dataclasses if tally is RealTally else dataclassing).replace(one, sum=1)


def test_a_class_has_the_fields_of_its_base():
    deep = LeanDeep(1, z=3)
    assert (deep.x, deep.y, deep.z) == (1, 0, 3)
    assert deep != LeanPoint(1)
    assert LeanDeep.__slots__ == ("z",)
    assert repr(deep) == "LeanDeep(x=1, y=0, z=3)"


def test_what_is_not_known_is_left_to_the_real_one():
    @dataclassing.dataclass(order=True)
    class Ordered:
        size: int
        names: list[str] = dataclassing.field(default_factory=list)

    assert Ordered(1) < Ordered(2)
    assert Ordered(1).names == []
    assert isinstance(Ordered.__dataclass_fields__["size"], dataclasses.Field)  # type: ignore[attr-defined]


DESCRIBE = """
import json, sys
{beginning}
import dataclasses
import uphold.daemon.serving
import uphold.daemon.left_overs
def described(kind):
    every = kind.__dataclass_fields__.values()
    missing = sys.modules["dataclasses"].MISSING
    return [
        [
            [
                each.name, each.type, each.init, each.repr, each.compare,
                each.default is missing, each.default_factory is missing,
                each._field_type is dataclasses._FIELD and each.kw_only,
            ]
            for each in every
        ],
        kind.__match_args__, kind.__slots__, kind.__hash__ is None, kind.__qualname__, kind.__doc__,
        kind.__dataclass_params__.frozen,
    ]
found = {{
    f"{{name}}.{{kind.__qualname__}}": described(kind)
    for name, module in sorted(sys.modules.items())
    if name.startswith("uphold.")
    for kind in vars(module).values()
    if isinstance(kind, type) and "__dataclass_fields__" in vars(kind)
}}
print(json.dumps([type(sys.modules["dataclasses"]).__name__, found]))
"""


def test_all_classes_of_the_supervisor_are_as_the_real_module_would_make_them():
    lean, real = (
        subprocess.run(
            [sys.executable, "-I", "-c", DESCRIBE.format(beginning=beginning)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for beginning in ("from uphold.daemon.sparing import spare; spare()", "")
    )
    assert lean.replace('["Late"', '["module"') == real
    assert lean.startswith('["Late"')
    assert "uphold.core.statuses.SlotStatus" in lean


def test_values_of_classes_that_the_real_module_made_are_understood_too():
    import dataclasses

    real = dataclasses.make_dataclass("Real", [("a", int), ("b", int, 2)], frozen=True)
    assert [each.name for each in dataclassing.fields(real)] == ["a", "b"]
    assert dataclassing.replace(real(1), b=3) == real(1, 3)
