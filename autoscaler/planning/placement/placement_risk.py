"""Checks whether kube-scheduler can place every pod of a ProvisioningRequest on its nodes, whatever node it chooses.

The nodes of a request have one node label, so kube-scheduler chooses among all of them. Pods of different sizes may
take places of each other: small ones spread over nodes that the large ones need completely. The plan has a packing that
places all; this module tries other orders and unfavourable ties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.requested_capacity import ProvisioningRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import owner_of, pod_set_of
from autoscaler.scheduling.schedule import adversarial, first, schedule
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace

# The unfavourable order costs a check of every node for every pod, for each of its choices.
MOST: Final = 16


def pods_at_risk(request: ProvisioningRequest, snapshot: Snapshot, nodes: Collection[str]) -> Mapping[str, int]:
    """The number of pods of each pod set that may have no place; {} if every pod certainly has one.

    Equal pods never take places that the others need, so only requests with several pod sets are checked; and only
    small ones, because nothing else is decided meanwhile.
    """
    if len(request.pod_sets) < 2 or request.pods > MOST:
        return {}
    pods = _own_pods(request, snapshot)
    world = World.of(snapshot)
    world = replace(world, nodes={name: state for name, state in world.nodes.items() if name in nodes})
    most: Counter[str] = Counter()
    for order in (pods, pods[::-1]):
        for choose in (first, adversarial):
            left = Counter(pod_set_of(pod.name)[0] for pod in schedule(order, world, choose).left)
            most |= left
    return dict(most)


def _own_pods(request: ProvisioningRequest, snapshot: Snapshot) -> list[Pod]:
    """The pods that will be created, without the spare ones that only reserve room."""
    counts = {pod_set.template: pod_set.count for pod_set in request.pod_sets}
    found = []
    for pod in snapshot.pods:
        owner = owner_of(pod.key)
        if owner is not None and (owner.kind, owner.key) == ("ProvisioningRequest", request.key):
            template, index = pod_set_of(pod.name)
            if index < counts.get(template, 0):
                found.append(pod)
    return found
