"""A node that passed the filters, and the normalization of scores."""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.model.verdict import Fits
from autoscaler.scheduling.node_state import NodeState
from instance_catalog.dataclass import dataclass

MOST = 100  # MaxNodeScore


@dataclass(frozen=True, slots=True)
class Feasible:
    """A node with the allocations of the pod's claims there."""

    state: NodeState
    verdict: Fits


def normalized(raw: Sequence[int], *, reverse: bool = False) -> list[int]:
    """Scores from 0 to the highest as 0 to 100, or 100 to 0 (DefaultNormalizeScore in plugins/helper, v1.36.3)."""
    highest = max(raw, default=0)
    if highest == 0:
        return [MOST if reverse else score for score in raw]
    scaled = [MOST * score // highest for score in raw]
    return [MOST - score for score in scaled] if reverse else scaled
