"""Devices that a claim only gets with a configuration, which another scheduler than Kubernetes' own adds to it."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.lint.advice import surprise
from autoscaler.model.capacity import KNOWN_SCHEDULERS
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.facts import prepare_rules


def assigned_by_others(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """Pods of kube-scheduler that the plan gives such a device, once for each driver: the driver refuses their claims
    unless somebody adds the configuration when they are allocated. Those of another scheduler may get it from there."""
    pods = {pod.key: pod for pod in snapshot.pods if pod.scheduler_name in KNOWN_SCHEDULERS}
    found: dict[tuple[str, str], dict[str, Pod]] = {}
    for placement in plan.placements:
        for key, allocation in placement.allocations.items() if placement.pod in pods else ():
            claim = snapshot.claims.get(key)
            configured = {config.driver for config in claim.config} if claim else set()
            for device in allocation.devices:
                if prepare_rules(device.driver).configured_device == device.device and device.driver not in configured:
                    found.setdefault((device.driver, device.device), {})[placement.pod] = pods[placement.pod]
    for (driver, name), asking in found.items():
        first, *_ = asking.values()
        yield surprise(
            f"Pod {first.key}",
            ("spec", "resourceClaims"),
            f"gets device {name} of driver {driver}, for which the driver needs an opaque "
            "configuration in the claim: kube-scheduler adds none, and without it the driver refuses the claim and the "
            "pod does not start",
            "let the scheduler that assigns it serve the pod (schedulerName, and spec.scope.schedulerNames of the "
            "CapacityPool), or drop group-by=machine from spec.drivers.profiles",
            first.origin,
            others=len(asking) - 1,
        )
