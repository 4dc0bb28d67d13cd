"""The cluster as it was last seen: one mirror for each resource, put together into a Snapshot.

It reads; it never writes and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

import structlog

from autoscaler.cluster.api import KubernetesApi, Object, key_of
from autoscaler.cluster.informer import Informer
from autoscaler.cluster.interning import PodInterner
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    CSI_DRIVERS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    INSTANCE_TYPE_OVERLAYS,
    LAUNCH_BATCHES,
    NAMESPACES,
    NATIVE_POD_GROUPS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    PROVISIONED_NODES,
    QUOTAS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SPENDINGS,
    STORAGE_CAPACITIES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from autoscaler.errors import BadInputError
from autoscaler.kube.custom.capacity_block import parse_capacity_block
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool, parse_pool_status
from autoscaler.kube.custom.instance_type_overlay import overlay_layer
from autoscaler.kube.custom.launch_batch import parse_launch_batch
from autoscaler.kube.custom.pool_memory import backoffs_of, quarantines_of
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node
from autoscaler.kube.custom.spending import CLUSTER, parse_spending
from autoscaler.kube.device_class import parse_device_class, parse_device_taint_rule
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.node import parse_node
from autoscaler.kube.other_autoscalers import parse_autoscaler, parse_quota
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.priority import PriorityClass, parse_priority_class
from autoscaler.kube.problem import Problem, Problems, Severity
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.kube.storage import (
    parse_capacity_tracker,
    parse_persistent_volume,
    parse_persistent_volume_claim,
    parse_storage_capacity,
    parse_storage_class,
    parse_volume_attachment,
    parse_volume_limits,
)
from autoscaler.kube.workloads.daemon_set import parse_daemon_set
from autoscaler.kube.workloads.gang import parse_pod_group
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.node import with_volume_limits
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import LaunchBatch
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from autoscaler.model.spending import Spending
from instance_catalog.files.layers import Layer
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice.store")
T = TypeVar("T")
D = TypeVar("D", Pod, ResourceClaim, DeviceClass, ResourceSlice, DeviceTaintRule)


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


K = TypeVar("K", bound=_Keyed)


@dataclass(frozen=True, slots=True)
class _PoolSeen:
    pool: CapacityPool
    backoffs: tuple[Backoff, ...]
    quarantines: tuple[Quarantine, ...]


class Store:
    """What Foreslice knows of the cluster. `refresh` pumps the watches, `snapshot` is what they add up to."""

    def __init__(
        self,
        api: KubernetesApi,
        profile: KubernetesProfile,
        *,
        clock: Clock | None = None,
        stale: timedelta = timedelta.max,
    ) -> None:
        """`stale`: how old any of it may become by `clock`. Without a clock nothing ages, for who reads it once."""
        self.profile = profile
        timed = partial(Informer, clock=clock, stale=stale)
        # Without these, what they decide is unknown; without any other, nothing can be decided.
        optional = partial(timed, api, optional=True)
        self._priorities: Informer[PriorityClass] = timed(api, PRIORITY_CLASSES, parse_priority_class)
        self._interned = PodInterner()
        self._pods: Informer[Pod] = timed(api, PODS, self._parse_pod)
        self._nodes = timed(api, NODES, parse_node)
        self._claims = timed(api, RESOURCE_CLAIMS, _doubted(parse_resource_claim))
        self._classes = timed(api, DEVICE_CLASSES, _doubted(parse_device_class))
        self._slices = timed(api, RESOURCE_SLICES, _doubted(parse_resource_slice))
        self._taint_rules = timed(api, DEVICE_TAINT_RULES, _doubted(parse_device_taint_rule))
        self._gangs = optional(POD_GROUPS, parse_pod_group)
        self._native_gangs = optional(NATIVE_POD_GROUPS, parse_pod_group)
        self._daemon_sets = timed(api, DAEMON_SETS, parse_daemon_set)
        self._autoscalers = optional(DEPLOYMENTS, parse_autoscaler)
        self._quotas = optional(QUOTAS, parse_quota)
        self._namespaces = timed(api, NAMESPACES, _parse_namespace)
        self._volumes = optional(PERSISTENT_VOLUMES, parse_persistent_volume)
        self._volume_claims = optional(PERSISTENT_VOLUME_CLAIMS, parse_persistent_volume_claim)
        self._storage_classes = optional(STORAGE_CLASSES, parse_storage_class)
        self._volume_limits = optional(CSI_NODES, parse_volume_limits)
        self._attachments = optional(VOLUME_ATTACHMENTS, parse_volume_attachment)
        self._storage_capacities = optional(STORAGE_CAPACITIES, parse_storage_capacity)
        self._capacity_trackers = optional(CSI_DRIVERS, parse_capacity_tracker)
        self._pools = timed(api, CAPACITY_POOLS, _parse_pool)
        self._blocks = timed(api, CAPACITY_BLOCKS, parse_capacity_block)
        self._overlays: Informer[Layer] = timed(api, INSTANCE_TYPE_OVERLAYS, lambda raw, _: overlay_layer(raw))
        self._provisioned = timed(api, PROVISIONED_NODES, _own(parse_provisioned_node))
        self._batches = timed(api, LAUNCH_BATCHES, _own(parse_launch_batch))
        self._spendings = timed(api, SPENDINGS, _parse_account)

    def refresh(self) -> bool:
        """Take over what changed since the last time; whether anything did."""
        # A pod's priority is resolved on arrival, so other classes make all pods worth another look.
        repriced = self._priorities.refresh()
        changed = [self._pods.reread() if repriced else self._pods.refresh()]
        changed += [mirror.refresh() for mirror in self._mirrors()]
        return repriced or any(changed)

    def ages(self) -> dict[str, float]:
        """Seconds since each kind was last heard of, for those that are read. May be called from any thread."""
        mirrors = (self._priorities, self._pods, *self._mirrors())
        return {mirror.name: age for mirror in mirrors if (age := mirror.age) is not None}

    def reread_own(self) -> None:
        """List the objects that only a leader writes: a list shows what was written before it, a watch some time."""
        for mirror in (self._pools, self._blocks, self._provisioned, self._batches, self._spendings):
            mirror.reread()

    def snapshot(self) -> Snapshot:
        """The cluster as one frozen value."""
        return Snapshot(
            profile=self.profile,
            pods=self._pods.values,
            nodes=with_volume_limits(self._nodes.values, dict(self._volume_limits.values)),
            claims=_by_key(self._claims.values),
            classes=self._classes.values,
            slices=self._slices.values,
            taint_rules=self._taint_rules.values,
            gangs=_by_key((*self._gangs.values, *self._native_gangs.values)),
            daemon_sets=self._daemon_sets.values,
            autoscalers=self._autoscalers.values,
            quotas=self._quotas.values,
            namespaces=FrozenMap(self._namespaces.values),
            volumes=FrozenMap({volume.name: volume for volume in self._volumes.values}),
            volume_claims=_by_key(self._volume_claims.values),
            storage_classes=FrozenMap({found.name: found for found in self._storage_classes.values}),
            attachments=self._attachments.values,
            storage_capacities=self._storage_capacities.values,
            capacity_trackers=frozenset(self._capacity_trackers.values),
            pools=tuple(seen.pool for seen in self._pools.values),
            blocks=self._blocks.values,
            provisioned=self._provisioned.values,
            backoffs=tuple(backoff for seen in self._pools.values for backoff in seen.backoffs),
            quarantines=tuple(quarantine for seen in self._pools.values for quarantine in seen.quarantines),
            spending=next(iter(self._spendings.values), None),
            unreadable=FrozenMap({mirror.kind: mirror.lacks for mirror in self._mirrors() if mirror.lacks}),
        )

    def batches(self) -> tuple[LaunchBatch, ...]:
        """All LaunchBatches."""
        return self._batches.values

    def overlays(self) -> tuple[Layer, ...]:
        """The InstanceTypeOverlays as layers of the catalog, also those that cannot be used; by name."""
        return self._overlays.values

    def seen_up_to(self) -> int:
        """The resourceVersion up to which ProvisionedNodes and LaunchBatches were seen."""
        return min(self._provisioned.version, self._batches.version)

    def problems(self) -> Iterator[tuple[str, str, Problem]]:
        """What is wrong with objects: (kind, namespace/name, problem)."""
        for mirror in (self._priorities, self._pods, *self._mirrors()):
            for key, problems in mirror.problems.items():
                for problem in problems:
                    yield mirror.kind, key, problem

    def _parse_pod(self, raw: Object, problems: Problems) -> Pod:
        priorities = {found.name: found for found in self._priorities.values}
        parse = _doubted(partial(parse_pod, priorities=priorities))
        try:
            return self._interned.of(parse(raw, problems))
        except Exception as error:  # noqa: BLE001  # the boundary: a pod that is there must not seem gone from its node
            _LOG.error("unexpected_error", kind=PODS.kind, name=key_of(raw), exc_info=error)
            step = "report it with the log line `unexpected_error`; nothing is decided for it"
            problems.error((), f"it cannot be read: {type(error).__name__}: {error}", step)
            return _unread(raw)

    def _mirrors(self) -> tuple[Informer[object], ...]:
        return (
            self._nodes,
            self._claims,
            self._classes,
            self._slices,
            self._taint_rules,
            self._gangs,
            self._native_gangs,
            self._daemon_sets,
            self._autoscalers,
            self._quotas,
            self._namespaces,
            self._volumes,
            self._volume_claims,
            self._storage_classes,
            self._volume_limits,
            self._attachments,
            self._storage_capacities,
            self._capacity_trackers,
            self._pools,
            self._blocks,
            self._overlays,
            self._provisioned,
            self._batches,
            self._spendings,
        )


def _unread(raw: Object) -> Pod:
    """A pod of which only its place is known: it keeps its node from being empty, and what it needs is unknown."""
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


def _by_key(values: Iterable[K]) -> FrozenMap[str, K]:
    return FrozenMap({value.key: value for value in values})


def _doubted(parse: Callable[[Object, Problems], D]) -> Callable[[Object, Problems], D]:
    """Objects of which a part cannot be read count, but nothing is decided on them: the verdict is unknown."""

    def parse_and_doubt(raw: Object, problems: Problems) -> D:
        found: D = parse(raw, problems)
        errors = (problem for problem in problems if problem.severity is Severity.ERROR)
        wrong: list[str] = [f"{error.field} as it is written" for error in errors]
        return replace(found, unsupported=(*found.unsupported, *dict.fromkeys(wrong))) if wrong else found

    return parse_and_doubt


def _own(parse: Callable[[Object], T]) -> Callable[[Object, Problems], T | None]:
    """Objects that only Foreslice writes: one it did not write is left out like any other that cannot be used."""

    def parse_or_report(raw: Object, problems: Problems) -> T | None:
        try:
            return parse(raw)
        except BadInputError as error:
            problems.error((), error.message, error.next_step)
            return None

    return parse_or_report


def _parse_account(raw: Object, problems: Problems) -> Spending | None:
    """The account of the cluster. Another Spending is nobody's."""
    return parse_spending(raw, problems) if raw["metadata"]["name"] == CLUSTER else None


def _parse_namespace(raw: Object, problems: Problems) -> tuple[str, FrozenMap[str, str]]:
    metadata = parse_metadata(Fields(raw, problems))
    return metadata.name, metadata.labels


def _parse_pool(raw: Object, problems: Problems) -> _PoolSeen | None:
    pool = parse_capacity_pool(raw, problems)
    if pool is None:
        return None
    status = parse_pool_status(raw, problems)
    return _PoolSeen(pool, backoffs_of(status, pool.name), quarantines_of(status, pool.name))
