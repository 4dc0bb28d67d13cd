"""How schedules are drawn: each one afresh, and from the seed alone.

Left to itself, Hypothesis draws a schedule and then spends five more on small changes of it. Of a failure that is what
finds the smallest example; of schedules that go well it is the same schedule again: two thirds of a run. A backend of
its own turns the changes off, as for any backend that draws its choices itself, and a failure is made smaller all the
same. See "Alternative backends" in Hypothesis' reference.

Hypothesis also draws numbers that it finds in the source of the modules of this repository, which it reads for that. A
seed would draw other schedules after each change of any of them.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

AFRESH: Final = "foreslice-afresh"


class Afresh(HypothesisProvider):
    """Hypothesis' own choices, and nothing that follows from those before or from what our modules say."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:  # type: ignore[override]
        """None that we know of is worth more than another."""


AVAILABLE_PROVIDERS[AFRESH] = f"{Afresh.__module__}.{Afresh.__qualname__}"
