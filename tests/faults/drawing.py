"""How schedules are drawn: each one afresh.

Left to itself, Hypothesis draws a schedule and then spends five more on small changes of it. Of a failure that is what
finds the smallest example; of schedules that go well it is the same schedule again: two thirds of a run. A backend of
its own turns the changes off, as for any backend that draws its choices itself, and a failure is made smaller all the
same. See "Alternative backends" in Hypothesis' reference.
"""

from __future__ import annotations

from typing import Final

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

AFRESH: Final = "foreslice-afresh"


class Afresh(HypothesisProvider):
    """Hypothesis' own choices, and nothing that follows from those before."""


AVAILABLE_PROVIDERS[AFRESH] = f"{Afresh.__module__}.{Afresh.__qualname__}"
