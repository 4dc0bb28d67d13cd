"""Random questions to kube-scheduler: a few nodes with pods on them, and a pod that wants to go somewhere.

A case is about a few subjects only: with everything at once no node would ever be left to score.
"""

from __future__ import annotations

from random import Random

from tests.oracle.cases.placement_claims import add_claims
from tests.oracle.cases.placement_pods import NAMESPACES, add_resize, draw_pod
from tests.oracle.cases.placement_volumes import add_volumes
from tests.oracle.upstream import Json

_SUBJECTS = (
    "affinity",
    "claims",
    "defaults",
    "features",
    "images",
    "pods",
    "ports",
    "resources",
    "spread",
    "taints",
    "volumes",
)
_IMAGES = ("a", "a:1", "registry.example.com:5000/b", "registry.example.com:5000/b:2")


def placement_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return placement_drawn(Random(seed))


def placement_drawn(rng: Random) -> Json:
    """A question made of what `rng` draws."""
    about = frozenset(rng.sample(_SUBJECTS, rng.choice((1, 2, 2, 3, 3, 4))))
    nodes = [draw_node(rng, f"node-{index}", about) for index in range(rng.choice((2, 3, 3, 4, 5)))]
    pods = [draw_pod(rng, f"placed-{index}", about) for index in range(rng.randrange(9))]
    for placed in pods:
        placed["spec"]["nodeName"] = rng.choice(nodes)["metadata"]["name"]
        if "resources" in about and rng.random() < 0.4:
            add_resize(rng, placed)
        if rng.random() < 0.05:
            placed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pod = draw_pod(rng, "wanted", about)
    draw = rng.random()
    if draw < 0.03:
        pod["spec"]["nodeName"] = rng.choice(("node-0", "node-1"))
    elif draw < 0.05:
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    case: Json = {"nodes": nodes, "pods": pods, "namespaces": list(NAMESPACES), "pod": pod}
    if "volumes" in about:
        add_volumes(rng, case)
    if "claims" in about:
        add_claims(rng, case)
    if "defaults" in about:
        _add_selections(rng, case)
    return case


def draw_node(rng: Random, name: str, about: frozenset[str]) -> Json:
    """A node that is interesting about some subjects."""
    # The label need not be the name.
    labels = {"kubernetes.io/hostname": name if rng.random() < 0.9 else "host"}
    if rng.random() < 0.05:
        del labels["kubernetes.io/hostname"]
    for key, values in (
        ("zone", ("z1", "z2")),
        ("rack", ("r1", "r2", "7")),
        ("topology.kubernetes.io/zone", ("z1", "z2")),
        ("topology.kubernetes.io/region", ("r",)),
    ):
        if rng.random() < 0.85:
            labels[key] = rng.choice(values)
    allocatable = {
        "cpu": rng.choice(("2", "3500m", "16")),
        "memory": rng.choice(("2Gi", "3G", "64Gi")),
        "pods": rng.choice(("3", "8", "110")),
        "hugepages-2Mi": rng.choice(("0", "64Mi")),
    }
    if rng.random() < 0.5:
        allocatable["example.com/widget"] = rng.choice(("0", "1", "4"))
    if rng.random() < 0.6:
        allocatable["ephemeral-storage"] = "10Gi"
    status: Json = {"allocatable": allocatable}
    spec: Json = {}
    if "taints" in about:
        if rng.random() < 0.1:
            spec["unschedulable"] = True
        taints = [_taint(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        spec["taints"] = list({(taint["key"], taint["effect"]): taint for taint in taints}.values())
    if "images" in about:
        status["images"] = [
            {"names": [image], "sizeBytes": rng.choice((10_000_000, 333_333_333, 2_000_000_000))}
            for image in rng.sample((*_IMAGES, "a:latest"), rng.randrange(4))
        ]
    if "features" in about and rng.random() < 0.5:
        status["declaredFeatures"] = rng.choice((["RestartAllContainersOnContainerExits"], ["Other"]))
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _taint(rng: Random) -> Json:
    effect = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule", "PreferNoSchedule"))
    return {"key": rng.choice(("dedicated", "slow")), "value": rng.choice(("a", "b")), "effect": effect}


def _add_selections(rng: Random, case: Json) -> None:
    """Services and controllers, whose pods spread by default."""
    case["services"] = [
        {"metadata": {"name": f"service-{index}", "namespace": "default"}, "spec": spec}
        for index in range(rng.randrange(3))
        for spec in ({"selector": {"app": rng.choice(("web", "db"))}}, {})[: rng.choice((1, 1, 2))][-1:]
    ]
    selectors: tuple[Json, ...] = ({"matchLabels": {"app": "web"}}, {"matchExpressions": [_exists()]})
    for kind, field in (("ReplicaSet", "replicaSets"), ("StatefulSet", "statefulSets")):
        if rng.random() < 0.5:
            metadata = {"name": "owner", "namespace": "default"}
            case[field] = [{"metadata": metadata, "spec": {"selector": rng.choice(selectors)}}]
        for pod in (*case["pods"], case["pod"]):
            if rng.random() < 0.3:
                owner = {"apiVersion": "apps/v1", "kind": kind, "name": "owner", "uid": "u", "controller": True}
                pod["metadata"]["ownerReferences"] = [owner]


def _exists() -> Json:
    return {"key": "tier", "operator": "Exists"}
