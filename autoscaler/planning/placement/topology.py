"""Places gangs whose pods must share a value of one node label: a zone, or an NVLink domain that does not exist yet.

Each such gang is placed alone, before everything else, in the best single domain that has no pods of the gangs before
it from which it has to be apart. A domain is identified by its label value. An NVLink domain has no value before its
launch, so every offering that is sold as such a unit is one domain of limited size. On GKE a TPU slice of several hosts
is a node pool of its own, also while it starts; without any CapacityPool every purchase is one as well. A group whose
policy keeps its machines together is one domain too (near_groups.py). So is every new node, if the label is its
hostname. For any other key that hypothetical nodes do not
have, a purchase guarantees nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from autoscaler.lifecycle.slices import slice_of
from autoscaler.model.gang import Gang
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.packing.objective import Score
from autoscaler.planning.placement.existing import Assigned, Present, assign
from autoscaler.planning.placement.near_groups import near_groups
from autoscaler.planning.placement.packing_input import Offered, PackingInput, started_members
from autoscaler.planning.placement.purchases import Buying, buy
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.hypothetical import future_node
from autoscaler.scheduling.pod_filters import term_matches
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.drivers.nvidia_gpu import is_future_clique
from instance_catalog.prediction.predict import PLACEHOLDER_NODE
from instance_catalog.types.clouds import cloud_facts, facts_of

_GEOGRAPHY = (labels.ZONE, labels.REGION)


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that share a label value: existing ones by name, candidates by index, at most `most_nodes` new ones."""

    present: frozenset[str]
    candidates: frozenset[int]
    most_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class PlacedGang:
    """A gang in its domain. `pods`: one of each kind."""

    assigned: Assigned
    buying: Buying
    pods: tuple[Pod, ...]


def gangs_of_a_domain(packing: PackingInput, dropped: Mapping[str, int]) -> list[Gang]:
    """The gangs that must be in one domain, without those that stay out."""
    gangs = [packing.snapshot.gangs[key] for key in packing.gangs if key not in dropped]
    return [gang for gang in gangs if gang.topology_key]


def place_gang(
    gang: Gang,
    packing: PackingInput,
    present: Present,
    offered: Offered,
    policy: Policy,
    settled: Sequence[PlacedGang] = (),
) -> PlacedGang | None:
    """The gang in the best domain that takes it beside those `settled` before; None if no domain does."""
    classes = {i: c for i, c in enumerate(packing.classes) if c.sample.gang == gang.key}
    refused = _refused_places(_samples(classes), packing, present, settled)
    apart = replace(offered, candidates=offered.candidates - refused)
    found = _in_best_domain(gang, classes, packing, present, apart, policy)
    # Without such a place, the launch refuses the purchases, and the gang has the reason.
    return found if found or not refused else _in_best_domain(gang, classes, packing, present, offered, policy)


def _samples(classes: Mapping[int, BundleClass]) -> tuple[Pod, ...]:
    return tuple(pod for found in classes.values() for pod in found.sample.pods)


def _refused_places(
    pods: Sequence[Pod], packing: PackingInput, present: Present, settled: Sequence[PlacedGang]
) -> frozenset[int]:
    """The candidates whose nodes share a domain with pods of other gangs that keep these pods away, or that these keep
    away from."""
    taken: dict[str, set[str]] = {}
    for other in settled if packing.pods_relate else ():
        terms = [term for one, two in product(pods, other.pods) for term in _between(one, two, present)]
        for term, values in product(terms, _labels_of(other, present) if terms else ()):
            value = values.get(term.topology_key)
            if value is not None and term.topology_key != labels.HOSTNAME and not is_future_clique(value):
                taken.setdefault(term.topology_key, set()).add(value)
    every = enumerate(packing.candidates)
    return frozenset(index for index, one in every if any(_value(one, key) in taken[key] for key in taken))


def _between(one: Pod, other: Pod, present: Present) -> Iterator[PodAffinityTerm]:
    """The anti-affinity of each pod that is about the other."""
    for pod, near in ((one, other), (other, one)):
        yield from (term for term in pod.pod_anti_affinity if term_matches(term, near, present.world))


def _labels_of(placed: PlacedGang, present: Present) -> list[Mapping[str, str]]:
    """The labels of the nodes of the gang."""
    bought = {id(purchase.candidate): purchase.candidate for purchase in placed.buying.purchases}
    new = [future_node(one, PLACEHOLDER_NODE, allocatable=FrozenMap()).labels for one in bought.values()]
    return [*new, *(present.world.nodes[entry.node].node.labels for entry in placed.assigned.placed)]


def _in_best_domain(
    gang: Gang,
    classes: Mapping[int, BundleClass],
    packing: PackingInput,
    present: Present,
    offered: Offered,
    policy: Policy,
) -> PlacedGang | None:
    best: tuple[tuple[int, Score], PlacedGang] | None = None
    for domain in _domains(gang, classes, packing, present):
        found = _in_domain(gang, classes, domain, packing, present, offered, policy)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best[1] if best else None


