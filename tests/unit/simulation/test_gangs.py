"""A few of the random gangs of gangs.py: each gets all of its nodes or none, and none stays behind."""

from __future__ import annotations

import pytest

from tests.unit.simulation.gangs import run


@pytest.mark.slow
def test_gangs_get_all_or_nothing_and_leave_nothing_behind() -> None:
    outcomes = run(10)
    assert outcomes["ran"] > 2
    assert sum(outcomes[name] for name in ("ran", "failed", "never consumed", "found no room")) == 10
