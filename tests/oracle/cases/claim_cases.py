"""Random questions to kube-scheduler's plugin DynamicResources: what surrounds an allocation, not the search.

Claims that are shared, full, being deleted, half bound or somebody else's; pods that ran to their end; extended
resources that a class or a device plugin serves; DeviceTaintRules.
"""

from __future__ import annotations

from random import Random

from tests.oracle.cases.claim_groups import Groups
from tests.oracle.cases.claims import Demand
from tests.oracle.cases.devices import DRIVERS, NODES, TAINT_KEYS, Supply
from tests.oracle.cases.long_names import lengthened
from tests.oracle.cases.near_equal import stored
from tests.oracle.upstream import Json

_EXTENDED = ("example.com/gpu", "example.com/nic")
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_NODES = (*NODES, "node-c", "node-d", "node-e")
_LIMIT = 256  # consumers of a claim
_SINCE = {"reason": "Drawn", "lastTransitionTime": "2026-01-01T00:00:00Z"}
_CONDITIONS = ("example.com/ready", "example.com/failed")


def claim_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return claim_drawn(Random(seed))


def claim_drawn(rng: Random) -> Json:
    """A question made of what `rng` draws."""
    return _Draw(rng).case()


def _name_by_driver(slices: list[Json]) -> None:
    """Give the drivers pool names of their own.

    Up to v0.36.3 pools of one name share a table of counters (allocator_incubating.go, checkAvailableCounters), and the
    plugin keeps it from node to node while it looks at several at once: whose pool fills it is a matter of luck.
    """
    for slice_ in slices:
        pool = slice_["spec"]["pool"]
        pool["name"] += f"-{slice_['spec']['driver'].partition('.')[0]}"


