"""Random questions to kube-scheduler's filters: a few nodes with pods on them, and a pod that wants to go somewhere."""

from __future__ import annotations

from random import Random

from tests.oracle.upstream import Json

_ZONES, _RACKS, _APPS = ("z1", "z2"), ("r1", "r2", "7"), ("web", "db", "cache")
_NAMESPACES: tuple[Json, ...] = (
    {"metadata": {"name": "default", "labels": {"kubernetes.io/metadata.name": "default", "team": "a"}}},
    {"metadata": {"name": "other", "labels": {"kubernetes.io/metadata.name": "other", "team": "b"}}},
)
_TOPOLOGIES = ("kubernetes.io/hostname", "zone", "rack")


def placement_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    rng = Random(seed)
    nodes = [_node(rng, f"node-{index}") for index in range(rng.choice((1, 2, 3, 4, 5)))]
    pods = [_pod(rng, f"placed-{index}") for index in range(rng.randrange(9))]
    for pod in pods:
        pod["spec"]["nodeName"] = rng.choice(nodes)["metadata"]["name"]
    pod = _pod(rng, "wanted")
    if rng.random() < 0.04:
        pod["spec"]["nodeName"] = rng.choice(("node-0", "node-1"))
    return {"nodes": nodes, "pods": pods, "namespaces": list(_NAMESPACES), "pod": pod}


def _node(rng: Random, name: str) -> Json:
    labels = {"kubernetes.io/hostname": name}
    for key, values in (("zone", _ZONES), ("rack", _RACKS)):
        if rng.random() < 0.85:
            labels[key] = rng.choice(values)
    allocatable = {
        "cpu": rng.choice(("1", "2", "3500m")),
        "memory": rng.choice(("1Gi", "2G")),
        "pods": rng.choice("2358"),
    }
    if rng.random() < 0.5:
        allocatable["example.com/widget"] = rng.choice(("1", "4"))
    if rng.random() < 0.4:
        allocatable["ephemeral-storage"] = "10Gi"
    spec: Json = {}
    if rng.random() < 0.1:
        spec["unschedulable"] = True
    if rng.random() < 0.3:
        spec["taints"] = [_taint(rng) for _ in range(rng.choice((1, 2)))]
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}


def _taint(rng: Random) -> Json:
    effect = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return {"key": rng.choice(("dedicated", "slow")), "value": rng.choice(("a", "b")), "effect": effect}


def _pod(rng: Random, name: str) -> Json:
    labels = {"app": rng.choice(_APPS)}
    if rng.random() < 0.4:
        labels["tier"] = rng.choice(("x", "y"))
    spec: Json = {"containers": [_container(rng, f"c{index}") for index in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.25:
        spec["initContainers"] = [_container(rng, "init")]
        if rng.random() < 0.5:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if rng.random() < 0.1:
        spec["overhead"] = {"cpu": "250m"}
    if rng.random() < 0.4:
        spec["tolerations"] = [_toleration(rng) for _ in range(rng.choice((1, 2)))]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"zone": rng.choice(_ZONES)}
    affinity: Json = {}
    if rng.random() < 0.2:
        terms = [_node_term(rng) for _ in range(rng.choice((1, 2)))]
        required = {"nodeSelectorTerms": terms}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.2:
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [_pod_term(rng)]}
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [_spread(rng)]
    namespace = rng.choice(("default", "default", "other"))
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}, "spec": spec}


def _container(rng: Random, name: str) -> Json:
    requests = {}
    for resource, amounts in (("cpu", ("100m", "500m", "1")), ("memory", ("64Mi", "512Mi", "1G"))):
        if rng.random() < 0.6:
            requests[resource] = rng.choice(amounts)
    if rng.random() < 0.12:
        requests["example.com/widget"] = rng.choice(("1", "2"))
    if rng.random() < 0.08:
        requests["ephemeral-storage"] = rng.choice(("1Gi", "9Gi"))
    limits = {key: value for key, value in requests.items() if key.startswith("example.com")}
    container: Json = {"name": name, "image": "i", "resources": {"requests": requests, "limits": limits}}
    if rng.random() < 0.12:
        port: Json = {"containerPort": 80, "hostPort": rng.choice((80, 81)), "protocol": rng.choice(("TCP", "UDP"))}
        if rng.random() < 0.3:
            port["hostIP"] = rng.choice(("10.0.0.1", "0.0.0.0"))
        container["ports"] = [port]
    return container


def _toleration(rng: Random) -> Json:
    found: Json = {"key": rng.choice(("dedicated", "slow", "node.kubernetes.io/unschedulable")), "operator": "Exists"}
    if rng.random() < 0.4:
        found.update(operator="Equal", value=rng.choice(("a", "b")))
    elif rng.random() < 0.1:
        del found["key"]
    if rng.random() < 0.4:
        found["effect"] = rng.choice(("NoSchedule", "NoExecute"))
    return found


def _node_term(rng: Random) -> Json:
    options: list[Json] = [
        {"key": "zone", "operator": "In", "values": [rng.choice(_ZONES)]},
        {"key": "rack", "operator": rng.choice(("Exists", "DoesNotExist"))},
        {"key": "rack", "operator": "NotIn", "values": ["r1"]},
        {"key": "rack", "operator": rng.choice(("Gt", "Lt")), "values": ["5"]},
    ]
    if rng.random() < 0.15:
        name = {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": ["node-0"]}
        return {"matchFields": [name]}
    return {"matchExpressions": rng.sample(options, rng.choice((1, 1, 2)))}


def _selector(rng: Random) -> Json:
    options: tuple[Json, ...] = (
        {"matchLabels": {"app": rng.choice(_APPS)}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
        {"matchExpressions": [{"key": "tier", "operator": rng.choice(("Exists", "DoesNotExist"))}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
        {},
    )
    return rng.choice(options)


def _pod_term(rng: Random) -> Json:
    term: Json = {"labelSelector": _selector(rng), "topologyKey": rng.choice(_TOPOLOGIES)}
    draw = rng.random()
    if draw < 0.2:
        term["namespaces"] = [rng.choice(("default", "other"))]
    elif draw < 0.4:
        term["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "b"}}))
    return term


def _spread(rng: Random) -> Json:
    found: Json = {
        "maxSkew": rng.choice((1, 1, 2)),
        "topologyKey": rng.choice(_TOPOLOGIES),
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selector(rng),
    }
    if found["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.3:
        found["minDomains"] = rng.choice((1, 2, 3))
    if rng.random() < 0.25:
        found["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.25:
        found["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    return found
