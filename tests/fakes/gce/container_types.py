"""Which fields GKE's messages have, as far as the fake answers them: an answer that says anything else fails.

The client of the container API is no dependency, since the adapter reads two methods by plain HTTP. So its proto types
are written down here instead: those of google-cloud-container 2.67.0 (container_v1), read 2026-11-26. A name is a
message of this table, a set the names of an enum; 64-bit numbers are strings in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Many:
    """A repeated field."""

    of: Any


INTEGER: Final = "64 bits"
_ENABLED: Final = {"enabled": bool}
_MESSAGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Cluster": {"name": str, "location": str, "autopilot": "Enabled", "nodePools": Many("NodePool")},
    "Enabled": _ENABLED,  # Autopilot, NodePoolAutoscaling and QueuedProvisioning have more that nobody reads
    "NodePool": {
        "name": str,
        "config": "NodeConfig",
        "instanceGroupUrls": Many(str),
        "status": {"PROVISIONING", "RUNNING", "RUNNING_WITH_ERROR", "RECONCILING", "STOPPING", "ERROR"},
        "autoscaling": "Enabled",
        "management": "NodeManagement",
        "maxPodsConstraint": "MaxPodsConstraint",
        "placementPolicy": "PlacementPolicy",
        "queuedProvisioning": "Enabled",
        "updateInfo": "UpdateInfo",
    },
    "UpdateInfo": {"blueGreenInfo": "BlueGreenInfo"},
    "BlueGreenInfo": {
        "phase": {
            "UPDATE_STARTED",
            "CREATING_GREEN_POOL",
            "CORDONING_BLUE_POOL",
            "DRAINING_BLUE_POOL",
            "NODE_POOL_SOAKING",
            "DELETING_BLUE_POOL",
            "ROLLBACK_STARTED",
        },
        "blueInstanceGroupUrls": Many(str),
        "greenInstanceGroupUrls": Many(str),
    },
    "NodeManagement": {"autoUpgrade": bool, "autoRepair": bool},
    "MaxPodsConstraint": {"maxPodsPerNode": INTEGER},
    "PlacementPolicy": {"type": {"COMPACT"}, "tpuTopology": str, "policyName": str},
    "NodeConfig": {
        "machineType": str,
        "labels": dict,
        "accelerators": Many("AcceleratorConfig"),
        "taints": Many("NodeTaint"),
        "reservationAffinity": "ReservationAffinity",
        "spot": bool,
    },
    "AcceleratorConfig": {
        "acceleratorCount": INTEGER,
        "acceleratorType": str,
        "gpuDriverInstallationConfig": "GPUDriverInstallationConfig",
    },
    "GPUDriverInstallationConfig": {"gpuDriverVersion": {"INSTALLATION_DISABLED", "DEFAULT", "LATEST"}},
    "NodeTaint": {"key": str, "value": str, "effect": {"NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE"}},
    "ReservationAffinity": {
        "consumeReservationType": {
            "NO_RESERVATION",
            "ANY_RESERVATION",
            "SPECIFIC_RESERVATION",
            "ANY_RESERVATION_THEN_FAIL",
        },
        "key": str,
        "values": Many(str),
    },
}


def checked(message: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer, if GKE could give it. Raises AssertionError with the field that it could not."""
    for name, value in answer.items():
        if name not in _MESSAGES[message]:
            raise AssertionError(f"{message} has no field {name}")
        _check(f"{message}.{name}", _MESSAGES[message][name], value)
    return answer


def _check(where: str, kind: Any, value: Any) -> None:
    if isinstance(kind, Many):
        if not isinstance(value, list):
            raise AssertionError(f"{where} is a list, and not {value!r}")
        for one in value:
            _check(where, kind.of, one)
    elif isinstance(kind, set):
        if value not in kind:
            raise AssertionError(f"{where} has no value {value!r}")
    elif kind == INTEGER:
        if not isinstance(value, str) or not value.lstrip("-").isdecimal():
            raise AssertionError(f"{where} is a 64-bit number, a string in JSON, and not {value!r}")
    elif isinstance(kind, str):
        checked(kind, value)
    elif kind is dict:
        if not all(isinstance(one, str) for pair in value.items() for one in pair):
            raise AssertionError(f"{where} maps strings to strings, and not {value!r}")
    elif not isinstance(value, kind):
        raise AssertionError(f"{where} is a {kind.__name__}, and not {value!r}")
