"""Random pods for placement cases: what they ask of nodes, of other pods, and for themselves."""

from __future__ import annotations

from random import Random

from tests.oracle.upstream import Json

NAMESPACES: tuple[Json, ...] = (
    {"metadata": {"name": "default", "labels": {"kubernetes.io/metadata.name": "default", "team": "a"}}},
    {"metadata": {"name": "other", "labels": {"kubernetes.io/metadata.name": "other", "team": "b"}}},
)
_ZONES, _APPS = ("z1", "z2"), ("web", "db", "cache")
_TOPOLOGIES = ("kubernetes.io/hostname", "zone", "rack", "topology.kubernetes.io/zone")
_IMAGES = ("a", "a:1", "registry.example.com:5000/b", "registry.example.com:5000/b:2")
_KEYS = ("version", "shard")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def draw_pod(rng: Random, name: str, about: frozenset[str]) -> Json:
    """A pod that the API server accepts and that is interesting about some subjects."""
    labels = {"app": rng.choice(_APPS)}
    for key, values in (("tier", ("x", "y")), ("version", ("v1", "v2")), ("shard", ("1", "2"))):
        if rng.random() < 0.5:
            labels[key] = rng.choice(values)
    spec: Json = {"containers": [_container(rng, f"c{index}", about) for index in range(rng.choice((1, 1, 2)))]}
    if "resources" in about:
        _add_resources(rng, spec, about)
    if "ports" in about and rng.random() < 0.6:
        _add_ports(rng, spec)
    if "taints" in about and rng.random() < 0.6:
        spec["tolerations"] = [_toleration(rng) for _ in range(rng.choice((1, 2)))]
    if "features" in about and rng.random() < 0.5:
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
        spec["containers"][0].update(restartPolicy="Never", restartPolicyRules=[rule])
    if "images" in about and rng.random() < 0.2:
        spec["volumes"] = [{"name": "image", "image": {"reference": rng.choice(_IMAGES)}}]
    affinity: Json = {}
    if "affinity" in about:
        affinity.update(_node_affinity(rng))
        if rng.random() < 0.2:
            spec["nodeSelector"] = {"zone": rng.choice(_ZONES)}
    if "pods" in about:
        affinity.update(_pod_affinity(rng))
    if affinity:
        spec["affinity"] = affinity
    if "spread" in about:
        spec["topologySpreadConstraints"] = _spreads(rng)
    namespace = rng.choice(("default", "default", "default", "other"))
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}, "spec": spec}


def _container(rng: Random, name: str, about: frozenset[str]) -> Json:
    requests = {}
    for resource, amounts in (
        ("cpu", ("50m", "100m", "200m", "0", "100500u")),
        ("memory", ("64Mi", "128Mi", "100M", "0", "1000500m")),
    ):
        if rng.random() < 0.6:
            requests[resource] = rng.choice(amounts)
    image = rng.choice(_IMAGES) if "images" in about else "i"
    return {"name": name, "image": image, "resources": {"requests": requests}}


def _add_resources(rng: Random, spec: Json, about: frozenset[str]) -> None:
    for index in range(rng.choice((0, 0, 1, 2))):
        container = _container(rng, f"init{index}", about)
        if rng.random() < 0.5:
            container["restartPolicy"] = "Always"
        spec.setdefault("initContainers", []).append(container)
    if rng.random() < 0.15:
        spec["overhead"] = {"cpu": "250m", **({"memory": "10Mi"} if rng.random() < 0.5 else {})}
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    for container in containers:
        resources = container["resources"]
        if rng.random() < 0.15:
            amount = rng.choice(("1", "2"))
            resources["limits"] = {"example.com/widget": amount}
        elif rng.random() < 0.1:
            resources["limits"] = {"hugepages-2Mi": rng.choice(("2Mi", "32Mi")), "memory": "1Gi", "cpu": "1"}
        if rng.random() < 0.1:
            resources["requests"]["ephemeral-storage"] = rng.choice(("1Gi", "6Gi"))
        if "limits" not in resources and rng.random() < 0.1:
            resources["requests"]["cpu"] = rng.choice(("1", "1500m"))
    if rng.random() < 0.25 and all(_is_small(container) for container in containers):
        amounts = {"cpu": rng.choice(("900m", "2")), "memory": rng.choice(("700Mi", "1Gi"))}
        for resource in list(amounts):
            if rng.random() < 0.3:
                del amounts[resource]
        if amounts:
            spec["resources"] = {rng.choice(("requests", "requests", "limits")): amounts}


def add_resize(rng: Random, pod: Json) -> None:
    """The pod runs, and what it holds is not what it asks for: it is being resized, or cannot be."""
    status = pod.setdefault("status", {})
    for field, name in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        containers = [one for one in pod["spec"].get(name, ()) if rng.random() < 0.8]
        if containers:
            status[field] = [{"name": one["name"], **_held(rng)} for one in containers]
    if "resources" in pod["spec"]:
        status.update(_held(rng))
    if rng.random() < 0.3:
        reason = rng.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]


