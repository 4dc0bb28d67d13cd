"""Node labels that Kueue adds to pods from a ResourceFlavor, and that no node of a plan has."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.other_clouds import other_clouds
from autoscaler.lint.pods.required import field_of
from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import OF_MACHINES
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.prediction.system_labels import SYSTEM_KEYS
from instance_catalog.types.catalog import Catalog


def flavors_without_nodes(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Pods without a place for such a label, once for each: it is not in their manifest. What says something of the
    machine has warnings of its own, and so has a flavor of another cloud: it speaks of all labels of that flavor."""
    pods = {pod.key: pod for pod in snapshot.pods if pod.flavor_labels}
    had = (*(pool.labels for pool in snapshot.pools), *(node.labels for node in snapshot.nodes))
    known = {label for labels in had for label in labels.items()}
    found: dict[tuple[str, str, str], list[Pod]] = {}
    elsewhere = other_clouds(snapshot, catalog) if pods else {}
    for entry in (entry for entry in plan.left_out if entry.pod in pods):
        pod = pods[entry.pod]
        theirs = elsewhere[entry.pod].selected if entry.pod in elsewhere else {}
        told = {pod.flavor_labels[key] for key in theirs.keys() & pod.flavor_labels.keys()}
        for key in sorted(key for key in pod.flavor_labels.keys() & _lacking(entry) if not _of_machine(key)):
            value = pod.node_selector.get(key, "")
            if (key, value) not in known and pod.flavor_labels[key] not in told:
                found.setdefault((pod.flavor_labels[key], key, value), []).append(pod)
    for (flavor, key, value), asking in found.items():
        yield surprise(
            f"Pod {asking[0].key}",
            field_of(asking[0], key),
            f"gets node selector {key}={value} from spec.nodeLabels of ResourceFlavor {flavor} when Kueue admits it, "
            "and no node of the plan has that label",
            "if it names nodes of your own, write it into spec.labels of a CapacityPool for the flavor; if not, "
            "correct spec.nodeLabels",
            asking[0].origin,
            others=len(asking) - 1,
        )


def _of_machine(key: str) -> bool:
    """True if the machine, its place or its drivers decide the value of the label."""
    return key in SYSTEM_KEYS | OF_MACHINES or key.partition("/")[0].endswith("kubernetes.io")


def _lacking(entry: LeftOut) -> set[str]:
    """The keys of the labels that kept the pod from nodes."""
    reasons = (*entry.reasons, *(miss.reason for miss in entry.near_misses))
    keys: set[str] = set()
    for detail in (reason.detail for reason in reasons if reason.code is Code.NODE_SELECTOR_MISMATCH):
        several = detail.get("labels")
        keys |= {str(label).partition("=")[0] for label in several} if isinstance(several, tuple) else set()
        keys |= {str(detail["key"])} if "key" in detail else set()
    return keys
