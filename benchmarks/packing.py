"""What a plan costs and how long it takes, beside first-fit decreasing, the packing that most tools use.

python -m benchmarks.packing [--pods 100] [--seed 0]. Both sides are whole plans for the same pods over the shipped
catalog and its prices: same hypothetical nodes, same allocator, same replay of the result. Only the function that picks
the nodes differs. Pods are drawn, so that another seed is another case.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, TypeAlias
from unittest.mock import patch

from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.first_fit import solve_by_first_fit
from autoscaler.planning.packing.problem import Budget, Oracle, Problem, Solution, State
from autoscaler.planning.packing.solve import solve
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
Solve: TypeAlias = Callable[[Problem, Oracle[State], Budget], Solution]
Want: TypeAlias = tuple[int, str, int]  # devices, expression, CPUs


def product(name: str) -> str:
    """A selector of one model."""
    return f'device.attributes["gpu.nvidia.com"].productName.contains("{name}")'


def memory(least: str) -> str:
    """A selector of devices with at least that much memory."""
    return f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{least}")) >= 0'


# Name to what its pods are drawn from.
WORKLOADS: Final[dict[str, Sequence[Want]]] = {
    "one GPU each, by memory": [(1, memory(size), cpus) for size in ("14Gi", "40Gi") for cpus in (2, 4, 7)],
    "1 to 8 H100": [(count, product("H100"), 2 * count) for count in (1, 1, 2, 4, 8)],
    "all sorts, H100 and A100 among them": [
        (1, memory("14Gi"), 3),
        (1, memory("40Gi"), 6),
        (2, memory("20Gi"), 8),
        *((count, product(model), 4 * count) for model in ("A100", "H100") for count in (1, 2, 4)),
    ],
}


def snapshot(wants: Sequence[Want]) -> Snapshot:
    """Pending pods that want this, each with a claim of its own."""
    pods, claims = [], {}
    for index, (count, expression, cpus) in enumerate(wants):
        name = f"pod-{index}"
        request = DeviceRequest("gpu", "gpu.nvidia.com", (Selector(expression),), count=count)
        claim = ResourceClaim("default", name, (request,), uid=f"claim-{index}")
        claims[claim.key] = claim
        box = Container("main", FrozenMap({"cpu": Quantity.parse(str(cpus))}))
        pods.append(Pod("default", name, uid=name, containers=(box,), claims=(PodClaim("gpu", name),)))
    classes = tuple(
        DeviceClass(facts.name, tuple(Selector(text) for text in facts.selectors))
        for facts in builtin_device_classes(REFERENCE)
    )
    return Snapshot(pods=tuple(pods), claims=FrozenMap(claims), classes=classes)


def first_fit(problem: Problem, oracle: Oracle[State], budget: Budget) -> Solution:
    """The packing to compare with; it needs no budget."""
    return solve_by_first_fit(problem, Fillings(problem, oracle))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole plan with some packing: dollars an hour and number of its nodes, pods placed, CPU seconds."""

    usd_per_hour: Decimal
    nodes: int
    placed: int
    seconds: float


def measured(state: Snapshot, catalog: Catalog, packing: Solve[State]) -> Outcome:
    """The plan for `state` when `packing` picks the nodes."""
    with patch("autoscaler.planning.placement.purchases.solve", packing):
        started = time.process_time()
        plan = plan_for(state, catalog, Policy(), NOW)
        seconds = time.process_time() - started
    cost = sum((node.usd_per_hour or Decimal(0) for node in plan.launches), Decimal(0))
    return Outcome(cost, len(plan.launches), len(plan.placements), seconds)


def line(name: str, ours: Outcome, theirs: Outcome) -> str:
    """One row; ratios are the baseline's figure through ours, above 1 is better than the baseline."""
    assert ours.placed == theirs.placed, "costs of different pods cannot be compared"
    cost, seconds = theirs.usd_per_hour / ours.usd_per_hour, theirs.seconds / ours.seconds
    return (
        f"  {name:<36} {ours.placed:>5} pods {ours.usd_per_hour:>9.2f} $/h {cost:>6.3f}x"
        f" {ours.nodes:>5} nodes {theirs.nodes / ours.nodes:>5.2f}x {ours.seconds:>6.2f} s {seconds:>5.2f}x"
    )


def main() -> None:
    """Draw the pods, plan, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pods", type=int, default=100, help="of each workload")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn")
    options = parser.parse_args()
    catalog, draw = load_catalog(), random.Random(options.seed)
    measured(snapshot([]), catalog, solve)  # what every process does once is nobody's
    print("plans beside first-fit decreasing; a ratio above 1 is better than that")
    for name, wants in WORKLOADS.items():
        state = snapshot(draw.choices(wants, k=options.pods))
        theirs, ours = (measured(state, catalog, packing) for packing in (first_fit, solve))
        print(line(name, ours, theirs), flush=True)


if __name__ == "__main__":
    main()
