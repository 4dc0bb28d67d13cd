"""Devices in use that are kept from one snapshot to the next are those that a count from the start finds."""

from __future__ import annotations

from random import Random

import pytest

from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.inventory.kept_use import UseMemory, changed_keys
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

AMOUNTS = ("1Gi", "1024Mi", "512Mi", "1500M")


def result(draw: Random) -> AllocatedDevice:
    """A device of one of a few pools: given whole, watched only, or shared."""
    pool, device = f"pool-{draw.randrange(5)}", f"gpu-{draw.randrange(3)}"
    whole = AllocatedDevice("r", draw.choice(("one", "two")), pool, device)
    match draw.randrange(4):
        case 0:
            return replace(whole, admin_access=True)
        case 1:
            amount = FrozenMap({"memory": Quantity.parse(draw.choice(AMOUNTS))})
            return replace(whole, share_id=f"share-{draw.random()}", consumed_capacity=draw.choice((None, amount)))
    return whole


def drawn(draw: Random, name: str) -> ResourceClaim:
    """A claim that holds up to three devices, or none yet."""
    devices = tuple(result(draw) for _ in range(draw.randrange(4)))
    return ResourceClaim("ns", name, (), allocation=draw.choice((None, Allocation(devices), Allocation(devices))))


def changed(draw: Random, claims: dict[str, ResourceClaim]) -> dict[str, ResourceClaim]:
    """The claims after one came, went, or got other devices; by name, as a snapshot has them."""
    found, name = dict(claims), f"c-{draw.randrange(12)}"
    if draw.random() < 0.3:
        found.pop(f"ns/{name}", None)
    else:
        found[f"ns/{name}"] = drawn(draw, name)
    return dict(sorted(found.items()))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_kept_is_what_would_be_counted(seed: int) -> None:
    draw, memory, claims = Random(seed), UseMemory(), dict[str, ResourceClaim]()
    before, same, other = AllocatedState(), 0, 0
    for _ in range(60):
        earlier = claims
        for _ in range(draw.randrange(3)):
            claims = changed(draw, claims)
        claims = dict(claims)
        found, counted = memory.of(claims, changed_keys(earlier, claims)), AllocatedState.of(claims.values())
        assert found == counted
        for pool, use in found.pools.items():
            written = {d: {n: str(q) for n, q in amounts.items()} for d, amounts in use.consumed.items()}
            again = counted.pools[pool].consumed.items()
            assert written == {d: {n: str(q) for n, q in amounts.items()} for d, amounts in again}
            same += before.pools.get(pool) is use
            other += before.pools.get(pool) is not use
        before = found
    assert min(same, other) > 5


def test_of_claims_that_are_gone_nothing_is_kept() -> None:
    memory, draw = UseMemory(), Random(1)
    claims = {f"ns/c-{number}": drawn(draw, f"c-{number}") for number in range(9)}
    assert memory.of(claims, claims.keys()).pools
    assert memory.of({}, changed_keys(claims, {})) == AllocatedState()
    assert not memory._holders
