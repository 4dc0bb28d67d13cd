"""The last seen state of the cluster: one informer for each kind, combined into a Snapshot.

It reads; it never writes and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import chain
from operator import is_not
from typing import Any, Final, TypeVar

import structlog

from autoscaler.cluster import resources
from autoscaler.cluster.api import KubernetesApi, Object, key_of
from autoscaler.cluster.informer import Informer
from autoscaler.cluster.interning import PodInterner
from autoscaler.cluster.parsed import Parsed, Written
from autoscaler.kube.custom.capacity_pool import parse_pool_status
from autoscaler.kube.custom.instance_type_overlay import overlay_layer
from autoscaler.kube.custom.launch_batch import parse_launch_batch
from autoscaler.kube.custom.pool_memory import backoffs_of, quarantines_of
from autoscaler.kube.custom.spending import CLUSTER, parse_spending
from autoscaler.kube.kinds import KINDS, POD_TEMPLATES, PODS, POOLS, PRIORITIES, Form, SnapshotKind, or_problem
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.node import Node, with_volume_limits
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import LaunchBatch, ProvisionedNode
from autoscaler.model.requested_capacity import PodTemplate, Scalable
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from autoscaler.model.spending import Spending
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic, Severity
from instance_catalog.files.layers import Layer
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice.store")
_RESOURCES: Final = {
    (found.group, found.kind): found for found in (*resources.ALL, resources.DEPLOYMENTS, resources.NATIVE_POD_GROUPS)
}
D = TypeVar("D", Pod, ResourceClaim, DeviceClass, ResourceSlice, DeviceTaintRule)


@dataclass(frozen=True, slots=True)
class _PoolSeen:
    pool: CapacityPool
    backoffs: tuple[Backoff, ...]
    quarantines: tuple[Quarantine, ...]


class _Field:
    """A field of Snapshot: the same object until one of its kinds changes.

    It cannot be stale: an informer has the same tuple of values until one changes, and then makes another.
    """

    def __init__(self, form: Form, informers: Sequence[Informer[Any]], *, keeps: Callable[[Any], bool] | None) -> None:
        self._form = form
        self._informers = tuple(informers)
        self._keeps = keeps
        self._seen: list[tuple[Any, ...]] | None = None  # the values that `_made` was made of
        self._made: Any = None

    def value(self) -> Any:
        """The field, as of the last refresh."""
        seen = [informer.values for informer in self._informers]
        if self._seen is None or any(map(is_not, seen, self._seen)):
            parts = (one.items for one in self._informers) if self._form is Form.BY_KEY else seen
            found = chain.from_iterable(parts)
            self._seen, self._made = seen, self._form.of(filter(self._keeps, found) if self._keeps else found)
        return self._made


class Store:
    """The cluster as the watches show it. `refresh` reads them, `snapshot` is their result."""

    def __init__(
        self,
        api: KubernetesApi,
        profile: KubernetesProfile,
        *,
        clock: Clock | None = None,
        stale: timedelta = timedelta.max,
        own: bool = True,
        parsed: Parsed | None = None,
        written: Written | None = None,
    ) -> None:
        """`stale`: the greatest age of any part by `clock`. Without a clock nothing ages, for callers that read
        once. Without `own`, Foreslice's objects are not read, for those who do not know them. `parsed`: the values of
        other objects, which it shares with a second store. `written`: the values of what this process wrote."""
        self.profile = profile
        informer = partial(Informer, api, clock=clock, stale=stale)
        shared, own_kinds = partial(informer, parsed=parsed), partial(informer, parsed=written)
        ours = resources.CAPACITY_POOLS.group
        self._interned = PodInterner()
        self._whole: dict[str, tuple[Node, Node]] = {}  # by name: as read, and with its volume limits
        self._nodes: tuple[Any, Any, tuple[Node, ...]] = (None, None, ())  # all as read, the limits, all with them
        self._priorities: Informer[PriorityClass] = shared(resources.PRIORITY_CLASSES, PRIORITIES.parse)
        self._pods: Informer[Pod] = shared(resources.PODS, self._parse_pod)
        self._pools: Informer[_PoolSeen] = informer(resources.CAPACITY_POOLS, _parse_pool)
        self._overlays: Informer[Layer] = informer(resources.INSTANCE_TYPE_OVERLAYS, lambda raw, _: overlay_layer(raw))
        self._batches: Informer[LaunchBatch] = own_kinds(
            resources.LAUNCH_BATCHES, partial(or_problem, parse_launch_batch)
        )
        self._spendings: Informer[Spending] = informer(resources.SPENDINGS, _parse_account)
        self._plain: tuple[tuple[SnapshotKind, Informer[Any]], ...] = tuple(
            (kind, make(_RESOURCES[kind.group, kind.name], _parse_of(kind), optional=kind.optional))
            for kind in KINDS
            for make in [own_kinds if kind.group == ours else shared]
            if kind not in (PODS, PRIORITIES, POOLS, POD_TEMPLATES)
        )
        self._pod_templates: Informer[PodTemplate] = shared(
            resources.POD_TEMPLATES, self._parse_pod_template, optional=True
        )
        self._fields = _fields_of((*self._plain, (POD_TEMPLATES, self._pod_templates)))
        self._provisioned: Informer[ProvisionedNode] = next(i for kind, i in self._plain if kind.field == "provisioned")
        custom = (self._pools, self._overlays, self._batches, self._spendings)
        everything = (*(found for _, found in self._plain), self._pod_templates, *custom)
        self._informers: tuple[Informer[Any], ...] = tuple(i for i in everything if own or i.group != ours)

    def refresh(self) -> bool:
        """Take over what changed since the last time; whether anything did."""
        # A pod's priority is resolved on arrival, so other classes make all pods worth another look.
        repriced = self._priorities.refresh()
        changed = [self._pods.reread() if repriced else self._pods.refresh()]
        if repriced:
            self._pod_templates.reread()
        changed += [informer.refresh() for informer in self._informers]
        return repriced or any(changed)

    def ages(self) -> dict[str, float]:
        """Seconds since each kind was last heard of, for those that are read. May be called from any thread."""
        informers = (self._priorities, self._pods, *self._informers)
        return {informer.name: age for informer in informers if (age := informer.age) is not None}

    def reread_own(self) -> None:
        """Lists the objects that only a leader writes: a list shows all earlier writes, a watch only after some
        time."""
        written: tuple[Informer[Any], ...] = (self._pools, self._batches, self._spendings)
        for informer in (*written, *(found for kind, found in self._plain if kind.field in ("blocks", "provisioned"))):
            informer.reread()

    def snapshot(self) -> Snapshot:
        parts = {name: field.value() for name, field in self._fields.items()}
        nodes = self._limited(parts.pop("nodes"), parts.pop("volume_limits"))
        pools = self._pools.values
        return Snapshot(
            profile=self.profile,
            pods=self._pods.values,
            nodes=nodes,
            pools=tuple(seen.pool for seen in pools),
            backoffs=tuple(backoff for seen in pools for backoff in seen.backoffs),
            quarantines=tuple(quarantine for seen in pools for quarantine in seen.quarantines),
            spending=next(iter(self._spendings.values), None),
            waiting=FrozenMap(
                {
                    name: batch.waiting_since
                    for batch in self._batches.values
                    if batch.waiting_since
                    for name in batch.nodes
                }
            ),
            unreadable=FrozenMap({informer.kind: informer.lacks for informer in self._informers if informer.lacks}),
            **parts,
        )

    def _limited(self, nodes: tuple[Node, ...], limits: Mapping[str, FrozenMap[str, int]]) -> tuple[Node, ...]:
        """The nodes with their volume limits: of one that did not change the same object as before."""
        read_before, limits_before, limited = self._nodes
        if nodes is not read_before or limits is not limits_before:
            before, self._whole = self._whole, {}
            for node in nodes:
                read, whole = before.get(node.name, (None, node))
                if read is not node or whole.volume_limits != limits.get(node.name):
                    (whole,) = with_volume_limits([node], limits)
                self._whole[node.name] = node, whole
            limited = tuple(whole for _, whole in self._whole.values())
            self._nodes = nodes, limits, limited
        return limited

    def batches(self) -> tuple[LaunchBatch, ...]:
        return self._batches.values

    def overlays(self) -> tuple[Layer, ...]:
        """The InstanceTypeOverlays as layers of the catalog, also those that cannot be used; by name."""
        return self._overlays.values

    def seen_up_to(self) -> int:
        """The resourceVersion up to which ProvisionedNodes and LaunchBatches were seen."""
        return min(self._provisioned.version, self._batches.version)

    def problems(self) -> Iterator[tuple[str, str, Diagnostic]]:
        """The problems of objects: (kind, namespace/name, problem)."""
        for informer in (self._priorities, self._pods, *self._informers):
            for key, problems in informer.problems.items():
                for problem in problems:
                    yield informer.kind, key, problem

    def _parse_pod_template(self, raw: Object, problems: Problems) -> PodTemplate:
        priorities = {found.name: found for found in self._priorities.values}
        template: PodTemplate = POD_TEMPLATES.parse(raw, problems, priorities=priorities)
        return template

    def _parse_pod(self, raw: Object, problems: Problems) -> Pod:
        priorities = {found.name: found for found in self._priorities.values}
        parse = _doubted(partial(parse_pod, priorities=priorities))
        try:
            return self._interned.of(parse(raw, problems))
        except Exception as error:  # noqa: BLE001  # the boundary: a pod that is there must not seem gone from its node
            _LOG.error("unexpected_error", kind=PODS.name, name=key_of(raw), exc_info=error)
            step = "report it with the log line `unexpected_error`; nothing is decided for it"
            problems.error((), f"it cannot be read: {type(error).__name__}: {error}", step)
            return _unread(raw)


def _fields_of(kinds: Iterable[tuple[SnapshotKind, Informer[Any]]]) -> dict[str, _Field]:
    """The fields of Snapshot that these kinds fill, by name."""
    forms: dict[str, Form] = {}
    informers: dict[str, list[Informer[Any]]] = {}
    for kind, informer in kinds:
        forms[kind.field] = kind.form
        informers.setdefault(kind.field, []).append(informer)
    # A Deployment is another autoscaler, or a workload that a CapacityBuffer may refer to.
    informers["scalables"] += informers["autoscalers"]
    keeps = {"scalables": _is_scalable, "autoscalers": lambda found: not _is_scalable(found)}
    return {name: _Field(form, informers[name], keeps=keeps.get(name)) for name, form in forms.items()}


def _is_scalable(found: object) -> bool:
    return isinstance(found, Scalable)


def _unread(raw: Object) -> Pod:
    """A pod of which only its place is known: its node is not empty, and its requests are unknown."""
    metadata, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    return Pod(
        str(metadata.get("namespace") or "default"),
        str(metadata.get("name")),
        uid=str(metadata.get("uid") or ""),
        node_name=str(spec["nodeName"]) if spec.get("nodeName") else None,
        phase=str(status.get("phase") or "Pending"),
        deleting="deletionTimestamp" in metadata,
        unsupported=("this pod as it is written",),
    )


def _doubted(parse: Callable[[Object, Problems], D]) -> Callable[[Object, Problems], D]:
    """Objects of which a part cannot be read count, but nothing is decided on them: the verdict is unknown."""

    def parse_and_doubt(raw: Object, problems: Problems) -> D:
        found: D = parse(raw, problems)
        errors = (problem for problem in problems if problem.severity is Severity.ERROR)
        wrong: list[str] = [f"{error.field} as it is written" for error in errors]
        return replace(found, unsupported=(*found.unsupported, *dict.fromkeys(wrong))) if wrong else found

    return parse_and_doubt


def _parse_of(kind: SnapshotKind) -> Callable[[Object, Problems], Any]:
    return _doubted(kind.parse) if kind.doubtful else kind.parse


def _parse_account(raw: Object, problems: Problems) -> Spending | None:
    """The account of the cluster. Other Spending objects are ignored."""
    return parse_spending(raw, problems) if raw["metadata"]["name"] == CLUSTER else None


def _parse_pool(raw: Object, problems: Problems) -> _PoolSeen | None:
    pool: CapacityPool | None = POOLS.parse(raw, problems)
    if pool is None:
        return None
    status = parse_pool_status(raw, problems)
    return _PoolSeen(pool, backoffs_of(status, pool.name), quarantines_of(status, pool.name))
