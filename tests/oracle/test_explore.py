"""Hypothesis finds a difference and makes it small; no Go is needed for that."""

from __future__ import annotations

from instance_catalog.dataclass import replace
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.explore import DifferenceError, smallest_difference
from tests.oracle.kinds import KINDS
from tests.oracle.upstream import RELEASES, Given, Json, Upstream

RELEASE = RELEASES["1.36"]


class Agreeable(Upstream):
    """An upstream that has one answer to everything."""

    def __init__(self) -> None:
        super().__init__(RELEASE.program)

    def ask(self, question: Json) -> None:
        assert question["seconds"] > 0

    def answer(self) -> Json:
        return {"outcome": "fits"}


def differing(text: str, most: int) -> DifferenceError | None:
    """The difference found by a simulator that is wrong about every case in which a text occurs."""
    kind = replace(
        KINDS["selector"],
        simulated=lambda case, _: Given({"outcome": "no_fit" if text in str(case) else "fits"}, 0),
        differences=lambda found, expected: () if found == expected else (Difference(Field.OUTCOME, "wrong"),),
    )
    return smallest_difference(kind, RELEASE, Agreeable(), most=most, start="fixed")


def test_a_difference_is_found_and_made_small() -> None:
    # Hypothesis draws constants from the modules that are loaded, so other tests in the process change its cases. A
    # quarter of its seeds has no quantity in 200 cases.
    found = differing("quantity", most=2000)
    assert found is not None
    assert "quantity" in str(found.case)
    assert len(str(found.case)) < 2000


def test_nothing_is_found_where_nothing_differs() -> None:
    assert differing("no such text", most=200) is None