def _held(rng: Random) -> Json:
    """What the kubelet has allocated, and what it says is in force."""
    found: Json = {}
    for place in ({"resources": "requests"}, {"allocatedResources": ""}):
        for field, inner in place.items():
            amounts = {"cpu": rng.choice(("100m", "900m", "2")), "memory": rng.choice(("64Mi", "512Mi"))}
            if rng.random() < 0.2:
                del amounts[rng.choice(("cpu", "memory"))]
            if rng.random() < 0.8:
                found[field] = {inner: amounts} if inner else amounts
    return found


def _is_small(container: Json) -> bool:
    # The API server cannot make pod-level requests of parts of a thousandth of a core.
    resources = container["resources"]
    return "limits" not in resources and resources["requests"].get("cpu") not in ("1", "1500m", "100500u")


def _add_ports(rng: Random, spec: Json) -> None:
    if rng.random() < 0.15:
        spec["hostNetwork"] = True
        spec["containers"][0]["ports"] = [{"containerPort": rng.choice((80, 81))}]
        return
    port: Json = {"containerPort": 80, "hostPort": rng.choice((80, 81)), "protocol": rng.choice(("TCP", "UDP"))}
    if rng.random() < 0.4:
        port["hostIP"] = rng.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0"))
    holder = spec["containers"][0]
    if rng.random() < 0.2 and "initContainers" not in spec:
        holder = {"name": "init", "image": "i", "resources": {"requests": {}}}
        spec["initContainers"] = [holder]
        if rng.random() < 0.5:
            holder["restartPolicy"] = "Always"
    holder["ports"] = [port]


def _toleration(rng: Random) -> Json:
    found: Json = {"key": rng.choice(("dedicated", "slow", "node.kubernetes.io/unschedulable")), "operator": "Exists"}
    if rng.random() < 0.4:
        found.update(operator="Equal", value=rng.choice(("a", "b")))
    elif rng.random() < 0.1:
        del found["key"]
    if rng.random() < 0.5:
        found["effect"] = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return found


def _node_affinity(rng: Random) -> Json:
    found: Json = {}
    if rng.random() < 0.4:
        found[_REQUIRED] = {"nodeSelectorTerms": [_node_term(rng) for _ in range(rng.choice((1, 2)))]}
    if rng.random() < 0.7:
        found[_PREFERRED] = [
            {"weight": rng.choice((1, 7, 50, 100)), "preference": _node_term(rng)} for _ in range(rng.choice((1, 2, 3)))
        ]
    return {"nodeAffinity": found} if found else {}


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
    if rng.random() < 0.05:
        return {}  # matches nothing
    return {"matchExpressions": rng.sample(options, rng.choice((1, 1, 2)))}


def _pod_affinity(rng: Random) -> Json:
    found: Json = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms: Json = {}
        if rng.random() < 0.25:
            terms[_REQUIRED] = [_pod_term(rng) for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.4:
            weights = (1, 5, 33, 100)
            terms[_PREFERRED] = [
                {"weight": rng.choice(weights), "podAffinityTerm": _pod_term(rng)} for _ in range(rng.choice((1, 1, 2)))
            ]
        if terms:
            found[kind] = terms
    return found


def _pod_term(rng: Random) -> Json:
    term: Json = {"topologyKey": rng.choice(_TOPOLOGIES)}
    if rng.random() < 0.95:
        term["labelSelector"] = _selector(rng)
        if rng.random() < 0.3:
            first, second = rng.sample(_KEYS, 2)
            term["matchLabelKeys"] = [first]
            if rng.random() < 0.5:
                term["mismatchLabelKeys"] = [second]
        elif rng.random() < 0.1:
            term["mismatchLabelKeys"] = [rng.choice(_KEYS)]
    if rng.random() < 0.2:
        term["namespaces"] = [rng.choice(("default", "other"))]
    if rng.random() < 0.25:
        term["namespaceSelector"] = rng.choice(
            (
                {},
                {"matchLabels": {"team": "b"}},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
        )
    return term


def _selector(rng: Random) -> Json:
    options: tuple[Json, ...] = (
        {"matchLabels": {"app": rng.choice(_APPS)}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
        {"matchExpressions": [{"key": "tier", "operator": rng.choice(("Exists", "DoesNotExist"))}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
        {},
    )
    return rng.choice(options)


def _spreads(rng: Random) -> list[Json]:
    """Constraints whose pairs of key and action differ."""
    pairs = [(key, action) for key in _TOPOLOGIES for action in ("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway")]
    chosen = dict.fromkeys(rng.sample(pairs, rng.choice((0, 1, 1, 2, 3))))
    return [_spread(rng, key, action) for key, action in chosen]


def _spread(rng: Random, key: str, action: str) -> Json:
    found: Json = {"maxSkew": rng.choice((1, 1, 2, 5)), "topologyKey": key, "whenUnsatisfiable": action}
    if rng.random() < 0.95:
        found["labelSelector"] = _selector(rng)
        if rng.random() < 0.3:
            found["matchLabelKeys"] = rng.sample(_KEYS, rng.choice((1, 2)))
    if action == "DoNotSchedule" and rng.random() < 0.3:
        found["minDomains"] = rng.choice((1, 2, 3))
    for policy in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
        if rng.random() < 0.25:
            found[policy] = rng.choice(("Honor", "Ignore"))
    return found
