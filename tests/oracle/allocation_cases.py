"""Random allocation questions: nodes, classes, slices, claims and allocated claims, as an API server would store them.

Small on purpose: a handful of devices meets as many rules as hundreds do, and the answer comes in a millisecond. What
upstream leaves to chance is not drawn; docs/fidelity.md lists it with the reasons.
"""

from __future__ import annotations

from random import Random

from tests.oracle.claims import Demand
from tests.oracle.devices import DRIVERS, Supply
from tests.oracle.upstream import Json

# Never DRAConsumableCapacity and the binding conditions together: without both, kube-scheduler takes another allocator
# (stable), which walks through pools in the random order of a Go map.
GATES = (
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "PartitionableDevices",
    "PrioritizedList",
)


def allocation_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return allocation_drawn(Random(seed))


def allocation_drawn(rng: Random) -> Json:
    """A question made of whatever `rng` says, which may be Hypothesis."""
    supply = Supply(rng)
    slices = [piece for index in range(rng.choice((1, 2, 2, 3, 4))) for piece in supply.pool(index)]
    rng.shuffle(slices)
    demand = Demand(rng, [piece["spec"]["driver"] for piece in slices] or list(DRIVERS))
    return {
        "node": supply.node,
        "classes": demand.classes(),
        "slices": slices,
        "claims": [demand.claim(f"c{index}") for index in range(rng.choice((1, 1, 1, 1, 2, 3)))],
        "held": demand.held(slices),
        "off": [rng.choice(GATES)] if rng.random() < 0.06 else [],
    }
