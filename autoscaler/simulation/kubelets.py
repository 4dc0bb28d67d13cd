"""Kubelets and DRA drivers of the simulated cluster: a running machine registers, its drivers publish, its pods run.

The node is planning's hypothetical one, with the labels and taints of the launch request; the slices are the predicted
ones made concrete. A pod runs for the time in its annotation and then succeeds; without the annotation it runs on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import AlreadyExistsError, KubernetesApi, Object
from autoscaler.cluster.resources import NODES, PODS, RESOURCE_SLICES
from autoscaler.cluster.store import Store
from autoscaler.execution.machine import machine_of
from autoscaler.kube.custom.schema import duration
from autoscaler.kube.writing.objects import write_node
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.planning.supply.hypothetical import Hypothetical
from autoscaler.simulation.api_server import seen
from autoscaler.simulation.controllers import finished
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.types.catalog import Catalog
from providers.contract import InstanceState, LaunchRequest
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.machines import Machine

RUNS_FOR: Final = "simulation.foreslice.dev/runs-for"
# From a node's registration until its drivers have published.
PUBLISHING: Final = timedelta(seconds=15)


class Kubelets:
    """All machines of the simulated cloud, seen from inside. `tidy`: pods that have succeeded are deleted at once."""

    def __init__(
        self,
        api: KubernetesApi,
        store: Store,
        cloud: SimulatedCloud,
        catalog: Catalog,
        clock: VirtualClock,
        *,
        tidy: bool = False,
    ) -> None:
        self._tidy = tidy
        self._api = api
        self._store = store
        self._cloud = cloud
        self._catalog = catalog
        self._clock = clock
        self._starting: dict[str, Hypothetical] = {}  # machines whose drivers have not published yet, as predicted
        self._published: set[str] = set()
        self._nodes: tuple[Sequence[Object], Mapping[str, Object]] = ((), {})  # as listed, and by name
        self._listed: Sequence[Object] = ()  # the pods as listed
        self._pods: dict[str, _Known] = {}  # by uid
        self._next = _NEVER  # the earliest time at which one of them is due

    def step(self) -> bool:
        """Takes the due step of every machine and every pod. Returns True if anything was written."""
        now, behaviour, nodes = self._clock.now(), self._cloud.behaviour, self._known_nodes()
        changed = False
        for request, machine in self._machines():
            if machine.ended_at is None and machine.id in self._published:
                continue  # its node and slices are there, and it does not end: for most machines, most of the time
            state, known = machine.state(now, behaviour), nodes.get(machine.node)
            if state is InstanceState.RUNNING:
                changed |= self._run(request, machine, known, now)
            elif state is InstanceState.TERMINATED and known is not None and _is(known, machine):
                # The cloud controller removes the Node of a machine that is gone.
                self._api.delete(NODES, machine.node)
                changed = True
        pods = self._known_pods()
        if self._next <= now:
            for pod in pods:
                if pod.due <= now and pod.pod["spec"]["nodeName"] in nodes:
                    changed |= self._run_pod(pod, now)
        return changed

    def next_moment(self) -> datetime | None:
        """The time of the next change: a boot, a publication, a machine's end, a pod's completion."""
        now, behaviour = self._clock.now(), self._cloud.behaviour
        moments = []
        for _, machine in self._machines():
            if machine.id not in self._published:
                booted = machine.launched_at + behaviour.boot
                moments += [booted, booted + PUBLISHING]
            for end in (machine.ended_at, self._cloud.reclaim_at(machine)):
                if end is not None:
                    moments += [end, end + behaviour.shutdown]
        moments += [known.ends_at for known in self._known_pods() if known.ends_at is not None]
        return min((moment for moment in moments if moment > now), default=None)

    def _machines(self) -> Iterator[tuple[LaunchRequest, Machine]]:
        machines = self._cloud.machines
        for launch in self._cloud.launches.values():
            for machine in launch.ids:
                yield launch.request, machines[machine]

    def _run(self, request: LaunchRequest, machine: Machine, known: Object | None, now: datetime) -> bool:
        """Register the node, and publish its slices once the drivers are up."""
        if machine.id in self._published or (known is not None and now - _created(known) < PUBLISHING):
            return False
        predicted = self._starting.pop(machine.id, None) or machine_of(
            request, machine.offering, machine.node, catalog=self._catalog, profile=self._store.profile
        )
        if known is None:
            self._starting[machine.id] = predicted
            self._api.create(NODES, write_node(replace(predicted.node, provider_id=machine.provider_id)))
            return True
        for slice_ in make_concrete(predicted.slices, node_name=machine.node, seed=machine.id):
            with suppress(AlreadyExistsError):
                self._api.create(RESOURCE_SLICES, slice_manifest(slice_))
        self._published.add(machine.id)
        return True

    def _known_nodes(self) -> Mapping[str, Object]:
        """All nodes by name: the same mapping as before while the API server has the same list."""
        listed = seen(self._api, NODES)
        if listed is not self._nodes[0]:
            self._nodes = listed, {node["metadata"]["name"]: node for node in listed}
        return self._nodes[1]

    def _known_pods(self) -> Collection[_Known]:
        """All pods: of one that did not change, what was read of it before.

        Stored objects are replaced and never changed, so the same list has the same pods in the same state."""
        listed = seen(self._api, PODS)
        if listed is not self._listed:
            before, self._pods, self._listed = self._pods, {}, listed
            for pod in listed:
                uid = pod["metadata"]["uid"]
                known = before.get(uid)
                if known is None or known.pod is not pod:
                    known = _Known.of(pod, tidy=self._tidy)
                self._pods[uid] = known
            self._next = min((known.due for known in self._pods.values()), default=_NEVER)
        return self._pods.values()

    def _run_pod(self, known: _Known, now: datetime) -> bool:
        metadata, status = known.pod["metadata"], known.pod.get("status", {})
        name, namespace = metadata["name"], metadata["namespace"]
        if known.ends:
            self._api.delete(PODS, name, namespace=namespace, grace_seconds=0)
            return True
        if status.get("phase") == "Pending":
            started = {"phase": "Running", "startTime": now.strftime(_TIME)}
            self._api.patch(PODS, name, {"status": started}, namespace=namespace, subresource="status")
            return True
        self._api.patch(PODS, name, {"status": {"phase": "Succeeded"}}, namespace=namespace, subresource="status")
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A pod as it is stored, which never changes: another one replaces it.

    `ends`: it is deleted. `due`: when the kubelet of its node has something to do.
    """

    pod: Object
    ends: bool
    ends_at: datetime | None
    due: datetime

    @staticmethod
    def of(pod: Object, *, tidy: bool) -> _Known:
        """Those that have finished are deleted if `tidy`."""
        ends = "deletionTimestamp" in pod["metadata"] or (tidy and finished(pod))
        ends_at = _ends_at(pod)
        if not pod["spec"].get("nodeName"):
            due = _NEVER
        elif ends or pod.get("status", {}).get("phase") == "Pending":
            due = _EVER
        else:
            due = ends_at or _NEVER
        return _Known(pod, ends, ends_at, due)


_EVER: Final = datetime.min.replace(tzinfo=UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


def _is(node: Object, machine: Machine) -> bool:
    return bool(node["spec"].get("providerID") == machine.provider_id)


def _created(node: Object) -> datetime:
    return datetime.fromisoformat(node["metadata"]["creationTimestamp"])


def _ends_at(pod: Object) -> datetime | None:
    """The time at which a running pod will have finished; None if it is not running, or runs on."""
    started = pod.get("status", {}).get("startTime")
    runs_for = pod["metadata"].get("annotations", {}).get(RUNS_FOR)
    if started is None or runs_for is None or finished(pod):
        return None
    return datetime.fromisoformat(started) + duration(runs_for)
