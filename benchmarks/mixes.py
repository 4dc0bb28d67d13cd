"""What plans for pods that all differ cost beside their lower bound, and how long they take.

python -m benchmarks.mixes [--mixes 20] [--nodes 100] [--seed 0], or --pods 10000 for one large document. Each pod
has its own milli-CPU and memory, and asks for one of many kinds of claims over the shipped catalog. It asks for 2 to
14 vCPUs per GPU, so that these bind about as often as the GPUs do. Everything is drawn: another seed is another case.
The bound is the one that the plan itself gives (summary.lowerBoundUsdPerHour).
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.packing.problem import Budget
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
# A larger program for the bound than `foreslice plan` makes, so that every mix has one; its seconds are counted.
POLICY: Final = Policy(budget=Budget(bound=5_000_000))
_DRIVER: Final = "gpu.nvidia.com"
# GPU memory in MiB from which a kind asks for as much at least: the sizes of the models that are sold, and in between.
_MEMORY: Final = (4_000, 140_000)
_COUNTS: Final = (1, 1, 1, 2, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole plan: nodes, pods placed and left out, dollars an hour, its bound (None: none was found), CPU seconds."""

    nodes: int
    placed: int
    left_out: int
    usd_per_hour: Decimal
    bound: Decimal | None
    seconds: float

    @property
    def ratio(self) -> float | None:
        """The cost through the bound, at least 1."""
        return float(self.usd_per_hour / self.bound) if self.bound else None


def kinds(draw: random.Random, count: int) -> list[DeviceRequest]:
    """Requests of which no two are equal."""
    found: dict[tuple[int, int], DeviceRequest] = {}
    while len(found) < count:
        gpus, least = draw.choice(_COUNTS), draw.randint(*_MEMORY)
        selector = f'device.capacity["{_DRIVER}"].memory.compareTo(quantity("{least}Mi")) >= 0'
        found[gpus, least] = DeviceRequest("gpu", _DRIVER, (Selector(selector),), count=gpus)
    return list(found.values())


def document(draw: random.Random, *, pods: int, kinds_of_claims: int) -> Snapshot:
    """Pending pods, each with a claim, a CPU request and a memory request of its own."""
    asked = kinds(draw, kinds_of_claims)
    claims, made = {}, []
    for index in range(pods):
        request, name = draw.choice(asked), f"pod-{index}"
        claim = ResourceClaim("default", name, (request,), uid=f"claim-{index}")
        claims[claim.key] = claim
        cpu, memory = request.count * draw.randint(2_000, 14_000), request.count * draw.randint(4_000, 60_000)
        requests = FrozenMap({"cpu": Quantity.parse(f"{cpu}m"), "memory": Quantity.parse(f"{memory}Mi")})
        made.append(
            Pod("default", name, uid=name, containers=(Container("main", requests),), claims=(PodClaim("gpu", name),))
        )
    classes = tuple(
        DeviceClass(facts.name, tuple(Selector(text) for text in facts.selectors))
        for facts in builtin_device_classes(REFERENCE)
    )
    return Snapshot(pods=tuple(made), claims=FrozenMap(claims), classes=classes)


def planned(state: Snapshot, catalog: Catalog) -> Outcome:
    """The plan for it, as `foreslice plan` makes it without a pool."""
    started = time.process_time()
    plan = plan_for(state, catalog, POLICY, NOW)
    seconds = time.process_time() - started
    cost = sum((node.usd_per_hour or Decimal(0) for node in plan.launches), Decimal(0))
    bound = plan.at_least_usd_per_hour
    return Outcome(len(plan.launches), len(plan.placements), len(plan.left_out), cost, bound, seconds)


def line(name: str, found: Outcome) -> str:
    """One row."""
    ratio = "no bound" if found.ratio is None else f"{found.ratio:.4f}"
    return (
        f"  {name:<10} {found.placed:>6} pods {found.left_out:>4} left out {found.nodes:>5} nodes "
        f"{found.usd_per_hour:>10.2f} $/h {ratio:>8} {found.seconds:>7.2f} s"
    )


def mixes(seed: int, count: int, nodes: int, catalog: Catalog) -> Iterator[Outcome]:
    """Plans of at least so many nodes each; a mix that needs fewer is drawn again with more pods."""
    for index in range(count):
        draw, pods = random.Random(f"{seed}/{index}"), 2 * nodes
        found = planned(document(draw, pods=pods, kinds_of_claims=pods // 10), catalog)
        while found.nodes < nodes:
            pods += nodes
            found = planned(document(draw, pods=pods, kinds_of_claims=pods // 10), catalog)
        yield found


def main() -> None:
    """Draw the pods, plan, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mixes", type=int, default=20, help="how many random mixes")
    parser.add_argument("--nodes", type=int, default=100, help="that a mix needs at least")
    parser.add_argument("--pods", type=int, default=0, help="one document of so many pods, of 1,000 kinds, instead")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn")
    options = parser.parse_args()
    gc.disable()  # as `foreslice plan` does
    catalog = load_catalog()
    planned(document(random.Random(0), pods=1, kinds_of_claims=1), catalog)  # what every process does once
    if options.pods:
        state = document(random.Random(options.seed), pods=options.pods, kinds_of_claims=min(1000, options.pods))
        print(line("", planned(state, catalog)))
        return
    found = []
    for index, outcome in enumerate(mixes(options.seed, options.mixes, options.nodes, catalog)):
        found.append(outcome)
        gc.collect()  # what a plan leaves behind, outside of its seconds
        print(line(f"mix {index}", outcome), flush=True)
    ratios = [outcome.ratio for outcome in found if outcome.ratio is not None]
    print(f"{len(ratios)} of {len(found)} mixes have a bound; cost through bound: ", end="")
    print(f"median {statistics.median(ratios):.4f}, worst {max(ratios):.4f}" if ratios else "none")
    seconds = [outcome.seconds for outcome in found]
    print(f"CPU seconds: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")


if __name__ == "__main__":
    main()
