"""Groups pods that must be on one node into bundles, and equal bundles into classes.

Pods that share an unallocated claim must be on the node of its devices; for those that affinity ties to one node, see
ties.py. Equal bundles request the same under other names. They form one class, so that a thousand equal pods cost one
evaluation. This module does not know nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import FirstAvailable, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.demand.scope import Scopes, pools_of
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods for one node, in the scheduler's order. `gang` is the key of their gang.

    `tied`: affinity requires that they are on one node, and kube-scheduler chooses it for the first pod alone.
    """

    pods: tuple[Pod, ...]
    tied: bool = False

    @property
    def key(self) -> str:
        """The key of the first pod, which identifies the bundle."""
        return self.pods[0].key

    @property
    def gang(self) -> str | None:
        """The key of their gang."""
        return next((pod.gang.key for pod in self.pods if pod.gang), None)

    @property
    def priority(self) -> int:
        """The highest priority of its pods."""
        return max(pod.priority for pod in self.pods)

    @property
    def turn(self) -> tuple[int, float]:
        """The sort key of bundles, like the queue of pods (Pod.turn). A bundle has the position of its last pod,
        because others may not fit beside that one."""
        return -self.priority, max(pod.created for pod in self.pods)

    @property
    def shared_claims(self) -> tuple[str, ...]:
        """Claims that more than one of the pods name."""
        named = Counter(key for pod in self.pods for key in dict.fromkeys(claim_keys(pod)))
        return tuple(key for key, pods in named.items() if pods > 1)


def has_alternatives(bundle: Bundle, claims: Mapping[str, ResourceClaim]) -> bool:
    """True if a claim of the bundle uses firstAvailable, so that fitting offerings may differ in preference."""
    keys = {key for pod in bundle.pods for key in claim_keys(pod)}
    return any(isinstance(r, FirstAvailable) for key in keys if key in claims for r in claims[key].requests)


@dataclass(frozen=True, slots=True)
class BundleClass:
    """Equal bundles, in the scheduler's order. `wants` is equal for classes whose claims request the same."""

    members: tuple[Bundle, ...]
    wants: Hashable = ()

    @property
    def sample(self) -> Bundle:
        """The bundle that represents all."""
        return self.members[0]


def bundles_of(
    pods: Sequence[Pod], claims: Mapping[str, ResourceClaim], ties: Mapping[str, str] = EMPTY
) -> tuple[Bundle, ...]:
    """Group the pods that share unallocated claims or are tied, in the order of their first pods."""
    leader = {pod.key: pod.key for pod in pods}

    def find(key: str) -> str:
        while leader[key] != key:
            key = leader[key]
        return key

    first_user: dict[str, str] = {}
    for pod in pods:
        for key in claim_keys(pod):
            if key in claims and claims[key].allocation is None:
                user = first_user.setdefault(key, pod.key)
                leader[find(pod.key)] = find(user)
    first_tied: dict[str, str] = {}
    for pod in pods if ties else ():
        if (group := ties.get(pod.key)) is not None:
            leader[find(pod.key)] = find(first_tied.setdefault(group, pod.key))
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(find(pod.key), []).append(pod)
    return tuple(_bundle(group, ties) for group in groups.values())


def _bundle(pods: list[Pod], ties: Mapping[str, str]) -> Bundle:
    return Bundle(tuple(pods), len(pods) > 1 and any(pod.key in ties for pod in pods))


def classes_of(bundles: Iterable[Bundle], snapshot: Snapshot) -> tuple[BundleClass, ...]:
    """Group equal bundles, in the order of their first members, by priority."""
    bundles = tuple(bundles)
    if not bundles:  # what every pod of the cluster selects is read otherwise
        return ()
    observed, taking = _observed_labels(snapshot), snapshot.profile.devices_take_node_amounts
    groups: dict[Hashable, list[Bundle]] = {}
    for bundle in bundles:
        groups.setdefault(_signature(bundle, snapshot.claims, observed, taking=taking), []).append(bundle)
    classes = [BundleClass(tuple(group), _wants(group[0], snapshot.claims)) for group in groups.values()]
    return tuple(sorted(classes, key=lambda c: -c.sample.priority))


