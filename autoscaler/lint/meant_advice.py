"""What pods leave open about their machines, and a plan takes from their topology or from the rest of their group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoscaler.lint.advice import surprise
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.meant import like_group, meant_by_groups, required_domain, types_in_domains
from autoscaler.planning.demand.scope import asks_for_no_device
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes import labels


def meant_advice(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """One warning of each kind, about the first pod that it concerns; of the snapshot as it was given."""
    waiting = [pod for pod in snapshot.pods if not pod.bound]
    kept = [pod for pod in waiting if required_domain(pod) and not asks_for_no_device(pod)]
    assumed = not (snapshot.pools or snapshot.nodes)
    if kept:
        yield _one_domain(kept, assumed=assumed)
    groups = meant_by_groups(waiting) if assumed else {}
    alike = [pod for pod in waiting if like_group(pod, groups)]
    if alike:
        selected = ", ".join(f"{key}={value}" for key, value in like_group(alike[0], groups).items())
        yield surprise(
            f"Pod {alike[0].key}",
            ("spec", "nodeSelector"),
            f"asks for GPUs and selects no machine{_more(alike)}, while others of its group select {selected}: it is "
            "planned on the same, but kube-scheduler takes any node with GPUs",
            "select the same in leaderTemplate and in workerTemplate",
            alike[0].origin,
        )


def _one_domain(pods: Sequence[Pod], *, assumed: bool) -> Diagnostic:
    """Kueue documentation, "Topology Aware Scheduling" (0.19)."""
    key, _, label = required_domain(pods[0]).partition("=")
    types = types_in_domains(pods[0]) if assumed else ()
    having = f"; nodes of {', '.join(types)} have this label, and it is planned on these alone" if types else ""
    step = f"select {labels.INSTANCE_TYPE} to choose among these; " if types else ""
    return surprise(
        f"Pod {pods[0].key}",
        ("metadata", "annotations", key),
        f"has Kueue admit its pods only where nodes that are there and share one {label} have room for all of "
        f"them{_more(pods)}: nodes of a plan are new, wherever these turn out to be{having}",
        f"{step}for machines that the cloud places near each other, give the node pool a compact placement policy, or "
        "buy a block of them",
        pods[0].origin,
    )


def _more(pods: Sequence[Pod]) -> str:
    return f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
