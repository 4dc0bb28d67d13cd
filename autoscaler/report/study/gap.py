"""The share of the gap between the best greedy run and the lower bound of a study that each run closes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from autoscaler.report.study.outcome import Outcome, outcome_document
from instance_catalog.dataclass import dataclass

_GREEDY: Final = "greedy"


@dataclass(frozen=True, slots=True)
class Gap:
    """`at_least`: the lower bound of the study's cost in dollars; `greedy`: the cheapest greedy run that is
    complete, None if there is none."""

    at_least: Decimal
    greedy: Outcome | None

    @staticmethod
    def of(at_least: Decimal, outcomes: Sequence[Outcome]) -> Gap:
        """The gap that these runs can close."""
        complete = [outcome for outcome in outcomes if outcome.policy == _GREEDY and outcome.complete]
        return Gap(at_least, min(complete, key=lambda outcome: outcome.usd, default=None))

    def closed(self, outcome: Outcome) -> float | None:
        """The share of the gap that the run closes: 0 for the best greedy one, 1 at the bound, negative if more
        expensive.

        None without meaning: no complete run was greedy, there is no gap, or this run is not complete.
        """
        if self.greedy is None or not outcome.complete or self.greedy.usd <= self.at_least:
            return None
        return float((self.greedy.usd - outcome.usd) / (self.greedy.usd - self.at_least))

    def as_quick(self, outcome: Outcome) -> bool:
        """True if the 95th percentile of its waiting times is not above that of the best greedy run."""
        if self.greedy is None:
            return False
        wait, least = outcome.wait(95), self.greedy.wait(95)
        return wait is not None and least is not None and wait <= least


def study_document(name: str, outcomes: Sequence[Outcome], gap: Gap, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """All variants of one study as plain data. `left_out`: a line for each kind of tasks that is not in the study."""
    return {
        "apiVersion": "simulation.foreslice.dev/v1alpha1",
        "kind": "SimulationResult",
        "name": name,
        "leftOut": list(left_out),
        "usdAtLeast": f"{gap.at_least:.2f}",
        "runs": [outcome_document(outcome) | {"gapClosed": _share(gap.closed(outcome))} for outcome in outcomes],
    }


def _share(closed: float | None) -> float | None:
    return None if closed is None else round(closed, 4)