def _wants(bundle: Bundle, claims: Mapping[str, ResourceClaim]) -> Hashable:
    """The requests of a bundle's claims; () without claims."""
    keys = dict.fromkeys(key for pod in bundle.pods for key in claim_keys(pod))
    return tuple(_claim_signature(claims[key]) if key in claims else key for key in keys)


def _signature(
    bundle: Bundle, claims: Mapping[str, ResourceClaim], observed: frozenset[str], *, taking: bool
) -> Hashable:
    """A value that is equal for bundles that fit on the same nodes: it has no names of pods and of their own claims.

    It has no nominations either: each pod is nominated to a node of its own, so every pod would be a class of its own.
    `taking`: devices may use amounts of the node, depending on how many containers use them.
    """
    order: dict[str, int] = {}
    for pod in bundle.pods:
        for key in claim_keys(pod):
            order.setdefault(key, len(order))
    return (
        tuple(_pod_signature(pod, order, observed) for pod in bundle.pods),
        taking and tuple(_references(pod, order) for pod in bundle.pods),
        tuple(_claim_signature(claims[key]) if key in claims else key for key in order),
    )


def _pod_signature(pod: Pod, order: Mapping[str, int], observed: frozenset[str]) -> Hashable:
    return (
        pod.namespace,
        tuple((k, v) for k, v in sorted(pod.labels.items()) if k in observed),
        # Names of containers do not affect placement, nor do limits and references to claims: see _references.
        tuple((c.requests, c.host_ports) for c in pod.containers),
        tuple((c.requests, c.host_ports, c.sidecar) for c in pod.init_containers),
        pod.overhead,
        pod.pod_requests,
        tuple(order[f"{pod.namespace}/{e.claim}"] if e.claim else e.claim for e in pod.claims),
        pod.node_selector,
        pod.affinity,
        pod.pod_affinity,
        pod.pod_anti_affinity,
        pod.topology_spread,
        pod.tolerations,
        pod.volumes,
        pod.host_network,
        pod.node_features,
        pod.scheduler_name,
        pod.priority,
        pod.gang,
        pod.expected_seconds,
        pod.awaits,
        pod.unsupported,
    )


def _references(pod: Pod, order: Mapping[str, int]) -> Hashable:
    """The claims that each container uses, and the limits for the amounts that claims add."""
    numbers = {e.name: order.get(f"{pod.namespace}/{e.claim}") for e in pod.claims if e.claim}
    return pod.pod_limits, tuple(
        (container.limits, tuple(numbers.get(name) for name in container.claims))
        for container in (*pod.init_containers, *pod.containers)
    )


def _claim_signature(claim: ResourceClaim) -> Hashable:
    """The requests of a new claim; the identity of a claim with an allocation or reservations."""
    if claim.allocation is not None or claim.deleting or claim.reserved_for:
        return claim.key
    return (claim.spec_key(), claim.controller != "")


def _observed_labels(snapshot: Snapshot) -> frozenset[str]:
    """Label keys of pods that a selector reads."""
    keys: set[str] = set()
    for selector in _selectors(snapshot):
        if selector is not None:
            keys.update(requirement.key for requirement in selector.requirements)
    return frozenset(keys)


def _selectors(snapshot: Snapshot) -> Iterable[LabelSelector | None]:
    for pod in snapshot.pods:
        if not (pod.pod_affinity or pod.pod_anti_affinity or pod.topology_spread):
            continue
        yield from (term.selector for term in (*pod.pod_affinity, *pod.pod_anti_affinity))
        yield from (spread.selector for spread in pod.topology_spread)
    for daemon_set in snapshot.daemon_sets:
        yield from (term.selector for term in daemon_set.pod.pod_anti_affinity)
    for block in snapshot.blocks:
        yield block.consumers.pod_selector
    for pool in snapshot.pools:
        yield pool.scope.pod_selector


def unserved(classes: Sequence[BundleClass], scopes: Scopes) -> dict[str, dict[int, Reason]]:
    """By pool, the classes (by index) with a pod that it does not serve, with the reason."""
    found: dict[str, dict[int, Reason]] = {}
    for pool in pools_of(scopes.snapshot):
        for item, bundle_class in enumerate(classes):
            reason = next((r for pod in bundle_class.sample.pods if (r := scopes.refusal(pool, pod))), None)
            if reason:
                found.setdefault(pool.name, {})[item] = reason
    return found
