"""Launches are Nodes in the cluster, with the ResourceSlices that their drivers would publish.

All state is in the Nodes: labels carry tags and a hash of the token, an annotation a hash of the parameters. KWOK
(https://kwok.sigs.k8s.io), which is installed separately, makes the Nodes Ready and runs their pods. The caller knows
the content of a Node and its slices and passes it as `Machines`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from providers.abilities import KubernetesObjects
from providers.at_once import each
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    TAG_POOL,
    Instance,
    InstancePage,
    InstanceState,
    LaunchAnswer,
    LaunchRequest,
    OfferingFailure,
    OfferingKey,
    OfferingStatus,
    Reservation,
    TerminateAnswer,
    Traits,
)
from providers.errors import (
    AmbiguousError,
    CapacityError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    TemplateError,
    TokenReusedError,
)

Json: TypeAlias = Mapping[str, Any]
NODES: Final = ("v1", "nodes")
SLICES: Final = ("resource.k8s.io/v1", "resourceslices")
# KWOK's convention; a cloud controller manager leaves nodes of another provider alone.
PROVIDER_ID: Final = "kwok://"
_TAGS: Final = (TAG_CLUSTER, TAG_POOL, TAG_BATCH)


@dataclass(frozen=True, slots=True)
class MachineManifests:
    """The objects of a machine: its Node, not ready yet, and the ResourceSlices of its drivers."""

    node: Json
    slices: tuple[Json, ...] = ()


class Machines(Protocol):
    def manifests(self, request: LaunchRequest, offering: OfferingKey) -> Sequence[MachineManifests]:
        """The machines of a request, in the order of its nodes.

        Raises NotOfferedError for an unknown type, TemplateError for a template.
        """


class KwokProvider:
    """Creates and deletes Nodes that KWOK acts for; `at_once` is how many of a request are made at the same time."""

    def __init__(self, objects: KubernetesObjects, machines: Machines, name: str = "kwok", *, at_once: int = 1) -> None:
        self._objects = objects
        self._machines = machines
        self._name = name
        self._at_once = at_once

    @property
    def name(self) -> str:
        return self._name

    @property
    def traits(self) -> Traits:
        """The API server is consistent, so a created machine is listed at once."""
        return Traits(exact=True)

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """Creates the missing Nodes and their slices. Either all of them are available, or none."""
        self._check(request)
        failures: list[OfferingFailure] = []
        for offering in request.offerings:
            try:
                machines = self._described(request, offering)
            except CapacityError as error:
                failures.append(OfferingFailure(offering, error))
                continue
            instances = each(partial(self._create, request, offering), machines, at_once=self._at_once)
            return LaunchAnswer(tuple(instances), failures=tuple(failures))
        return LaunchAnswer(missing=request.nodes, failures=tuple(failures))

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        found = self._objects.list(NODES, labels=tags)
        return InstancePage(tuple(_instance(node) for node in found if _ours(node)))

    def look_up(self, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
        """Nodes by name. One without the provider's mark belongs to another owner, whatever its name is."""
        names = {provider_id.removeprefix(PROVIDER_ID): provider_id for provider_id in provider_ids}
        found = {names[name]: self._objects.get(NODES, name) for name in names}
        return {key: _instance(node) for key, node in found.items() if node is not None and _ours(node)}

    def place(self) -> str:
        """The cluster itself, and no other is in reach."""
        return ""

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        """Deletes slices and Nodes, the Node last: an incomplete deletion is still listed, and repeated."""
        terminating, gone = [], []
        failures: dict[str, ProviderError] = {}
        for machine in dict.fromkeys(ids):
            node = self._objects.get(NODES, machine)
            if node is None:
                gone.append(machine)
            elif not _ours(node):
                failures[machine] = PermissionDeniedError(f"Node {machine} was not made by this provider")
            else:
                for slice_ in self._objects.list(SLICES, labels={labels.PROVISIONED_NODE: machine}):
                    self._objects.delete(SLICES, slice_["metadata"]["name"])
                self._objects.delete(NODES, machine)
                terminating.append(machine)
        return TerminateAnswer(tuple(terminating), tuple(gone), FrozenMap(failures))

    def reservations(self) -> tuple[Reservation, ...]:
        """KWOK reserves nothing."""
        return ()

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """All offerings of the catalog."""
        return ()

    def _check(self, request: LaunchRequest) -> None:
        """Refuse, before anything is created, a token that was used otherwise and names that are taken."""
        made = {node["metadata"]["name"]: node for node in self._objects.list(NODES, labels=_token_label(request))}
        asked = _fingerprint(request)
        if any(node["metadata"]["annotations"][labels.LAUNCH_PARAMETERS] != asked for node in made.values()):
            raise TokenReusedError(f"token {request.token} was used with other parameters")
        new = [name for name in request.nodes if name not in made]
        for found in each(partial(self._objects.get, NODES), new, at_once=self._at_once):
            if found is not None:
                name, step = found["metadata"]["name"], "delete that Node, or find out who made it"
                raise TemplateError(f"a Node {name} exists that this launch did not make", next_step=step)

    def _described(self, request: LaunchRequest, offering: OfferingKey) -> Sequence[MachineManifests]:
        if offering.reservation:
            raise NotOfferedError(f"KWOK has no reservations, so there is no {offering}")
        return self._machines.manifests(request, offering)

    def _create(self, request: LaunchRequest, offering: OfferingKey, machine: MachineManifests) -> Instance:
        metadata, spec = machine.node["metadata"], machine.node.get("spec", {})
        name = metadata["name"]
        marks = {key: request.tags[key] for key in _TAGS if key in request.tags} | _token_label(request)
        marks[labels.PROVISIONED_NODE] = name
        annotations = {
            **metadata.get("annotations", {}),
            labels.LAUNCH_PARAMETERS: _fingerprint(request),
            labels.OFFERING: json.dumps([offering.instance_type, offering.zone, offering.capacity_type]),
        }
        named = {**metadata, "labels": {**metadata.get("labels", {}), **marks}, "annotations": annotations}
        node = {**machine.node, "metadata": named, "spec": {**spec, "providerID": PROVIDER_ID + name}}
        found = self._objects.create(NODES, node) or self._objects.get(NODES, name)
        if found is None:
            raise AmbiguousError(f"Node {name} was deleted while it was being made")
        # Owned by the Node, as drivers publish them: they are deleted with it.
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": found["metadata"]["uid"], "controller": True}
        for slice_ in machine.slices:
            of_node = {"labels": {labels.PROVISIONED_NODE: name}, "ownerReferences": [owner]}
            self._objects.create(SLICES, {**slice_, "metadata": {**slice_["metadata"], **of_node}})
        return _instance(found)


