"""Structs behave as the dataclasses that they are declared as."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from instance_catalog import dataclass as structs
from instance_catalog.dataclass import dataclass, field, fields, replace


class Named:
    __slots__ = ()

    name: str

    @property
    def title(self) -> str:
        return self.name.title()


@dataclass(frozen=True, slots=True, order=True)
class Ordered(Named):
    name: str
    count: int = 0
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    name: str
    notes: list[str] = field(default_factory=list, compare=False)
    text: str = field(default="", repr=False)


@dataclass(slots=True, eq=False)
class Counter:
    count: int = 0


@dataclass(frozen=True)
class Square:
    side: int

    @cached_property
    def area(self) -> list[int]:
        return [self.side**2]


@dataclass(frozen=True, slots=True, eq=False)
class Length:
    count: int
    unit: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Length) and self.centimetres == other.centimetres

    def __hash__(self) -> int:
        return hash(self.centimetres)

    @property
    def centimetres(self) -> int:
        return self.count * (100 if self.unit == "m" else 1)


@dataclass(frozen=True, slots=True)
class Filed:
    name: str
    pages: tuple[str, ...] = ()
    origin: str = field(default="", compare=False)

    def __hash__(self) -> int:
        return hash(self.name)


@dataclasses.dataclass(frozen=True)
class Standard:
    name: str
    size: int = dataclasses.field(default=1, init=False)


def test_values_are_equal_and_hash_by_their_fields() -> None:
    assert Ordered("a", 1) == Ordered("a", 1, ()) != Ordered("a", 2)
    assert len({Ordered("a"), Ordered("a"), Ordered("b")}) == 2
    assert sorted([Ordered("b", 0), Ordered("a", 2), Ordered("a", 1)])[0] == Ordered("a", 1)


def test_the_properties_of_a_base_without_fields_are_there() -> None:
    assert Ordered("gpu").title == "Gpu"
    assert not hasattr(Ordered("gpu"), "__dict__")


def test_a_field_that_is_not_compared_counts_neither_in_equality_nor_in_the_hash() -> None:
    assert Marked("a", ["x"]) == Marked("a", ["y"])
    assert hash(Marked("a", ["x"])) == hash(Marked("a"))
    assert Marked("a") != Marked("b")
    assert Marked("a", text="x") != Marked("a", text="y")
    assert Marked("a") != "a"
    assert not Marked("a", ["x"]) != Marked("a", ["y"])  # noqa: SIM202


def test_a_hash_of_its_own_is_kept_beside_fields_that_are_not_compared() -> None:
    assert hash(Filed("a", ("x",), origin="f")) == hash("a")
    assert Filed("a", ("x",), origin="f") == Filed("a", ("x",)) != Filed("a", ("y",))


def test_equality_of_its_own_decides_inequality_too() -> None:
    assert Length(1, "m") == Length(100, "cm")
    assert not Length(1, "m") != Length(100, "cm")  # noqa: SIM202
    assert Length(1, "m") != Length(1, "cm")


def test_a_field_that_is_not_shown_is_left_out_of_the_text() -> None:
    assert repr(Marked("a", text="secret")) == "Marked(name='a', notes=[])"
    assert repr(Ordered("a")) == "Ordered(name='a', count=0, tags=())"


def test_each_instance_has_a_default_of_its_own() -> None:
    first, second = Marked("a"), Marked("a")
    first.notes.append("x")
    assert second.notes == []


def test_frozen_values_refuse_changes() -> None:
    with pytest.raises(AttributeError):
        Ordered("a").count = 1  # type: ignore[misc]


def test_without_eq_values_are_equal_to_themselves_alone() -> None:
    counter = Counter()
    counter.count += 1
    assert counter != Counter(1)
    assert counter == counter
    assert len({counter, Counter(1)}) == 2


def test_without_slots_properties_are_cached() -> None:
    square = Square(3)
    assert square.area is square.area
    assert replace(square, side=4).area == [16], "a copy computes its own"


def test_replace_changes_either_kind() -> None:
    assert replace(Ordered("a", 1), count=2) == Ordered("a", 2)
    assert replace(Standard("a"), name="b") == Standard("b")
    with pytest.raises(TypeError):
        replace(Ordered("a"), cuont=2)  # type: ignore[call-arg]


def test_fields_of_either_kind_have_names() -> None:
    assert [found.name for found in fields(Ordered)] == [found.name for found in fields(Ordered("a"))]
    assert [found.name for found in fields(Ordered)] == ["name", "count", "tags"]
    assert [found.name for found in fields(Standard)] == ["name", "size"]


def test_values_survive_pickling() -> None:
    value = Ordered("a", 1, ("x",))
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_base_that_compares_in_its_own_way_is_refused() -> None:
    with pytest.raises(TypeError, match="would not compare as its base does"):

        @dataclass(frozen=True, slots=True)
        class Labelled(Marked):
            label: str = ""


@pytest.mark.parametrize("declare", [dataclasses.field, field])
def test_what_a_struct_cannot_do_is_refused(declare: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"is ordered|mixes the two modules"):

        @structs.dataclass(order=True, slots=True)
        class Unordered:
            name: str = declare(default="", compare=False)
