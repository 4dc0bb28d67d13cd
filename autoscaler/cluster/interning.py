"""Reduces the size of pods: equal parts of pods are stored once, and annotations that no code reads are dropped.

100,000 pods come from a few hundred templates. Their containers, tolerations, selectors and constraints are equal, and
so are the keys and most values of their labels.
"""

from __future__ import annotations

from collections.abc import Hashable
from sys import intern
from typing import Final, TypeVar

from autoscaler.model.pod import Pod
from autoscaler.model.requests import NOTHING
from autoscaler.planning.demand.handed_out import absent_word, names_device
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.labels import POD_ANNOTATIONS

T = TypeVar("T", bound=Hashable)

# More parts than this belong to pods that are gone; parts in use are shared again as pods arrive.
_MOST: Final = 10_000
# Pods without amounts of claims share this one, so that it is recognised at a glance.
_FIRST: Final = {(type(NOTHING), NOTHING): NOTHING}


class PodInterner:
    """Parts of pods that were seen before."""

    def __init__(self) -> None:
        self._parts = dict[Hashable, Hashable](_FIRST)

    def of(self, pod: Pod) -> Pod:
        """The same pod, sharing its parts with others."""
        if len(self._parts) > _MOST:
            self._parts = dict(_FIRST)
        return replace(
            pod,
            namespace=intern(pod.namespace),
            labels=_interned(pod.labels),
            annotations=self._part(_interned(_read(pod.annotations))),
            containers=self._part(pod.containers),
            init_containers=self._part(pod.init_containers),
            overhead=self._part(pod.overhead),
            pod_requests=None if pod.pod_requests is None else self._part(pod.pod_requests),
            pod_limits=self._part(pod.pod_limits),
            claim_amounts=self._part(pod.claim_amounts),
            node_name=None if pod.node_name is None else intern(pod.node_name),
            node_selector=self._part(pod.node_selector),
            affinity=self._part(pod.affinity),
            preferred_affinity=self._part(pod.preferred_affinity),
            pod_affinity=self._part(pod.pod_affinity),
            pod_anti_affinity=self._part(pod.pod_anti_affinity),
            preferred_pod_affinity=self._part(pod.preferred_pod_affinity),
            preferred_pod_anti_affinity=self._part(pod.preferred_pod_anti_affinity),
            topology_spread=self._part(pod.topology_spread),
            tolerations=self._part(pod.tolerations),
            image_volumes=self._part(pod.image_volumes),
            node_features=self._part(pod.node_features),
            scheduler_name=intern(pod.scheduler_name),
            gang=self._part(pod.gang),
            phase=intern(pod.phase),
            owner=intern(pod.owner),
        )

    def _part(self, value: T) -> T:
        if not value:  # most parts of most pods are empty
            return NOTHING if type(value) is FrozenMap else value  # type: ignore[return-value]
        # Equal values are of equal type here: each field has its own.
        return self._parts.setdefault((type(value), value), value)  # type: ignore[return-value]


def _interned(texts: FrozenMap[str, str]) -> FrozenMap[str, str]:
    return FrozenMap({intern(key): intern(value) for key, value in texts.items()}) if texts else EMPTY


def _read(annotations: FrozenMap[str, str]) -> FrozenMap[str, str]:
    """Of annotations that ask another system for a device, a word of the value is kept: one with the use of a GPU
    changes each minute, and one of 256 kB stays in memory."""
    read = {key: value for key, value in annotations.items() if key in POD_ANNOTATIONS}
    asked = {key: absent_word(value) for key, value in annotations.items() if key not in read and names_device(key)}
    return FrozenMap(read | asked)
