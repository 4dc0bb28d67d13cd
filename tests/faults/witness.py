"""Looks over the controller's shoulder: every write and every end of a machine is judged at the moment it is made.

What is found is noted and not raised: a controller that isolates what fails would isolate the finding as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from autoscaler.cluster.api import NotFoundError, Object, list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.loop.loop import Loop
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.kubernetes import labels
from providers.contract import TerminateAnswer
from tests.faults import invariants


@dataclass
class Witness:
    """`machines`: by provider id, whether each machine that we ever launched still runs. `found`: what is wrong.

    `observes`: whether all pools are in mode Observe.
    """

    api: ApiServer
    machines: Callable[[], Mapping[str, bool]]
    observes: Callable[[], bool] = lambda: False
    found: list[str] = field(default_factory=list)
    _decided: dict[str, Object] = field(default_factory=dict)  # by node, the status that was last tried to be written

    def tries(self, resource: Resource, manifest: Object) -> None:
        """A write begins, and may get lost: what it says is decided all the same, until the process ends."""
        if resource == PROVISIONED_NODES:
            self._decided[manifest["metadata"]["name"]] = manifest.get("status", {})

    def creates(self, resource: Resource, manifest: Object) -> None:
        """An object is about to be created."""
        if resource == LAUNCH_BATCHES and any(manifest["spec"].get("pods", ())):
            mine, pods = self.api.stored(PROVISIONED_NODES), self.api.stored(PODS)
            # A node that has failed, or whose machine was stopped, is replaced in the same round, whether or not its
            # own object could be written.
            kept = (node for node in mine if not _replaced(self._decided.get(node["metadata"]["name"], {})))
            self._note(invariants.bought_twice(manifest, kept, pods))

    def evicts(self, name: str, namespace: str, uid: str) -> None:
        """A pod is about to be evicted."""
        pod = self._get(PODS, name, namespace)
        if pod is not None:
            provisioned = self._provisioned(pod["spec"].get("nodeName", ""))
            self._note(invariants.evicted(pod, provisioned, uid=uid))
            self._touches("evict pods", provisioned)

    def deletes(self, resource: Resource, name: str, uid: str) -> None:
        """An object is about to be deleted."""
        node = self._get(NODES, name) if resource == NODES else None
        if node is None or _is_a_machine(node):
            return
        machines, machine = self.machines(), node.get("spec", {}).get("providerID", "")
        pods, runs = self._pods(name), machines.get(machine, False)
        ours = machine in machines
        self._touches("delete the Node", self._provisioned(name))
        self._note(invariants.node_deleted(node, self._provisioned(name), pods, uid=uid, ours=ours, runs=runs))

    def patches(self, resource: Resource, name: str) -> None:
        """An object is about to be changed in part."""
        if resource == NODES:
            self._touches("change the Node", self._provisioned(name))

    def updates(self, resource: Resource, manifest: Object) -> None:
        """An object is about to be written."""
        if resource == PROVISIONED_NODES:
            runs = self.machines().get(invariants.machine_of(manifest), False)
            self._note(invariants.given_up(manifest, runs=runs))

    def terminates(self, ids: Iterable[str]) -> None:
        """Machines are about to be ended."""
        mine = self.api.stored(PROVISIONED_NODES)
        nodes = self.api.stored(NODES)
        for machine in ids:
            node = next((n for n in nodes if _names(n.get("spec", {}).get("providerID", ""), machine)), None)
            provisioned = next((p for p in mine if _names(invariants.machine_of(p), machine)), None)
            self._touches(f"end machine {machine}", provisioned)
            if node is not None:
                pods = self._pods(node["metadata"]["name"])
                self._note(invariants.machine_ended(provisioned, node, pods))

    def follows(self, loop: Loop) -> Loop:
        """See how this controller ends machines. It knows nothing of what the one before decided and did not write."""
        self._decided.clear()
        for provider in loop._executor.providers.by_template.values():
            setattr(provider, "terminate", partial(self._terminate, provider.terminate))  # noqa: B010
        return loop

    def _terminate(self, end: Callable[[Sequence[str]], TerminateAnswer], ids: Sequence[str]) -> TerminateAnswer:
        self.terminates(ids)
        return end(ids)

    def looks(self) -> None:
        """Between two rounds."""
        self._note(invariants.doubled(self.api.stored(PROVISIONED_NODES)))

    def _touches(self, what: str, provisioned: Object | None) -> None:
        if self.observes():
            self._note(invariants.touched_in_observe(what, provisioned, self.api.stored(PROVISIONED_NODES)))

    def _note(self, found: Iterator[str]) -> None:
        self.found += [text for text in found if text not in self.found]

    def _get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            return self.api.get(resource, name, namespace=namespace)
        except NotFoundError:
            return None

    def _pods(self, node: str) -> tuple[Object, ...]:
        return list_all(self.api, PODS, fields={"spec.nodeName": node})[0]

    def _provisioned(self, node: str) -> Object | None:
        found = self.api.stored(PROVISIONED_NODES)
        return next((one for one in found if invariants.node_name_of(one) == node), None)


def _replaced(status: Object) -> bool:
    """Whether a node of such a status does not come: another one is bought in its place."""
    return status.get("phase") in invariants.ENDING or "stoppedSince" in status


def _is_a_machine(node: Object) -> bool:
    """KWOK's Nodes are the machines: to delete one is to end it, which is judged there."""
    return labels.LAUNCH_TOKEN in node["metadata"].get("labels", {})


def _names(provider_id: str, machine: str) -> bool:
    return provider_id == machine or provider_id.endswith(f"/{machine}")
