"""A queue in front of the simulated cluster, as Kueue is one: it asks for nodes, and lets pods start when it has them.

What it does follows sigs.k8s.io/kueue 0.19 pkg/controller/admissionchecks/provisioning: a ProvisioningRequest first,
its PodTemplates second; the pods get the annotations, and the node selector that the details name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from autoscaler.cluster.api import KubernetesApi, Object, list_all
from autoscaler.cluster.resources import CLAIM_TEMPLATES, POD_TEMPLATES, PODS, PROVISIONED_NODES, PROVISIONING_REQUESTS
from instance_catalog.kubernetes import labels

RUNS_FOR = "simulation.foreslice.dev/runs-for"
CLASS = "autoscaling.x-k8s.io/provisioning-class-name"


@dataclass(frozen=True)
class Gang:
    """`sets` are (number of pods, devices of each, cpu of each); the first device class is that of whole GPUs."""

    name: str
    sets: tuple[tuple[int, int, str], ...]
    runs_for: str = "10m"
    class_name: str = "atomic.foreslice.dev"
    selector: str = ""
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        return sum(count for count, _, _ in self.sets)


def machines(api: KubernetesApi) -> int:
    return len(list_all(api, PROVISIONED_NODES)[0])


def condition(request: Object, kind: str) -> Object:
    found = [c for c in request.get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


def holds(request: Object, kind: str) -> bool:
    return bool(condition(request, kind).get("status") == "True")


def claim_template(name: str, devices: int, selector: str = "") -> Object:
    exactly: dict[str, Any] = {"deviceClassName": "gpu.nvidia.com", "count": devices}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    requests = [{"name": "gpu", "exactly": exactly}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": {"devices": {"requests": requests}}}}


def template(name: str, cpu: str, claims: str) -> Object:
    """The spec of a pod with claims of the ResourceClaimTemplate `claims`; without any if it is empty."""
    container: dict[str, Any] = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"containers": [container]}
    if claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": claims}]
        container["resources"]["claims"] = [{"name": "gpu"}]
    return {"metadata": {"labels": {"set": name}}, "spec": spec}


@dataclass
class Queue:
    """All gangs, and what became of them. `started` holds those whose pods were created."""

    api: KubernetesApi
    gangs: dict[str, Gang] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)

    def ask(self, gang: Gang) -> None:
        self.gangs[gang.name] = gang
        for number, (_, devices, _) in enumerate(gang.sets):
            if devices:
                self.api.create(CLAIM_TEMPLATES, claim_template(f"{gang.name}-{number}", devices, gang.selector))
        self.api.create(PROVISIONING_REQUESTS, request_of(gang))
        for number, (_, devices, cpu) in enumerate(gang.sets):
            made = template(f"{gang.name}-{number}", cpu, f"{gang.name}-{number}" if devices else "")
            self.api.create(POD_TEMPLATES, {"metadata": named(f"ppt-{gang.name}-{number}"), "template": made})

    def request(self, name: str) -> Object:
        return self.api.get(PROVISIONING_REQUESTS, name, namespace="default")

    def step(self) -> bool:
        """Start the pods of every gang whose nodes are there; whether any were."""
        changed = False
        for request in list_all(self.api, PROVISIONING_REQUESTS)[0]:
            name = request["metadata"]["name"]
            if name in self.gangs and name not in self.started and holds(request, "Provisioned"):
                self.started.add(name)
                self._start(self.gangs[name], request["status"].get("provisioningClassDetails", {}))
                changed = True
        return changed

    def _start(self, gang: Gang, details: dict[str, str]) -> None:
        for number, (count, devices, cpu) in enumerate(gang.sets):
            pod = template(f"{gang.name}-{number}", cpu, f"{gang.name}-{number}" if devices else "")
            # A detail that the class does not have is left out without a word.
            key = labels.PROVISIONING_REQUEST
            pod["spec"]["nodeSelector"] = {key: details[key]} if key in details else {}
            for index in range(count):
                marks = {
                    labels.CONSUME_PROVISIONING_REQUEST: gang.name,
                    CLASS: gang.class_name,
                    RUNS_FOR: gang.runs_for,
                }
                metadata = {**named(f"{gang.name}-{number}-{index}"), "annotations": marks}
                self.api.create(PODS, {"metadata": metadata, "spec": pod["spec"]})

    def pods_of(self, name: str) -> list[Object]:
        pods = list_all(self.api, PODS)[0]
        marked = labels.CONSUME_PROVISIONING_REQUEST
        return [pod for pod in pods if pod["metadata"].get("annotations", {}).get(marked) == name]


def named(name: str) -> Object:
    return {"name": name, "namespace": "default"}


def request_of(gang: Gang) -> Object:
    sets = [
        {"podTemplateRef": {"name": f"ppt-{gang.name}-{number}"}, "count": count}
        for number, (count, _, _) in enumerate(gang.sets)
    ]
    spec = {"podSets": sets, "provisioningClassName": gang.class_name, "parameters": gang.parameters}
    return {"metadata": named(gang.name), "spec": spec}
