"""The input of a plan, as far as its first lines speak of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.lint.pods.one_node import placeholder_of_node
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.words import few
from instance_catalog.dataclass import dataclass, replace


@dataclass(frozen=True, slots=True)
class Given:
    """The input of a plan, as far as its first lines speak of it.

    `pools`: True if there is a CapacityPool; `daemons`: True if there is a DaemonSet; `elsewhere`: pods on nodes that
    are not given; `incomplete`: the number of objects that look like patches; `suspended`: of
    objects that have no pods because they are suspended; `skipped`: the names of objects that --skip-unknown left out;
    `templates`: of ignored objects that ask for devices.
    """

    pools: bool = True
    daemons: bool = False
    elsewhere: tuple[tuple[str, str], ...] = ()
    incomplete: int = 0
    suspended: int = 0
    skipped: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


WITH_POOLS: Final = Given()


def given_of(snapshot: Snapshot, *, incomplete: int = 0, suspended: int = 0, skipped: tuple[str, ...] = ()) -> Given:
    """The pools, DaemonSets and pods of a snapshot. `incomplete`, `suspended`, `skipped`: see Given."""
    nodes = {None, *(node.name for node in snapshot.nodes)}
    elsewhere = tuple((pod.key, pod.node_name) for pod in snapshot.pods if pod.node_name and pod.node_name not in nodes)
    return Given(bool(snapshot.pools), bool(snapshot.daemon_sets), elsewhere, incomplete, suspended, skipped)


def nothing_pending(given: Given) -> Iterator[str]:
    """The contents of the input if it has no pending pods, and the next step."""
    if given.elsewhere:
        have = "already has a node" if len(given.elsewhere) == 1 else "already have nodes"
        names = list(dict.fromkeys(name for _, name in given.elsewhere))
        left = next((f"{name}: {step}; " for name in names if (step := placeholder_of_node(name))), "")
        yield (
            f"there are no pending pods: {few([pod for pod, _ in given.elsewhere])} {have} (spec.nodeName "
            f"{few(names)}); {left}to plan for a new copy, delete spec.nodeName and status, or give the workload that "
            "makes it"
        )
    elif given.suspended:
        yield "there are no pending pods: set suspend to false to plan for those of a suspended object"
    elif given.skipped:
        yield (
            f"there are no pending pods: --skip-unknown left out {few(given.skipped)}, which may make pods: give the "
            "pods (kubectl get pods -o yaml); exit code 3"
        )
    elif given.templates:
        yield (
            f"there are no pending pods: nothing here makes those of {few(given.templates)}: give the pods, or a "
            "Deployment whose pods ask for the same devices (--strict: exit code 3)"
        )
    else:
        yield "there are no pending pods: give pods, or workloads that make pods, with their claims"
    if given.daemons:
        yield "pods of a DaemonSet open no nodes: they run on those that others need"


def without_node_names(snapshot: Snapshot) -> Snapshot | None:
    """The snapshot with its pods as kube-scheduler would get them without spec.nodeName; None unless that is all that
    keeps them from being planned: some pods wait, or those with a node run, so their copies are others."""
    nodes = {node.name for node in snapshot.nodes}
    if not snapshot.pods or any(
        p.node_name is None or p.node_name in nodes or p.phase != "Pending" for p in snapshot.pods
    ):
        return None
    copies = tuple(replace(pod, node_name=None) for pod in snapshot.pods)
    return replace(snapshot, pods=copies) if copies else None