class _Draw:
    """One case in the making."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._nodes = [self._node(name) for name in _NODES[: rng.choice((1, 2, 2, 3, 4, 6))]]
        supply = Supply(rng)
        self._slices: list[Json] = []
        for index, node in enumerate(self._nodes):
            supply.node = node
            for _ in range(rng.choice((0, 1, 1, 2, 2))):
                self._slices += supply.pool(index)
        if len(self._nodes) > 1:
            _name_by_driver(self._slices)
        rng.shuffle(self._slices)
        self._demand = Demand(rng, [slice_["spec"]["driver"] for slice_ in self._slices] or list(DRIVERS))
        self._pods: list[Json] = []
        self._claims: list[Json] = []

    def case(self) -> Json:
        """The question."""
        rng = self._rng
        for index in range(rng.choice((0, 1, 2, 3))):
            self._pods.append(self._other(f"other-{index}"))
        wanted = _pod("wanted")
        for index in range(rng.choice((0, 1, 1, 2, 3))):
            self._ask(wanted, f"c{index}")
        for held in self._demand.held(self._slices):
            self._keep(held)
        if rng.random() < 0.4:
            self._add_extended(wanted)
        rng.shuffle(self._claims)
        question = self._question(wanted)
        question = {**question, **Groups(rng, question).drawn()} if rng.random() < 0.2 else question
        # kube-scheduler sums a claim's own `1.5Gi` in place, from one node to the next; in a cluster it is 1536Mi.
        for field in ("claims", "slices"):
            question[field] = stored(question[field])
        question = lengthened(question) if rng.random() < 0.08 else question
        question["classes"] = self._appearing(question["classes"])
        return question

    def _appearing(self, classes: list[Json]) -> list[Json]:
        """In an order in which kube-scheduler may see them: as they were created, or by name after its restart."""
        rng = self._rng
        if rng.random() < 0.5:
            return sorted(classes, key=lambda entry: entry["metadata"]["name"])
        rng.shuffle(classes)
        return sorted(classes, key=lambda entry: entry["metadata"].get("creationTimestamp", ""))

    def _question(self, wanted: Json) -> Json:
        rng = self._rng
        return {
            "nodes": self._nodes,
            "pods": self._pods,
            "namespaces": [{"metadata": {"name": "default"}}],
            "classes": self._classes(),
            "slices": self._slices,
            "claims": self._claims,
            "taintRules": [self._rule(f"rule-{index}") for index in range(rng.choice((0, 0, 1, 1, 2)))],
            "taintRulesInForce": rng.random() < 0.7,
            "pod": wanted,
        }

    def _node(self, name: str) -> Json:
        rng = self._rng
        labels = {"kubernetes.io/hostname": name, "zone": rng.choice(("z1", "z2")), "slot": rng.choice(("1", "12"))}
        if rng.random() < 0.7:
            labels["rack"] = rng.choice(("r1", "r2"))
        allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        if rng.random() < 0.2:
            allocatable[rng.choice(_EXTENDED)] = rng.choice(("0", "1", "4"))
        return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}

    def _classes(self) -> list[Json]:
        """Some serve extended resources, now and then several the same one."""
        rng = self._rng
        found = self._demand.classes()
        for entry in found:
            if rng.random() < 0.45:
                entry["spec"]["extendedResourceName"] = rng.choice(_EXTENDED)
            if rng.random() < 0.6:
                entry["metadata"]["creationTimestamp"] = rng.choice(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
        return found

    def _rule(self, name: str) -> Json:
        rng = self._rng
        taint = {"key": rng.choice(TAINT_KEYS), "effect": rng.choice(("NoSchedule", "NoSchedule", "NoExecute", "None"))}
        if rng.random() < 0.5:
            taint["value"] = "yes"
        spec: Json = {"taint": taint}
        if rng.random() < 0.9:
            selector: Json = {}
            published = [slice_["spec"] for slice_ in self._slices]
            place: Json = rng.choice(published) if published else {"driver": DRIVERS[0], "pool": {"name": "p0"}}
            if rng.random() < 0.6:
                selector["driver"] = place["driver"]
            if rng.random() < 0.4:
                selector["pool"] = place["pool"]["name"]
            if rng.random() < 0.3:
                selector["device"] = rng.choice([one["name"] for one in place.get("devices", ())] or ["dev0"])
            spec["deviceSelector"] = selector
        return {"metadata": {"name": name}, "spec": spec}

    # Other pods, and what they hold.

    def _other(self, name: str) -> Json:
        """A pod that runs, ran, or was given up before it ran."""
        rng = self._rng
        pod = _pod(name)
        draw = rng.random()
        if draw < 0.9:
            pod["spec"]["nodeName"] = rng.choice(self._nodes)["metadata"]["name"]
        elif draw < 0.95:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if draw < 0.35:
            pod["status"] = {"phase": rng.choice(("Succeeded", "Failed"))}
        return pod

    def _keep(self, held: Json) -> None:
        """An allocated claim that is somebody's, nobody's, or to be deleted."""
        rng = self._rng
        if rng.random() < 0.5 and self._pods:
            holders = rng.sample(self._pods, rng.randrange(1, len(self._pods) + 1))
            for holder in holders:
                self._reserve(held, holder)
            if rng.random() < 0.2:
                _own(held, holders[0])
        if rng.random() < 0.1:
            held["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self._add(held, held["metadata"]["name"])

    def _reserve(self, claim: Json, pod: Json) -> None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        claim.setdefault("status", {}).setdefault("reservedFor", []).append(
            {"resource": "pods", "name": name, "uid": uid}
        )

    def _add(self, claim: Json, name: str) -> None:
        claim["metadata"].update(name=name, uid=f"uid-{name}")
        if "allocation" in claim.get("status", {}) or "deletionTimestamp" in claim["metadata"]:
            claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        self._claims.append(claim)

    # What the pod wants.

    def _ask(self, pod: Json, name: str) -> None:
        rng = self._rng
        claim = self._demand.claim(name) if rng.random() < 0.4 else self._simple(name)
        if rng.random() < 0.45:
            self._allocate(claim)
        if rng.random() < 0.04:
            claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if rng.random() < 0.97:
            self._add(claim, name)
        entry: Json = {"name": name, "resourceClaimName": name}
        draw = rng.random()
        if draw < 0.15:
            entry = {"name": name, "resourceClaimTemplateName": "template"}
            if draw < 0.13:
                _own(claim, pod)
            generated: Json = {"name": name, "resourceClaimName": name}
            if 0.12 < draw < 0.13:
                del generated["resourceClaimName"]  # none was needed
            if draw > 0.01:
                pod.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(generated)
        pod["spec"].setdefault("resourceClaims", []).append(entry)

    def _simple(self, name: str) -> Json:
        rng = self._rng
        exactly: Json = {
            "deviceClassName": rng.choice((*DRIVERS[:2], "any", "any")),
            "allocationMode": "ExactCount",
            "count": rng.choice((1, 1, 1, 2)),
        }
        if rng.random() < 0.3:
            exactly["tolerations"] = [{"operator": "Exists", "key": rng.choice(TAINT_KEYS)}]
        elif rng.random() < 0.2:
            exactly["tolerations"] = [{"operator": "Exists"}]
        request = {"name": "r", "exactly": exactly}
        return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {"requests": [request]}}}

    def _allocate(self, claim: Json) -> None:
        """The claim has devices already, as if somebody had come first: alone, with others, or with too many."""
        rng = self._rng
        devices = [(slice_["spec"], one) for slice_ in self._slices for one in slice_["spec"].get("devices", ())]
        if not devices:
            return
        request = claim["spec"]["devices"]["requests"][0]
        asked = f"{request['name']}/s0" if "firstAvailable" in request else request["name"]
        results: list[Json] = [
            {"request": asked, "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            for spec, device in rng.sample(devices, min(len(devices), rng.choice((1, 1, 2))))
        ]
        allocation: Json = {"devices": {"results": results}}
        if rng.random() < 0.8:
            allocation["nodeSelector"] = self._selector()
        claim["status"] = {"allocation": allocation}
        if rng.random() < 0.2:
            self._half_bind(claim, results)
        draw = rng.random()
        others = rng.sample(self._pods, rng.randrange(len(self._pods) + 1))
        for other in others:
            self._reserve(claim, other)
        if draw < 0.12:
            more = rng.choice((_LIMIT - 1, _LIMIT - 1, _LIMIT)) - len(others)
            claim["status"].setdefault("reservedFor", []).extend(
                {"apiGroup": "example.com", "resource": "jobs", "name": f"j{index}", "uid": f"j{index}"}
                for index in range(more)
            )
        elif draw < 0.25:
            self._reserve(claim, {"metadata": {"name": "wanted", "uid": "uid-wanted"}})

    def _selector(self) -> Json:
        rng = self._rng
        name = rng.choice(self._nodes)["metadata"]["name"]
        options: tuple[Json, ...] = (
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]},
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]},
            {"matchExpressions": [{"key": "rack", "operator": "Exists"}]},
        )
        return {"nodeSelectorTerms": [rng.choice(options)]}

    def _half_bind(self, claim: Json, results: list[Json]) -> None:
        """Devices that are to be made ready before the pod is bound."""
        rng = self._rng
        ready, failed = _CONDITIONS
        statuses = []
        for result in results:
            if rng.random() < 0.8:
                result.update(bindingConditions=[ready], bindingFailureConditions=[failed])
            if rng.random() < 0.7:
                conditions = [
                    {"type": condition, "status": rng.choice(("True", "True", "False", "Unknown")), **_SINCE}
                    for condition in _CONDITIONS
                    if rng.random() < 0.6
                ]
                place = {key: result[key] for key in ("driver", "pool", "device")}
                statuses.append({**place, "conditions": conditions})
        # A pool may publish a name twice, by mistake.
        places = {(one["driver"], one["pool"], one["device"]): one for one in statuses}
        claim["status"]["devices"] = list(places.values())

    def _add_extended(self, pod: Json) -> None:
        """Extended resources for some of its containers, before and beside the work."""
        rng = self._rng
        names = (*_EXTENDED, *_EXTENDED, f"{_IMPLICIT}any", f"{_IMPLICIT}{DRIVERS[0]}", f"{_IMPLICIT}none")
        wanted = rng.sample(names, rng.choice((1, 1, 2)))
        spec = pod["spec"]
        for index in range(rng.choice((0, 0, 0, 1, 2))):
            init: Json = _container(f"init{index}")
            if rng.random() < 0.4:
                init["restartPolicy"] = "Always"
            spec.setdefault("initContainers", []).append(init)
        for index in range(rng.choice((0, 0, 1))):
            spec["containers"].append(_container(f"more{index}"))
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for name in wanted:
                if rng.random() < 0.7:
                    container["resources"].setdefault("limits", {})[name] = rng.choice(("0", "1", "1", "1", "2"))


def _pod(name: str) -> Json:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"containers": [_container("work")]}}


def _container(name: str) -> Json:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": "100m"}}}


def _own(claim: Json, pod: Json) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    owner.update(name=pod["metadata"]["name"], uid=pod["metadata"]["uid"])
    claim["metadata"]["ownerReferences"] = [owner]