def _in_domain(
    gang: Gang,
    classes: Mapping[int, BundleClass],
    domain: Domain,
    packing: PackingInput,
    present: Present,
    offered: Offered,
    policy: Policy,
) -> tuple[tuple[int, Score], PlacedGang] | None:
    """The gang in one domain, with the values that compare domains: pods left out, then the score of the purchases."""
    nodes = {name: target for name, target in present.targets.items() if name in domain.present}
    assigned = assign(
        classes, replace(present, targets=nodes), packing.snapshot, now=packing.now, ledger=packing.trials.ledger
    )
    if assigned.stuck:
        return None
    placed = sum(len(entry.bundle.pods) for entry in assigned.placed)
    started = started_members(packing, {gang.key: placed})
    narrowed = replace(offered, candidates=offered.candidates & domain.candidates, most_nodes=domain.most_nodes)
    buying = buy(packing, assigned.rest, started, narrowed, policy)
    bought = sum(len(bundle.pods) for purchase in buying.purchases for bundle in purchase.bundles)
    if started[gang.key] + bought < gang.min_count:
        return None
    wanted = sum(len(bundle.pods) for c in classes.values() for bundle in c.members)
    return (wanted - placed - bought, buying.score), PlacedGang(assigned, buying, _samples(classes))


def _domains(gang: Gang, classes: Iterable[int], packing: PackingInput, present: Present) -> Iterator[Domain]:
    """The domains to try; only the domain of running members, if there are any."""
    key = gang.topology_key or ""
    values = {name: present.world.nodes[name].node.labels.get(key) for name in present.targets}
    names_groups = any(facts.group_per_type == key for facts in cloud_facts().values())
    if names_groups:
        values |= _coming_slices(values, packing.snapshot.provisioned)
    near = near_groups(key, packing.snapshot, (packing.classes[index] for index in classes))
    values |= {name: value for name, value in near.nodes.items() if name in values}
    homes = {p.node_name for p in packing.snapshot.pods if p.bound and p.gang and p.gang.key == gang.key}
    held = {near.nodes.get(node.name, node.labels.get(key)) for node in packing.snapshot.nodes if node.name in homes}
    offers: dict[tuple[str, str], set[int]] = {}
    for index, candidate in enumerate(packing.candidates):
        value = _value(candidate, key) or near.value(candidate)
        if value is not None:
            offers.setdefault((value, candidate.instance_type.cloud if key in _GEOGRAPHY else ""), set()).add(index)
    names: dict[str, set[str]] = {}
    for name, value in values.items():
        if value is not None:
            names.setdefault(value, set()).add(name)
    for value, nodes in sorted(names.items()):
        if not held or value in held:
            same = set[int]().union(*(found for (offer, _), found in offers.items() if offer == value))
            yield Domain(frozenset(nodes), frozenset(same))
    for (value, _), found in sorted(offers.items()):
        if value not in names and (not held or value in held):
            yield from _new_domains(value, found, packing)
    if key == labels.HOSTNAME and not held:
        alone = (index for index, candidate in enumerate(packing.candidates) if candidate.hosts == 1)
        yield Domain(frozenset(), frozenset(alone), most_nodes=1)
    if names_groups and not held:
        yield from _new_groups(classes, packing, key)


def _coming_slices(
    values: Mapping[str, str | None], provisioned: Iterable[ProvisionedNode]
) -> Mapping[str, str | None]:
    """The node pool of each host of a slice: that of the registered hosts. Before one has registered, the name is
    not known, but the hosts are in one node pool with nothing else in it."""
    hosts = {node.node_name: whole for node in provisioned if (whole := slice_of(node)) and node.node_name in values}
    known = {whole: values[name] for name, whole in hosts.items() if values[name] is not None}
    return {name: known.get(whole, f"{whole} is coming") for name, whole in hosts.items()}


def _new_groups(classes: Iterable[int], packing: PackingInput, key: str) -> Iterator[Domain]:
    """Groups of nodes that would be created, such as node pools of GKE: a slice of several hosts is all of one."""
    wanted = tuple(classes)
    for index, candidate in enumerate(packing.candidates):
        if candidate.barred or not any(packing.trials.takes(packing.shape_of[index], item) for item in wanted):
            continue
        if candidate.hosts > 1:
            yield Domain(frozenset(), frozenset({index}), most_nodes=candidate.hosts)
        elif candidate.pool.implicit and facts_of(candidate.instance_type.cloud).group_per_type == key:
            yield Domain(frozenset(), frozenset({index}))


def _new_domains(value: str, found: set[int], packing: PackingInput) -> Iterator[Domain]:
    if not is_future_clique(value):
        yield Domain(frozenset(), frozenset(found))
        return
    for index in sorted(found):
        sizes = packing.candidates[index].instance_type.fabric.domain_nodes
        yield Domain(frozenset(), frozenset({index}), most_nodes=max(sizes, default=1))


def _value(candidate: Candidate, key: str) -> str | None:
    """The label's value on a node of the candidate; None if it cannot be known."""
    return (
        None
        if key == labels.HOSTNAME
        else future_node(candidate, PLACEHOLDER_NODE, allocatable=FrozenMap()).labels.get(key)
    )
