"""One valid object of each kind that the store reads, with as many of its fields in use as placement depends on."""

from __future__ import annotations

from typing import Any, Final

from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    INSTANCE_TYPE_OVERLAYS,
    LAUNCH_BATCHES,
    NAMESPACES,
    NATIVE_POD_GROUPS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    PROVISIONED_NODES,
    QUOTAS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SPENDINGS,
    Resource,
)
from tests.unit.simulation.valid_storage import METADATA, MOMENT, STORAGE, TERMS

GPU: Final = "gpu.nvidia.com"
CEL: Final = {"cel": {"expression": f"device.driver == '{GPU}'"}}
_PEER: Final = {
    "labelSelector": {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]},
    "topologyKey": "kubernetes.io/hostname",
    "namespaces": ["default"],
    "namespaceSelector": {"matchLabels": {"team": "x"}},
}
_CONTAINER: Final = {
    "name": "main",
    "image": "registry.example/x:1",
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
    "resources": {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
        "claims": [{"name": "gpu", "request": "gpu"}],
    },
}
_POD_SPEC: Final = {
    "containers": [_CONTAINER],
    "initContainers": [{"name": "init", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "resourceClaims": [
        {"name": "gpu", "resourceClaimName": "valid"},
        {"name": "nic", "resourceClaimTemplateName": "nic"},
    ],
    "nodeSelector": {"zone": "a"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TERMS},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": TERMS[0]}],
        },
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": _PEER}]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_PEER]},
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
            "minDomains": 1,
            "matchLabelKeys": ["app"],
        }
    ],
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 9}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "overhead": {"cpu": "10m"},
    "priority": 5,
    "priorityClassName": "high",
    "preemptionPolicy": "Never",
    "schedulingGates": [{"name": "gate"}],
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "activeDeadlineSeconds": 600,
    "hostNetwork": False,
}
_DEVICE: Final = {
    "name": "gpu-0",
    "attributes": {"type": {"string": "gpu"}, "minor": {"int": 1}, "ecc": {"bool": True}, "v": {"version": "1.2.3"}},
    "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}}},
    "consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "1Gi"}}}],
    "taints": [{"key": "ill", "value": "x", "effect": "NoSchedule", "timeAdded": MOMENT}],
    "allowMultipleAllocations": True,
    "bindingConditions": ["ready"],
    "bindingFailureConditions": ["failed"],
}
_RESULT: Final = {
    "request": "gpu",
    "driver": GPU,
    "pool": "n",
    "device": "gpu-0",
    "adminAccess": False,
    "consumedCapacity": {"memory": "1Gi"},
    "tolerations": [{"key": "ill", "operator": "Exists", "effect": "NoSchedule"}],
}
_REQUESTS: Final = [
    {
        "name": "gpu",
        "exactly": {
            "deviceClassName": GPU,
            "selectors": [CEL],
            "allocationMode": "ExactCount",
            "count": 1,
            "tolerations": [{"key": "ill", "operator": "Exists"}],
            "capacity": {"requests": {"memory": "1Gi"}},
        },
    },
    {"name": "any", "firstAvailable": [{"name": "one", "deviceClassName": GPU, "count": 1}]},
]
_CONDITION: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": MOMENT,
}
_CONTROLLER: Final = {
    "name": "controller",
    "image": "public.ecr.aws/karpenter/controller:1.8.0",
    "args": ["--feature-gates=DynamicResources=false"],
    "env": [{"name": "FEATURE_GATES", "value": "DynamicResources=false"}],
}
_OFFERING: Final = {"instanceType": "s1", "zone": "any", "capacityType": "on-demand", "usdPerHour": "1.00"}
_PREDICTION: Final = {"instanceType": "s1", "drivers": ["nvidia"], "catalogDigest": "c", "slicesDigest": "s"}

