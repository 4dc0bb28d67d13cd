"""A real cluster as the scheduler sees one: nodes come with their slices, pods are bound or told why not.

Nothing runs until a test starts KWOK: there are no kubelets. A node is created not ready, publishes, and becomes ready,
as a real one does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.kube.workloads.compute_domain import parse_compute_domain
from autoscaler.kube.writing.objects import write_claim, write_node
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.model.node import Node
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.kubernetes.labels import KWOK_NODE
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.concrete import make_concrete
from tests.e2e.harness.control_plane import ApiError, ControlPlane, Json
from tests.e2e.harness.toolbox import Kwok

Devices = Counter[tuple[str, str, str]]  # (request, driver, device) of all claims of a pod
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
POD_GROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"  # on a claim that is made from a template
MERGE: Final = "application/merge-patch+json"
# Where objects of manifests go. Kinds of others have no controller here, so creating them would change nothing.
PLACES: Final = {
    "Pod": PODS,
    "Job": JOBS,
    "ResourceClaim": CLAIMS,
    "ResourceClaimTemplate": TEMPLATES,
    "DeviceClass": CLASSES,
}


class Cluster:
    """What tests do to a control plane. Everything is in the namespace default."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.control_plane = control_plane
        self.call = control_plane.call

    def install_classes(self, profile: KubernetesProfile) -> None:
        """The DeviceClasses of the drivers' charts."""
        for facts in builtin_device_classes(profile):
            spec: Json = {"selectors": [{"cel": {"expression": text}} for text in facts.selectors]}
            if facts.extended_resource_name:
                spec["extendedResourceName"] = facts.extended_resource_name
            manifest = {"kind": "DeviceClass", "metadata": {"name": facts.name}, "spec": spec}
            self._create(CLASSES, {"apiVersion": "resource.k8s.io/v1", **manifest})

    def add_node(self, node: Node, slices: Iterable[ResourceSlice]) -> None:
        """A node with what its drivers publish, ready once that is there."""
        written = write_node(node)
        written["metadata"].setdefault("annotations", {})[KWOK_NODE] = "fake"
        not_ready = {"conditions": [{"type": "Ready", "status": "False", "reason": "Starting"}]}
        self._create(NODES, {**written, "status": not_ready})
        for piece in make_concrete(slices, node_name=node.name):
            self._create(SLICES, slice_manifest(piece))
        self.call("PATCH", f"{NODES}/{node.name}/status", {"status": written["status"]}, kind=MERGE)

    def apply(self, document: Json) -> None:
        """Create an object of a manifest, or what its controller would make of it; skip those nothing here knows."""
        group, kind = document["apiVersion"].rpartition("/")[0], document["kind"]
        if kind == "ComputeDomain":
            template = parse_compute_domain(document)
            assert template is not None
            claim = write_claim(template.spec)
            made = {
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": template.name},
                "spec": {"spec": claim["spec"]},
            }
            self._create(TEMPLATES, {"apiVersion": "resource.k8s.io/v1", **made})
        elif kind in PLACES:
            self._create(PLACES[kind], document)
        elif (group, kind) == ("scheduling.k8s.io", "PodGroup"):
            self._create(POD_GROUPS, document)

    def pods(self) -> list[Json]:
        """All pods, by name."""
        return sorted(self._list(PODS), key=lambda pod: str(pod["metadata"]["name"]))

    def outline(self) -> list[str]:
        """Where each pod stands, a line each: what a failed wait shows before the components' logs."""
        return [_standing(pod) for pod in self.pods()]

    def wait_for_pods(self, count: int) -> list[Json]:
        """Until there are `count` pods and every claim made from a template exists."""

        def complete() -> bool:
            pods, claims = self.pods(), self._list(CLAIMS)
            return len(pods) == count and all(len(_made_for(pod, claims)) == _asked_of_templates(pod) for pod in pods)

        self.control_plane.wait_until(complete, f"{count} pods with their claims", found=self.outline)
        return self.pods()

    def nominate(self, pod: Json, node: str) -> None:
        """Say where a pod was planned, as the autoscaler does.

        Also writes the names of the pod's claims. Kubernetes before 1.37 applies the names of new claims only, and so
        drops those of the others when its cache is behind, again and again (kubernetes/kubernetes#138407); names that
        somebody else wrote as well stay.
        """
        patch = {"status": {"nominatedNodeName": node, "resourceClaimStatuses": _made_for(pod, self._list(CLAIMS))}}
        self.call("PATCH", f"{PODS}/{pod['metadata']['name']}/status", patch, kind=MERGE)

    def wait_until_bound(self, count: int) -> list[Json]:
        """Until all pods are bound."""

        def bound() -> bool:
            return sum("nodeName" in pod["spec"] for pod in self.pods()) == count

        self.control_plane.wait_until(bound, f"{count} bound pods", found=self.outline)
        return self.pods()

    def wait_until_running(self, kwok: Kwok) -> None:
        """Until all pods run; they do once KWOK is there."""

        def running() -> bool:
            return {pod["status"]["phase"] for pod in self.pods()} == {"Running"}

        self.control_plane.wait_until(running, "running pods", found=lambda: (self.outline(), kwok.log_end()))

    def wait_until_refused(self, count: int) -> dict[str, tuple[str, str]]:
        """Until the scheduler has said no to all pods: reason and message of PodScheduled, by pod."""
        found: dict[str, tuple[str, str]] = {}

        def refused() -> bool:
            found.clear()
            found.update((pod["metadata"]["name"], answer) for pod in self.pods() if (answer := _refusal(pod)))
            return len(found) == count

        self.control_plane.wait_until(refused, f"{count} refused pods")
        return found

    def wait_for_answer(self, name: str) -> tuple[Json, tuple[str, str] | None]:
        """Until the scheduler has bound the pod or said no: the pod, and reason and message of a no."""

        def answered() -> bool:
            pod = self.call("GET", f"{PODS}/{name}")
            return "nodeName" in pod["spec"] or _refusal(pod) is not None

        self.control_plane.wait_until(answered, f"an answer for {name}")
        pod = self.call("GET", f"{PODS}/{name}")
        return pod, None if "nodeName" in pod["spec"] else _refusal(pod)

    def wait_until_ready(self, count: int) -> None:
        """Until all nodes have lost the taint that keeps pods off new ones."""

        def ready() -> bool:
            taints = [t["key"] for node in self._list(NODES) for t in node["spec"].get("taints", ())]
            return len(self._list(NODES)) == count and "node.kubernetes.io/not-ready" not in taints

        self.control_plane.wait_until(ready, f"{count} ready nodes")

    def forget(self, pod: Json) -> None:
        """Remove a pod that was not bound."""
        self.call("DELETE", f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")

    def devices_of(self, pod: Json) -> Devices:
        """What the pod's claims got."""
        claims = {claim["metadata"]["name"]: claim for claim in self._list(CLAIMS)}
        results = (
            result
            for name in _claim_names(pod)
            for result in claims[name].get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        )
        return Counter((result["request"], result["driver"], result["device"]) for result in results)

    def clear(self) -> None:
        """Remove everything."""
        at_once = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for place in (JOBS, PODS, TEMPLATES, CLAIMS, SLICES, NODES, CLASSES):
            self.call("DELETE", place, {"kind": "DeleteOptions", "apiVersion": "v1", **at_once})
        for group in self._list(POD_GROUPS):
            self.call("DELETE", f"{POD_GROUPS}/{group['metadata']['name']}")

        def left() -> list[str]:
            return [
                f"{place}/{item['metadata']['name']}"
                for place in (JOBS, PODS, CLAIMS, SLICES, NODES)
                for item in self._list(place)
            ]

        self.control_plane.wait_until(lambda: not left(), "an empty cluster", found=left)

    def _create(self, place: str, manifest: Json) -> None:
        self.call("POST", place, manifest)

    def _list(self, place: str) -> list[Json]:
        try:
            return list(self.call("GET", place)["items"])
        except ApiError as error:
            if error.code != 404:  # an API that is not served has no objects
                raise
            return []


def workload_of(pod: Json) -> str:
    """What the pod belongs to: pods of one controller are interchangeable."""
    owners = pod["metadata"].get("ownerReferences", ())
    return next((f"{owner['kind']}/{owner['name']}" for owner in owners), str(pod["metadata"]["name"]))


def _claim_names(pod: Json) -> Iterator[str]:
    yield from (entry["resourceClaimName"] for entry in pod["spec"].get("resourceClaims", ()) if _named(entry))
    status = pod.get("status", {})
    yield from (entry["resourceClaimName"] for entry in status.get("resourceClaimStatuses", ()) if _named(entry))
    if "extendedResourceClaimStatus" in status:
        yield status["extendedResourceClaimStatus"]["resourceClaimName"]


def _standing(pod: Json) -> str:
    status = pod.get("status", {})
    claims = [entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses", ())]
    name, node, nominated = pod["metadata"]["name"], pod["spec"].get("nodeName"), status.get("nominatedNodeName")
    refusal = " ".join(_refusal(pod) or ())
    return f"{name}: {status.get('phase')} on {node}, nominated {nominated}, claims {claims} {refusal}".rstrip()


def _named(entry: Json) -> bool:
    return "resourceClaimName" in entry


def _asked_of_templates(pod: Json) -> int:
    return sum("resourceClaimTemplateName" in entry for entry in pod["spec"].get("resourceClaims", ()))


def _made_for(pod: Json, claims: Iterable[Json]) -> list[Json]:
    """The claims made from templates for the pod, or for its PodGroup, as entries of its
    `status.resourceClaimStatuses`: those that its status has, and those that it owns."""
    uid = pod["metadata"]["uid"]
    found = {entry["name"]: entry for entry in pod.get("status", {}).get("resourceClaimStatuses", ())}
    own = (c["metadata"] for c in claims if any(o["uid"] == uid for o in c["metadata"].get("ownerReferences", ())))
    for metadata in own:
        if entry := metadata.get("annotations", {}).get(POD_CLAIM):
            found[entry] = {"name": entry, "resourceClaimName": metadata["name"]}
    return list(found.values())


def _refusal(pod: Json) -> tuple[str, str] | None:
    conditions = pod.get("status", {}).get("conditions", ())
    return next(
        (
            (c["reason"], c.get("message", ""))
            for c in conditions
            if c["type"] == "PodScheduled" and c["status"] == "False"
        ),
        None,
    )
