"""Checks whether a driver will publish the devices of a future node: otherwise the node is bought and the pods wait.

A driver is a DaemonSet. It must exist, its node selector and affinity must match the labels of the node, its
tolerations its taints, and on GKE its namespace needs a quota for critical pods. A device plugin beside the driver
would offer the same devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.checks.nodes import NodeToBe, as_labelled, daemon_sets_of
from autoscaler.kube.priority import SYSTEM_CLASSES
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.planning.demand.demand import unreadable
from autoscaler.scheduling.daemons import runs_on, why_not_on
from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.drivers.recognition import driver_recognition
from instance_catalog.types.clouds import cloud_facts

_CRITICAL = {found.value: found.name for found in SYSTEM_CLASSES}
_SYSTEM_NAMESPACE = "kube-system"  # its critical pods need no quota


def missing_drivers(pool: CapacityPool, to_be: NodeToBe, snapshot: Snapshot) -> Iterator[Reason]:
    """The reasons why drivers would not publish; nothing if all of them will.

    A driver that a catalog file describes is not recognised in DaemonSets: it is assumed to run.
    """
    recognised = {rule.profile for rule in driver_recognition()}
    for profile in to_be.drivers.profiles:
        if profile.name not in recognised:
            continue
        candidates = daemon_sets_of(profile.name, snapshot)
        if not candidates:
            yield Reason.of(Code.NO_DRIVER, Subject("driver", profile.driver), profile=profile.name)
            continue
        running = [found for found in candidates if runs_on(found, as_labelled(to_be.node, found))]
        if not running:
            yield from _not_there(candidates[0], profile, to_be)
        for found in running:
            yield from _startup_taints(pool, found, profile)
            yield from _quota(found, profile, snapshot)


def _not_there(daemon_set: DaemonSet, profile: DriverProfile, to_be: NodeToBe) -> Iterator[Reason]:
    subject = Subject("DaemonSet", daemon_set.key)
    for why in why_not_on(daemon_set, as_labelled(to_be.node, daemon_set)):
        if why.code is Code.TAINT_NOT_TOLERATED:
            taint = f"{why.detail['key']}={why.detail['value']}:{why.detail['effect']}"
            yield Reason.of(Code.DRIVER_REFUSES_TAINT, subject, driver=profile.driver, taint=taint)
        elif why.code is Code.NODE_SELECTOR_MISMATCH:
            label = f"{why.detail['key']}={why.detail['wanted']}"
            yield Reason.of(Code.DRIVER_NEEDS_LABEL, subject, driver=profile.driver, labels=(label,))
        else:
            keys = why.detail.get("keys", ())
            yield Reason.of(Code.DRIVER_NEEDS_LABEL, subject, driver=profile.driver, labels=keys)


def _startup_taints(pool: CapacityPool, daemon_set: DaemonSet, profile: DriverProfile) -> Iterator[Reason]:
    """Reasons for startup taints that the driver does not tolerate: it could not start, and the node would never be
    ready."""
    for taint in pool.startup_taints:
        if taint.effect != "PreferNoSchedule" and not any(t.tolerates(taint) for t in daemon_set.pod.tolerations):
            text = f"{taint.key}={taint.value}:{taint.effect}"
            yield Reason.of(
                Code.DRIVER_REFUSES_STARTUP_TAINT,
                Subject("DaemonSet", daemon_set.key),
                driver=profile.driver,
                taint=text,
            )


def _quota(daemon_set: DaemonSet, profile: DriverProfile, snapshot: Snapshot) -> Iterator[Reason]:
    """Some clouds admit critical pods outside kube-system only if a ResourceQuota selects their priority class."""
    wanted = _CRITICAL.get(daemon_set.pod.priority)
    if wanted is None or daemon_set.namespace == _SYSTEM_NAMESPACE:
        return
    strict = {facts.group_per_type for facts in cloud_facts().values() if facts.critical_pods_need_quota}
    if all(strict.isdisjoint(node.labels) for node in snapshot.nodes):
        return
    if "ResourceQuota" in snapshot.unreadable:
        yield from unreadable(snapshot, Subject("quota of namespace", daemon_set.namespace), "ResourceQuota")
        return
    quotas = [quota for quota in snapshot.quotas if quota.namespace == daemon_set.namespace]
    if not any(wanted in quota.priority_classes and quota.pods != 0 for quota in quotas):
        yield Reason.of(
            Code.NO_QUOTA,
            Subject("namespace", daemon_set.namespace),
            driver=profile.driver,
            daemon_set=daemon_set.key,
            priority_class=wanted,
        )


def conflicting_plugins(to_be: NodeToBe, snapshot: Snapshot) -> Iterator[Reason]:
    """One reason for each device plugin that would run there."""
    drivers = {profile.driver for profile in to_be.drivers.profiles}
    for found in snapshot.daemon_sets:
        if found.device_plugin in drivers and runs_on(found, as_labelled(to_be.node, found)):
            yield Reason.of(Code.DEVICE_PLUGIN_RUNS, Subject("DaemonSet", found.key), driver=found.device_plugin)
