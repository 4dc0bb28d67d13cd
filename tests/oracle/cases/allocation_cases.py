"""Random allocation questions: nodes, classes, slices, claims and allocated claims, as an API server would store them.

Small on purpose: a handful of devices meets as many rules as hundreds do, and the answer comes in a millisecond. What
upstream leaves to chance is not drawn; docs/fidelity.md lists it with the reasons.
"""

from __future__ import annotations

from random import Random

from tests.oracle.cases.claims import Demand
from tests.oracle.cases.devices import DRIVERS, Supply
from tests.oracle.cases.long_names import lengthened
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
_LONG = 0.08


def allocation_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return allocation_drawn(Random(seed))


def allocation_drawn(rng: Random) -> Json:
    """A question made of whatever `rng` says, which may be Hypothesis."""
    return _drawn(rng, pools=rng.choice((1, 2, 2, 3, 4)), lists=False)


def list_case(seed: str) -> Json:
    """A question about devices whose attributes are lists, with the gate for them."""
    return list_drawn(Random(seed))


def list_drawn(rng: Random) -> Json:
    """The same of whatever `rng` says."""
    return {**_drawn(rng, pools=rng.choice((1, 2, 2, 3)), lists=True), "lists": True}


def pool_case(seed: str) -> Json:
    """A question that the default gates of 1.34 leave, about one pool: there, several come in the order of a Go map."""
    return pool_drawn(Random(seed))


def pool_drawn(rng: Random) -> Json:
    """The same of whatever `rng` says."""
    case = _drawn(rng, pools=1, lists=False)
    case["off"] = [rng.choice(("AdminAccess", "PrioritizedList"))] if rng.random() < 0.06 else []
    # Not modelled, as docs/fidelity.md says: counters, and All behind another alternative.
    case["slices"] = [slice_ for slice_ in case["slices"] if "sharedCounters" not in slice_["spec"]]
    for slice_ in case["slices"]:
        slice_["spec"]["pool"]["resourceSliceCount"] = rng.choice((*(len(case["slices"]),) * 9, 2))
        for device in slice_["spec"]["devices"]:
            for field in ("allowMultipleAllocations", "bindsToNode"):
                device.pop(field, None)  # behind gates that are off: the API server drops them
    for claim in case["claims"]:
        devices = claim["spec"]["devices"]
        # Behind a gate that is off there: the API server drops the one and refuses the other.
        devices["constraints"] = [one for one in devices.get("constraints", ()) if "matchAttribute" in one]
        for request in devices["requests"]:
            for exact in (request.get("exactly", {}), *request.get("firstAvailable", ())):
                exact.pop("capacity", None)
            for later in request.get("firstAvailable", ())[1:]:
                later.update(allocationMode="ExactCount", count=1)
    return case


def _drawn(rng: Random, *, pools: int, lists: bool) -> Json:
    supply = Supply(rng, lists=lists)
    slices = [slice_ for index in range(pools) for slice_ in supply.pool(index)]
    rng.shuffle(slices)
    drivers = [slice_["spec"]["driver"] for slice_ in slices] or list(DRIVERS)
    demand = Demand(rng, drivers, stored=True, lists=lists)
    case: Json = {
        "node": supply.node,
        "classes": demand.classes(),
        "slices": slices,
        "claims": [demand.claim(f"c{index}") for index in range(rng.choice((1, 1, 1, 1, 2, 3)))],
        "held": demand.held(slices),
        "off": [rng.choice(GATES)] if rng.random() < 0.06 else [],
    }
    return lengthened(case) if rng.random() < _LONG else case
