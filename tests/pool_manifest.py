"""A CapacityPool as a manifest. Production code reads pools and never writes their spec."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from autoscaler.kube.custom.capacity_pool import CapacityPoolSpec, DriversSpec
from autoscaler.kube.custom.objects import custom_object
from autoscaler.kube.custom.schema import duration_text, taint_json
from autoscaler.kube.custom.selectors import selector_json
from autoscaler.model.capacity import CapacityPool, Scope


def write_capacity_pool(pool: CapacityPool) -> dict[str, Any]:
    """The manifest of a pool (spec only; its status is written apart). Raises ValueError for an implicit pool."""
    if pool.implicit:
        raise ValueError("an implicit pool exists only inside `foreslice plan` and has no manifest")
    kind, name = pool.node_template
    limits = {"accelerators": pool.limits.accelerators, "nodes": pool.limits.nodes}
    spec = CapacityPoolSpec.model_validate(
        {
            "mode": pool.mode.value,
            "requirements": [
                {"key": r.key, "operator": r.operator, "values": list(r.values)} for r in pool.requirements
            ],
            "capacityTypes": list(pool.capacity_types),
            "nodeTemplateRef": {"kind": kind, "name": name} if kind else None,
            "labels": dict(pool.labels),
            "taints": [taint_json(taint) for taint in pool.taints],
            "startupTaints": [taint_json(taint) for taint in pool.startup_taints],
            "kubeletReserved": {key: str(value) for key, value in pool.kubelet_reserved.items()},
            "drivers": DriversSpec.of(pool.drivers).manifest(),
            "limits": {**limits, "usdPerHour": _dollars(pool.limits.usd_per_hour)},
            "overflow": pool.overflow.value,
            "baseline": [
                {"replicas": b.replicas, "schedule": b.schedule, "timeZone": b.time_zone} for b in pool.baselines
            ],
            "disruption": {
                "consolidate": pool.disruption.consolidate.value,
                "after": duration_text(pool.disruption.after),
                "drift": pool.disruption.drift.value,
                "stopped": pool.disruption.stopped.value,
                "budgets": [{"nodes": b.nodes, "schedule": b.schedule} for b in pool.disruption.budgets],
            },
            "weight": pool.weight,
            "fractional": pool.fractional.value,
            "deletionPolicy": pool.deletion_policy.value,
            "scope": _scope(pool.scope),
            "launcher": pool.launcher.value,
            "bootTimeout": duration_text(pool.boot_timeout) if pool.boot_timeout else None,
        }
    )
    return custom_object("CapacityPool", pool.name, spec=spec, uid=pool.uid)


def _scope(scope: Scope) -> dict[str, Any]:
    return {
        "pods": scope.pods.value,
        "podSelector": selector_json(scope.pod_selector),
        "namespaceSelector": selector_json(scope.namespace_selector),
        "schedulerNames": list(scope.schedulers),
    }


def _dollars(value: Decimal | None) -> str | None:
    """Plain decimal text, never with an exponent."""
    return None if value is None else f"{value:f}"
