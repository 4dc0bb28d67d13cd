"""The claims that are kept from one snapshot to the next are those that a look at all of them finds."""

from __future__ import annotations

from random import Random

import pytest

from autoscaler.dra.claims.finished_consumers import without_finished_consumers
from autoscaler.dra.claims.kept_claims import ClaimMemory
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap

UIDS = [f"pod-{number}" for number in range(6)]
GROUP = Gang("ns", "group", "PodGroup", 1, uid="group-1")


class Life:
    """Claims, pods that end, and a PodGroup that another one replaces. What does not change stays the same object."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.claims: dict[str, ResourceClaim] = {}
        self.done: frozenset[str] = frozenset()
        self.groups: FrozenMap[str, Gang] = FrozenMap()

    def change(self) -> None:
        key = f"ns/c-{self.draw.randrange(8)}"
        match self.draw.randrange(8):
            case 0:
                self.done ^= {self.draw.choice(UIDS)}
            case 1:
                uid = self.draw.choice(("group-1", "group-2"))
                self.groups = FrozenMap(self.draw.choice(({}, {GROUP.key: replace(GROUP, uid=uid)})))
            case 2:
                self.claims.pop(key, None)
            case 3 if key in self.claims:
                self.claims[key] = replace(self.claims[key], reserved_for=self.consumers())
            case _:
                self.claims[key] = self.drawn(key.removeprefix("ns/"))

    def drawn(self, name: str) -> ResourceClaim:
        device = AllocatedDevice("r", "driver", f"pool-{self.draw.randrange(3)}", f"gpu-{self.draw.randrange(3)}")
        return ResourceClaim(
            "ns",
            name,
            (),
            allocation=self.draw.choice((None, Allocation((device,)))),
            reserved_for=self.consumers(),
            controller=self.draw.choice(("", *UIDS)),
            deleting=self.draw.random() < 0.1,
        )

    def consumers(self) -> tuple[Consumer, ...]:
        group = Consumer("podgroups", GROUP.name, self.draw.choice(("group-1", "group-2")), API_GROUP)
        pods = [Consumer("pods", uid, uid) for uid in self.draw.sample(UIDS, self.draw.choice((0, 1, 1, 1, 2)))]
        return (*pods, group) if self.draw.random() < 0.2 else tuple(pods)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_kept_is_what_a_look_at_all_claims_finds(seed: int) -> None:
    life, memory = Life(Random(seed)), ClaimMemory()
    lost = before = 0
    for _ in range(100):
        for _ in range(life.draw.randrange(3)):
            life.change()
        claims = FrozenMap(sorted(life.claims.items()))
        fresh = without_finished_consumers(claims, life.done, life.groups)
        found, allocated = memory.of(claims, life.done, life.groups)
        assert list(found.items()) == [(key, fresh.get(key, claim)) for key, claim in claims.items()]
        assert allocated == AllocatedState.of(found.values())
        lost += len(fresh) > 0
        before += len(fresh) < len(claims)
    assert min(lost, before) > 10


def test_a_claim_that_did_not_change_stays_the_same_object() -> None:
    life, memory = Life(Random(1)), ClaimMemory()
    held = replace(life.drawn("c"), reserved_for=(Consumer("pods", "pod-1", "pod-1"),), deleting=False)
    claims = {held.key: held}
    (first,) = memory.of(claims, frozenset({"pod-1"}), {})[0].values()
    (second,) = memory.of(dict(claims), frozenset({"pod-1"}), {})[0].values()
    assert first is second is not held