def _instance(node: Json) -> Instance:
    metadata = node["metadata"]
    return Instance(
        id=metadata["name"],
        provider_id=node["spec"]["providerID"],
        offering=OfferingKey(*json.loads(metadata["annotations"][labels.OFFERING])),
        state=_state(node),
        launched_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        tags=FrozenMap({key: metadata["labels"][key] for key in _TAGS if key in metadata["labels"]}),
        node=metadata["name"],
    )


def _state(node: Json) -> InstanceState:
    if "deletionTimestamp" in node["metadata"]:
        return InstanceState.TERMINATING
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)
    return InstanceState.RUNNING if ready else InstanceState.PENDING


def _ours(node: Json) -> bool:
    return labels.LAUNCH_TOKEN in node["metadata"].get("labels", {})


def _token_label(request: LaunchRequest) -> dict[str, str]:
    """A label's value has 63 characters, a token up to 64."""
    return {labels.LAUNCH_TOKEN: hashlib.sha256(request.token.encode()).hexdigest()[:40]}


def _fingerprint(request: LaunchRequest) -> str:
    """Equal for requests with equal parameters, in any order of their maps."""
    parameters = (
        request.nodes,
        [str(offering) for offering in request.offerings],
        sorted(request.tags.items()),
        request.minimum,
        (request.template.kind, request.template.name, request.template.generation),
        sorted(request.labels.items()),
        [(taint.key, taint.value, taint.effect) for taint in request.taints],
        sorted((name, str(amount)) for name, amount in request.kubelet_reserved.items()),
        request.drivers,
    )
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:40]
