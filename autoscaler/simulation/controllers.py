"""The controllers of the simulated cluster that DRA needs: claims from templates, clean-up, and lost nodes.

Rules of kube-controller-manager v1.36: pkg/controller/resourceclaim/controller.go (claims are generated for pods,
deallocated once no consumer reserves them, deleted with their pods) and pkg/controller/podgc (pods of a node that is
gone).
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from autoscaler.cluster.api import KubernetesApi, Object
from autoscaler.cluster.resources import CLAIM_TEMPLATES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from autoscaler.simulation.api_server import copied, seen
from instance_catalog.dataclass import dataclass


class Controllers:
    """Takes one step of the controllers towards the desired state of the objects."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._before = _Pass()

    def step(self) -> bool:
        """One pass of every controller. True if anything was written."""
        before, pods, published = self._before, seen(self._api, PODS), seen(self._api, RESOURCE_SLICES)
        templates, listed = seen(self._api, CLAIM_TEMPLATES), seen(self._api, NODES)
        nodes, users = before.names, before.users
        if listed is not before.nodes:
            nodes = {node["metadata"]["name"] for node in listed}
        if pods is not before.pods:
            users = {pod["metadata"]["uid"] for pod in pods if not finished(pod)}
        gone = not before.names <= nodes
        lost = [self._lose(pod) for pod in _unchecked(pods, before.pods, every=gone) if _is_lost(pod, nodes)]
        left = [slice_ for slice_ in _unchecked(published, before.slices, every=gone) if _of_gone(slice_, nodes)]
        slices = [self._remove_slice(slice_) for slice_ in left]
        without = _unchecked(pods, before.pods, every=templates is not before.templates)
        made = [self._generate_claims(pod) for pod in without if "deletionTimestamp" not in pod["metadata"]]
        claims = seen(self._api, RESOURCE_CLAIMS)
        used = _unchecked(claims, before.claims, every=not before.users <= users)
        cleaned = [self._clean(claim, users) for claim in used]
        self._before = _Pass(pods, listed, published, templates, claims, nodes, users)
        return any([*lost, *slices, *made, *cleaned])

    def _lose(self, pod: Object) -> bool:
        self._api.delete(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"], grace_seconds=0)
        return True

    def _remove_slice(self, slice_: Object) -> bool:
        self._api.delete(RESOURCE_SLICES, slice_["metadata"]["name"])
        return True

    def _generate_claims(self, pod: Object) -> bool:
        """A claim for each entry that names a template, its name noted in the pod's status."""
        namespace = pod["metadata"]["namespace"]
        statuses = list(pod.get("status", {}).get("resourceClaimStatuses", []))
        done = {entry["name"] for entry in statuses}
        for entry in pod["spec"].get("resourceClaims", []):
            template = entry.get("resourceClaimTemplateName")
            if template is None or entry["name"] in done:
                continue
            found = self._template(template, namespace)
            if found is None:
                continue
            claim = self._api.create(RESOURCE_CLAIMS, _claim_for(pod, entry["name"], found))
            statuses.append({"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]})
        if len(statuses) == len(done):
            return False
        patch = {"status": {"resourceClaimStatuses": statuses}}
        self._api.patch(PODS, pod["metadata"]["name"], patch, namespace=namespace, subresource="status")
        return True

    def _template(self, name: str, namespace: str) -> Object | None:
        wanted = (namespace, name)
        templates = ((found["metadata"], found) for found in seen(self._api, CLAIM_TEMPLATES))
        return next((found for at, found in templates if (at["namespace"], at["name"]) == wanted), None)

    def _clean(self, claim: Object, users: Set[str]) -> bool:
        """Drop reservations of pods that ended; deallocate an unreserved claim; delete one made for a pod with it."""
        metadata, status = claim["metadata"], claim.get("status", {})
        owners = [owner["uid"] for owner in metadata.get("ownerReferences", []) if owner["kind"] == "Pod"]
        if owners and not users & set(owners):
            self._api.delete(RESOURCE_CLAIMS, metadata["name"], namespace=metadata["namespace"])
            return True
        reserved = status.get("reservedFor", [])
        # This controller does not know whether a consumer that is no pod still exists.
        kept = [one for one in reserved if one["resource"] != "pods" or one["uid"] in users]
        if len(kept) == len(reserved):
            return False
        updated: Object = copied(claim)
        updated["status"]["reservedFor"] = kept
        if not kept:
            updated["status"].pop("allocation", None)
        self._api.update(RESOURCE_CLAIMS, updated, subresource="status")
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """What a pass has seen: what was right then stays right until the object is replaced, a node goes, a pod that uses
    claims ends, or a template comes."""

    pods: Sequence[Object] = ()
    nodes: Sequence[Object] = ()
    slices: Sequence[Object] = ()
    templates: Sequence[Object] = ()
    claims: Sequence[Object] = ()
    names: Set[str] = frozenset()
    """Those of the nodes."""
    users: Set[str] = frozenset()
    """The uids of the pods that may use claims."""


def _unchecked(found: Sequence[Object], before: Sequence[Object], *, every: bool) -> Sequence[Object]:
    """The objects that the last pass has not seen, or `every` one. Stored objects are replaced and never changed, and
    `before` keeps those it has, so no other object has the id of one of them."""
    if every or found is before:
        return found if every else ()
    known = set(map(id, before))
    return [one for one in found if id(one) not in known]


def finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _is_lost(pod: Object, nodes: Set[str]) -> bool:
    name = pod["spec"].get("nodeName")
    return bool(name) and name not in nodes


def _of_gone(slice_: Object, nodes: Set[str]) -> bool:
    name = slice_["spec"].get("nodeName")
    return name is not None and name not in nodes


def _claim_for(pod: Object, entry: str, template: Object) -> Object:
    metadata = pod["metadata"]
    return {
        "metadata": {
            "generateName": f"{metadata['name']}-{entry}-",
            "namespace": metadata["namespace"],
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": template["spec"]["spec"],
    }
