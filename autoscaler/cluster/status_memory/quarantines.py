"""Quarantines, kept where they survive a restart: in the status of the pool that met them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.kube.custom.pool_memory import quarantine_manifests
from autoscaler.model.snapshot import Quarantine


def save_quarantines(
    api: KubernetesApi, before: Iterable[Quarantine], after: Iterable[Quarantine]
) -> tuple[Trouble, ...]:
    """Write the pools whose quarantines changed; which could not be written. They are learned again then."""
    old, new = _by_pool(before), _by_pool(after)
    isolation = Isolation(api)
    changed = (pool for pool in sorted(old.keys() | new.keys()) if old.get(pool) != new.get(pool))
    attempts = (
        isolation.attempt(CAPACITY_POOLS.kind, pool, partial(_save, api, pool, new.get(pool, ()))) for pool in changed
    )
    return tuple(trouble for trouble in attempts if trouble is not None)


def _save(api: KubernetesApi, pool: str, quarantines: Iterable[Quarantine]) -> None:
    patch = {"status": {"quarantines": quarantine_manifests(quarantines)}}
    with suppress(NotFoundError):  # the pool is gone, and launches nothing any more
        api.patch(CAPACITY_POOLS, pool, patch, subresource="status")


def _by_pool(quarantines: Iterable[Quarantine]) -> dict[str, list[Quarantine]]:
    found: dict[str, list[Quarantine]] = {}
    for quarantine in quarantines:
        found.setdefault(quarantine.pool, []).append(quarantine)
    return found