# Without their names, which are what tells objects apart.
VALID: Final[dict[Resource, dict[str, Any]]] = {
    PODS: {
        "metadata": {
            **METADATA,
            "annotations": {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "5m", "pod-group-name": "g"},
        },
        "spec": _POD_SPEC,
        "status": {
            "phase": "Pending",
            "nominatedNodeName": "n",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}],
            "resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "nic-1"}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": "x",
                "requestMappings": [{"containerName": "main", "resourceName": "e.x/gpu", "requestName": "r"}],
            },
        },
    },
    NODES: {
        "metadata": METADATA,
        "spec": {"providerID": "kwok://n", "taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": False},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "capacity": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": MOMENT}],
            "images": [{"names": ["registry.example/x:1"], "sizeBytes": 5}],
        },
    },
    NAMESPACES: {"metadata": METADATA, "status": {"phase": "Active"}},
    RESOURCE_CLAIMS: {
        "metadata": METADATA,
        "spec": {
            "devices": {
                "requests": _REQUESTS,
                "constraints": [{"requests": ["gpu"], "matchAttribute": f"{GPU}/uuid"}],
                "config": [{"requests": ["gpu"], "opaque": {"driver": GPU, "parameters": {"kind": "x"}}}],
            }
        },
        "status": {
            "allocation": {
                "devices": {"results": [_RESULT], "config": []},
                "nodeSelector": {"nodeSelectorTerms": TERMS},
                "allocationTimestamp": MOMENT,
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "devices": [{"driver": GPU, "pool": "n", "device": "gpu-0", "conditions": []}],
        },
    },
    DEVICE_CLASSES: {
        "metadata": METADATA,
        "spec": {
            "selectors": [CEL],
            "extendedResourceName": "example.com/gpu",
            "config": [{"opaque": {"driver": GPU}}],
        },
    },
    RESOURCE_SLICES: {
        "metadata": METADATA,
        "spec": {
            "driver": GPU,
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [_DEVICE],
            "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}],
        },
    },
    DEVICE_TAINT_RULES: {
        "metadata": METADATA,
        "spec": {
            "deviceSelector": {"driver": GPU, "pool": "elsewhere", "device": "gpu-0"},
            "taint": {"key": "ill", "value": "x", "effect": "NoSchedule", "timeAdded": MOMENT},
        },
    },
    POD_GROUPS: {
        "metadata": METADATA,
        "spec": {"minMember": 2, "topologyConstraint": {"requiredTopologyLevel": "zone"}},
    },
    NATIVE_POD_GROUPS: {
        "apiVersion": NATIVE_POD_GROUPS.api_version,
        "metadata": METADATA,
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "zone"}]},
            "resourceClaims": [{"name": "shared", "resourceClaimName": "shared"}],
        },
    },
    DAEMON_SETS: {
        "metadata": METADATA,
        "spec": {
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [_CONTAINER], "nodeSelector": {}}}
        },
    },
    DEPLOYMENTS: {
        "metadata": {**METADATA, "labels": {"app.kubernetes.io/name": "karpenter"}},
        "spec": {
            "replicas": 1,
            "template": {"spec": {"containers": [_CONTROLLER]}},
        },
    },
    QUOTAS: {
        "metadata": METADATA,
        "spec": {
            "hard": {"pods": "10"},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
                ]
            },
        },
    },
    **STORAGE,
    PRIORITY_CLASSES: {"metadata": METADATA, "value": 5, "globalDefault": False, "preemptionPolicy": "Never"},
    CAPACITY_POOLS: {
        "metadata": METADATA,
        "spec": {
            "mode": "Act",
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["none"]}],
            "capacityTypes": ["on-demand"],
            "nodeTemplateRef": {"kind": "SimulatedNodeTemplate", "name": "default"},
            "labels": {"a": "b"},
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "c", "effect": "NoSchedule"}],
            "kubeletReserved": {"cpu": "1"},
            "drivers": {"profiles": ["nvidia"]},
            "limits": {"nodes": 1, "accelerators": 1, "usdPerHour": "1"},
            "baseline": [{"replicas": 1, "schedule": "* 8 * * *", "timeZone": "Europe/Berlin"}],
            "disruption": {
                "consolidate": "Never",
                "after": "1h",
                "drift": "Never",
                "budgets": [{"nodes": "10%", "schedule": "0 3 * * *"}],
            },
            "scope": {"pods": "Selected", "schedulerNames": ["x"], "podSelector": {"matchLabels": {"a": "b"}}},
            "weight": 3,
            "deletionPolicy": "Retain",
        },
        "status": {
            "nodes": 1,
            "conditions": [_CONDITION],
            "backoffs": [{"instanceType": "s1", "until": MOMENT, "reason": "Shortage", "failures": 1}],
            "quarantines": [{"instanceType": "none", "drivers": ["nvidia"], "until": MOMENT, "times": 1}],
        },
    },
    CAPACITY_BLOCKS: {
        "metadata": METADATA,
        "spec": {
            "instanceType": "l8",
            "zone": "us-east-1a",
            "count": 1,
            "startsAt": MOMENT,
            "endsAt": "2026-01-02T00:00:00Z",
            "pool": "absent",
            "reservation": "cr-1",
            "hold": "WhileNeeded",
            "consumers": {"minAccelerators": 8, "podSelector": {"matchLabels": {"a": "b"}}},
            "drain": {"notice": "30m", "budget": "15m", "atDeadline": "Leave"},
            "unknownDuration": {"policy": "Allow", "minRemaining": "1h"},
        },
        "status": {"phase": "Active", "nodes": []},
    },
    INSTANCE_TYPE_OVERLAYS: {
        "metadata": METADATA,
        "spec": {
            "cloud": "aws",
            "instanceType": "p5.48xlarge",
            "entry": {"prices": {"on-demand": {"usdPerHour": "55.04"}}},
            "source": "contract",
            "expiresAt": "2027-01-01T00:00:00Z",
        },
    },
    PROVISIONED_NODES: {
        "metadata": METADATA,
        "spec": {
            "pool": "absent",
            "nodeName": "n",
            "batch": "b",
            "offerings": [_OFFERING],
            "prediction": _PREDICTION,
            "pods": ["default/p"],
        },
        "status": {
            "phase": "Ready",
            "phaseSince": MOMENT,
            "obtained": _OFFERING,
            "provider": "simulated",
            "providerID": "sim:///i-1",
            "history": [{"phase": "Ready", "at": MOMENT, "reason": "NodeReady"}],
        },
    },
    LAUNCH_BATCHES: {
        "metadata": METADATA,
        "spec": {
            "pool": "absent",
            "nodes": ["n"],
            "offerings": [_OFFERING],
            "prediction": _PREDICTION,
            "provider": "simulated",
            "pods": [["default/p"]],
            "minimum": 1,
        },
        "status": {
            "attempt": 0,
            "token": "t",
            "parameterHash": "h",
            "instances": ["i-1"],
            "obtained": [0],
            "outcome": "Launched",
        },
    },
    SPENDINGS: {
        "metadata": METADATA,
        "spec": {},
        "status": {"since": MOMENT, "usd": "1", "usdPerHour": "1", "recentLaunches": "1"},
    },
}
