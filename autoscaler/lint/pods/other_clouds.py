"""Pods of clouds in which Foreslice launches nothing: what they select and ask for that only nodes there have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import partial
from itertools import islice
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.card_names import accelerators_named, lacking_model, nearest_accelerators
from autoscaler.lint.pods.cloud_terms import OF_EVERY_NODE, cloud_named, cloud_of_machine
from autoscaler.lint.pods.unserved import RDMA_HERE, absent_devices, machines_having, unserved_resources
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import TYPE_KEYS
from autoscaler.planning.demand.scope import requested_resources, served_resources
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.device_plugins import network_card, other_device
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog

# CoreWeave's regions of one word: coreweave/kubernetes-cloud 67ae991.
_REGION_KEYS: Final = frozenset({labels.REGION, "failure-domain.beta.kubernetes.io/region"})
_REGIONS: Final = {"ORD1": "CoreWeave", "LAS1": "CoreWeave", "LGA1": "CoreWeave"}


@dataclass(frozen=True, slots=True)
class OtherCloud:
    """The requirements that keep a pod on nodes of another cloud: labels (those of places and machines with their
    value) and resources of its devices. `lacking` are further resources that nothing here has, `absent` devices that no
    machine here has."""

    name: str
    selected: dict[str, str]
    asked: list[str]
    lacking: list[str]
    absent: list[str]


def other_cloud_advice(snapshot: Snapshot, found: Mapping[str, OtherCloud], catalog: Catalog) -> Iterator[Diagnostic]:
    """The first pod that only nodes of another cloud run, with everything of it that says so, and the number of others
    that say the same; one that asks for devices before all others. Further pods by labels and resources that no message
    has named."""
    elsewhere = [pod for pod in snapshot.pods if pod.key in found]
    named: set[str] = set()
    for pod in sorted(elsewhere, key=lambda pod: not any("/" in name for name in requested_resources(pod))):
        of = found[pod.key]
        if named >= {*of.selected, *of.asked}:
            continue
        named |= {*of.selected, *of.asked}
        parts = [f"selects {' and '.join(of.selected.values())}"] if of.selected else []
        parts += [f"asks for {' and '.join(of.asked)}"] if of.asked else []
        yield surprise(
            f"Pod {pod.key}",
            (),
            f"{' and '.join(parts)}, which only nodes of {of.name} have: Foreslice launches in "
            f"{' and '.join(sorted({one.cloud for one in catalog}))} alone",
            f"there, leave the pod to that cloud's own autoscaler{_to_plan_it(pod, of, catalog)}",
            pod.origin,
            others=sum((one.selected, one.asked) == (of.selected, of.asked) for one in found.values()) - 1,
        )


def daemons_of_other_clouds(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """The first DaemonSet whose pods only nodes of another cloud run."""
    daemons = {one.key: one for one in snapshot.daemon_sets}
    pods = (replace(one.pod, namespace=one.namespace, name=one.name) for one in daemons.values())
    found = other_clouds(replace(snapshot, pods=tuple(pods)), catalog)
    for key, of in islice(found.items(), 1):
        yield surprise(
            f"DaemonSet {key}",
            (),
            f"selects or asks for {' and '.join((*of.selected.values(), *of.asked))}, which only nodes of {of.name} "
            "have: its pods run on no node of a plan",
            "for nodes here, select their instance types, or accelerators by foreslice.dev/accelerator",
            daemons[key].origin,
            others=len(found) - 1,
        )


def other_clouds(snapshot: Snapshot, catalog: Catalog) -> dict[str, OtherCloud]:
    """The pods without a node that only nodes of another cloud run, by key. What nodes or pools that are given have,
    and types that people added to the catalog, counts as here."""
    labelled = (*(node.labels for node in snapshot.nodes), *(pool.labels for pool in snapshot.pools))
    had = [pair for given in labelled for pair in given.items()]
    there = {text for pair in had for text in pair} | {name for one in snapshot.nodes for name in one.allocatable}
    there |= {name for one in catalog for name in (*one.allocatable, *one.extended_resources)}
    there |= {name for one in catalog for name in (one.name, one.machine_type)} | served_resources(snapshot)
    waiting = (pod for pod in snapshot.pods if not pod.bound)
    vendors = {one.accelerator.vendor for one in catalog if one.accelerator is not None}
    return {pod.key: of for pod in waiting if (of := _of_other_cloud(pod, there, catalog, vendors))}


def _of_other_cloud(pod: Pod, there: set[str], catalog: Catalog, vendors: Set[str]) -> OtherCloud | None:
    asked = [name for name in dict.fromkeys(requested_resources(pod)) if cloud_named(name) and name not in there]
    named = {key: cloud for key in sorted(pod.selected_labels - there) if (cloud := cloud_named(key))}
    valued = _by_value(pod, there)
    clouds = [*named.values(), *(cloud for _, cloud in valued.values()), *map(cloud_named, asked)]
    if not clouds:
        return None
    selected = {key: key for key in named} | {key: f"{key}={value}" for key, (value, _) in valued.items()}
    lacking = [name for name in unserved_resources(pod, there, catalog) if name not in asked]
    absent = absent_devices(pod, there, vendors, partial(machines_having, catalog=catalog))
    return OtherCloud(clouds[0], selected, asked, lacking, absent)


def _by_value(pod: Pod, there: set[str]) -> dict[str, tuple[str, str]]:
    """The labels that all nodes have and by whose value the pod selects another cloud: the first value, the cloud."""
    found = {}
    for keys, cloud_of in ((TYPE_KEYS, cloud_of_machine), (_REGION_KEYS, lambda name: _REGIONS.get(name, ""))):
        for key in sorted(keys):
            for first, *rest in pod.required_values({key}):
                if cloud_of(first) and there.isdisjoint((first, *rest)):
                    found[key] = first, cloud_of(first)
    return found


def _to_plan_it(pod: Pod, of: OtherCloud, catalog: Catalog) -> str:
    """The requirements to drop so that machines here run the pod, and their replacements; nothing if no machine has its
    devices."""
    if of.absent:
        return f": no machine here has a {other_device(of.absent[0])} that serves it"
    dropped = (*of.asked, *of.lacking)
    kept = any("/" in name and name not in dropped for name in requested_resources(pod)) or bool(pod.claims)
    if not (kept or all(map(network_card, dropped))):
        needed = " and ".join(name for name in dropped if not network_card(name))
        return (
            f": no machine here replaces {needed}; if a DRA driver publishes such devices, claim them, and give the "
            "ResourceSlices of the nodes that have them"
        )
    drop = [f"the node selector or affinity on {key}" for key in of.selected]
    drop += [f"the request of {name}" for name in dropped]
    flavors = dict.fromkeys(pod.flavor_labels[key] for key in of.selected if key in pod.flavor_labels)
    for flavor in flavors:
        keys = (key for key, name in pod.flavor_labels.items() if name == flavor)
        given = " and ".join(key for key in keys if key not in OF_EVERY_NODE)
        drop.append(f"the nodeLabels {given} of ResourceFlavor {flavor} (Kueue adds them to what the pod selects)")
    network = f"; {RDMA_HERE}" if any(map(network_card, dropped)) else ""
    select = _instead(pod, of, catalog) if of.selected else ""
    last = "then plan again, as a machine here may have fewer CPUs or less memory"
    return f"; to plan it here, drop {' and '.join(drop)}{select}{network}; {last}"


def _instead(pod: Pod, of: OtherCloud, catalog: Catalog) -> str:
    """The accelerators that the dropped labels name, for who has to select them in another way."""
    if not any("/" in name for name in requested_resources(pod)) and not pod.claims:
        return ""
    selected = [(key, value) for key in of.selected for values in pod.required_values({key}) for value in values]
    named = {card: value for key, value in selected for card in accelerators_named(key, value, catalog)}
    near = {value: cards for key, value in selected if (cards := nearest_accelerators(key, value, catalog))}
    if named:
        choice = f"{' or '.join(sorted(named))}, which {' and '.join(dict.fromkeys(named.values()))} means"
    elif near:
        choice = "; ".join(f"{' or '.join(cards)}, the nearest to {value}" for value, cards in near.items())
    else:
        lacking = [v for key, v in selected if lacking_model(key, v, catalog) and not cloud_of_machine(v)]
        absent = f"no type in the catalog has {lacking[0]}, so choose" if lacking else "choose"
        choice = f"{absent} one with as much memory: `foreslice catalog list -o wide` shows the values"
    return f", and select its GPU by {labels.ACCELERATOR} ({choice})"
