"""Of each object, the other store may ask for the last state alone."""

from __future__ import annotations

from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.parsed import Parsed

NAME: Final = ("pods", "default/p")
EARLIER: Final[Object] = {"metadata": {"name": "p"}}
LATER: Final[Object] = {"metadata": {"name": "p"}}


def test_a_value_is_given_once_and_only_for_the_very_object() -> None:
    parsed = Parsed()
    parsed.keep(NAME, EARLIER, ("value", ()))
    assert parsed.take(NAME, LATER) is None
    assert parsed.take(NAME, EARLIER) == ("value", ())
    assert parsed.take(NAME, EARLIER) is None


def test_a_later_state_takes_the_place_of_an_earlier_one() -> None:
    parsed = Parsed()
    parsed.keep(NAME, EARLIER, ("earlier", ()))
    parsed.keep(NAME, LATER, ("later", ()))
    assert parsed.take(NAME, EARLIER) is None
    assert parsed.take(NAME, LATER) == ("later", ())


def test_an_object_that_was_deleted_is_forgotten() -> None:
    parsed = Parsed()
    parsed.keep(NAME, EARLIER, ("value", ()))
    parsed.forget(NAME)
    assert parsed.take(NAME, EARLIER) is None
