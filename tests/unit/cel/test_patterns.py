"""What regular expressions of one tenant may cost: a large program or a long search is not tried."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.values import Unknown
from autoscaler.cel.library.patterns import IMPLEMENTATIONS, SINGLETONS

_MATCHES, _FIND = SINGLETONS["matches"], IMPLEMENTATIONS["string_find_string"]
_FIND_ALL = IMPLEMENTATIONS["string_find_all_string"]


@pytest.mark.parametrize("pattern", [r"(\pL?){1000}(\pL?){1000}(\pL?){1000}b7", r"\pL{499}"])
def test_a_large_program_is_not_run(pattern: str) -> None:
    assert isinstance(_MATCHES("a", pattern), Unknown)
    assert isinstance(_MATCHES("a", pattern), Unknown)  # nor when it is remembered


@pytest.mark.parametrize("search", [_MATCHES, _FIND, _FIND_ALL])
def test_nor_is_a_long_text_searched_with_many_instructions(search: object) -> None:
    assert callable(search)
    pattern = "(a?){1000}" * 10
    assert isinstance(search("a" * 8000, pattern), Unknown)
    assert not isinstance(search("a" * 64, pattern), Unknown)  # as long as a value of an attribute
    assert not isinstance(search("a" * 100_000, "^a+$"), Unknown)


def test_nor_again_from_every_place_of_it() -> None:
    """Each search for the long alternative looks at all that follows."""
    assert isinstance(_FIND_ALL("a" * 3000, "a.*z|a"), Unknown)
    assert _FIND_ALL("a1b22c333", "[0-9]+") == ["1", "22", "333"]
