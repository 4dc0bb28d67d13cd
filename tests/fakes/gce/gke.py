"""Clusters and node pools as GKE's REST API describes them: only what says whether somebody else sizes a pool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.gce.answers import zone_url
from tests.fakes.gce.container_types import checked
from tests.fakes.gce.errors import ApiError
from tests.fakes.gce.state import PROJECT

_CLUSTER: Final = re.compile(r"/v1/projects/([^/]+)/locations/([^/]+)/clusters/([^/]+)(?:/nodePools/([^/]+))?")


# What a node pool for DRA has, by GKE's guide.
DRA_LABELS: Final = {
    "cloud.google.com/gke-nvidia-gpu-dra-driver": "true",
    "gke-no-default-nvidia-gpu-device-plugin": "true",
    "nvidia.com/gpu.present": "true",
}


# What keeps GKE's device plugin off TPUs.
TPU_LABELS: Final = {"cloud.google.com/gke-tpu-dra-driver": "true"}


@dataclass
class NodePool:
    """A node pool; `groups` are (zone, name) of its managed instance groups."""

    groups: tuple[tuple[str, str], ...]
    autoscaling: bool = False
    auto_repair: bool = False
    driver: str = "INSTALLATION_DISABLED"
    labels: dict[str, str] = field(default_factory=lambda: dict(DRA_LABELS))
    queued: bool = False
    # GKE gives it to pools with GPUs where the cluster has nodes without any.
    taints: tuple[tuple[str, str, str], ...] = (("nvidia.com/gpu", "present", "NO_SCHEDULE"),)
    max_pods: int = 110
    machine_type: str = "a3-highgpu-8g"
    tpu_topology: str = ""  # of a TPU slice, where it is not the machine's own
    policy: str = ""  # a resource policy that places its machines
    spot: bool = False
    reservation: str = ""
    project: str = PROJECT  # of its groups
    status: str = "RUNNING"
    phase: str = ""  # of its blue-green upgrade; the last of its groups is the green one

    @property
    def has_gpus(self) -> bool:
        """TPU machines have their chips without a word."""
        return not self.machine_type.startswith(("ct", "tpu"))

    def as_json(self, name: str) -> Mapping[str, Any]:
        """As nodePools.get answers."""
        install = {"gpuDriverVersion": self.driver} if self.driver else {}
        accelerator = {"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": "8"}
        gpus = [{**accelerator, "gpuDriverInstallationConfig": install}] if self.has_gpus else []
        return {
            "name": name,
            "status": self.status,
            "autoscaling": {"enabled": True} if self.autoscaling else {},
            "management": {"autoRepair": True} if self.auto_repair else {},
            "queuedProvisioning": {"enabled": True} if self.queued else {},
            "maxPodsConstraint": {"maxPodsPerNode": str(self.max_pods)},
            "placementPolicy": {
                key: value for key, value in (("tpuTopology", self.tpu_topology), ("policyName", self.policy)) if value
            },
            "config": {
                "machineType": self.machine_type,
                "taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in self.taints],
                "labels": self.labels,
                **({"spot": True} if self.spot else {}),
                **({"reservationAffinity": self._affinity()} if self.reservation else {}),
                "accelerators": gpus,
            },
            "instanceGroupUrls": self._urls(),
            **({"updateInfo": {"blueGreenInfo": self._upgrade()}} if self.phase else {}),
        }

    def _urls(self) -> list[str]:
        return [
            f"{zone_url(zone)}/instanceGroupManagers/{group}".replace(f"/{PROJECT}/", f"/{self.project}/")
            for zone, group in self.groups
        ]

    def _upgrade(self) -> Mapping[str, Any]:
        *blue, green = self._urls()
        return {"phase": self.phase, "blueInstanceGroupUrls": blue, "greenInstanceGroupUrls": [green]}

    def _affinity(self) -> Mapping[str, Any]:
        return {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [self.reservation],
        }


@dataclass
class Clusters:
    """One cluster with node pools. `autopilot`: Google sizes everything, as in the clusters `autopilots` beside it."""

    name: str = "c1"
    location: str = "us-central1"
    autopilot: bool = False
    autopilots: tuple[str, ...] = ()
    pools: dict[str, NodePool] = field(default_factory=dict)

    def answer(self, path: str, denied: bool) -> tuple[int, Mapping[str, Any]]:
        """(status, JSON)."""
        found = _CLUSTER.fullmatch(path)
        if denied:
            return 403, ApiError(403, "forbidden", "Required 'container.clusters.get' permission").body()
        names = (self.name, *self.autopilots)
        if found is None or found[1] != PROJECT or found[2] != self.location or found[3] not in names:
            return 404, ApiError(404, "notFound", f"Not found: {path.removeprefix('/v1/')}.").body()
        if not found[4]:
            mode = {"enabled": True} if self.autopilot or found[3] in self.autopilots else {}
            return 200, checked("Cluster", {"name": found[3], "autopilot": mode})
        if found[4] not in self.pools:
            return 404, ApiError(404, "notFound", f"Not found: {path.removeprefix('/v1/')}.").body()
        return 200, checked("NodePool", self.pools[found[4]].as_json(found[4]))
