"""Node, ResourceSlice and the read parts of Pod as tables of field numbers: Kubernetes' own wire format.

Facts: k8s.io/api v0.36.3, core/v1/generated.proto and resource/v1/generated.proto, and k8s.io/apimachinery v0.36.3,
meta/v1/generated.proto. JSON names are those of manifests. Marshal() of a Go type writes the message alone, without the
envelope of the API server.
"""

from __future__ import annotations

from typing import Final

from autoscaler.externalgrpc.wire import (
    Message,
    flag,
    integer,
    many,
    mapping,
    one,
    quantity,
    text,
)

_METADATA: Final = Message(
    "ObjectMeta",
    {
        "name": text(1),
        "namespace": text(3),
        "uid": text(5),
        "labels": mapping(text(11)),
        "annotations": mapping(text(12)),
    },
)
_TAINT: Final = Message("Taint", {"key": text(1), "value": text(2), "effect": text(3)})
_CONDITION: Final = Message("NodeCondition", {"type": text(1), "status": text(2), "reason": text(5)})
_NODE_INFO: Final = Message("NodeSystemInfo", {"operatingSystem": text(9), "architecture": text(10)})

NODE: Final = Message(
    "Node",
    {
        "metadata": one(_METADATA, 1),
        "spec": one(
            Message("NodeSpec", {"providerID": text(3), "unschedulable": flag(4), "taints": many(one(_TAINT, 5))}), 2
        ),
        "status": one(
            Message(
                "NodeStatus",
                {
                    "capacity": mapping(quantity(1)),
                    "allocatable": mapping(quantity(2)),
                    "conditions": many(one(_CONDITION, 4)),
                    "nodeInfo": one(_NODE_INFO, 7),
                    "declaredFeatures": many(text(14)),
                },
            ),
            3,
        ),
    },
)

_REQUIREMENT: Final = Message("NodeSelectorRequirement", {"key": text(1), "operator": text(2), "values": many(text(3))})
_TERM: Final = Message(
    "NodeSelectorTerm",
    {"matchExpressions": many(one(_REQUIREMENT, 1)), "matchFields": many(one(_REQUIREMENT, 2))},
)
_SELECTOR: Final = Message("NodeSelector", {"nodeSelectorTerms": many(one(_TERM, 1))})
_ATTRIBUTE: Final = Message(
    "DeviceAttribute",
    {
        "int": integer(2),
        "bool": flag(3),
        "string": text(4),
        "version": text(5),
        "ints": many(integer(6)),
        "bools": many(flag(7)),
        "strings": many(text(8)),
        "versions": many(text(9)),
    },
)
_RANGE: Final = Message("CapacityRequestPolicyRange", {"min": quantity(1), "max": quantity(2), "step": quantity(3)})
_POLICY: Final = Message(
    "CapacityRequestPolicy",
    {"default": quantity(1), "validValues": many(quantity(3)), "validRange": one(_RANGE, 4)},
)
_CAPACITY: Final = Message("DeviceCapacity", {"value": quantity(1), "requestPolicy": one(_POLICY, 2)})
_COUNTER: Final = Message("Counter", {"value": quantity(1)})
_COUNTER_SET: Final = Message("CounterSet", {"name": text(1), "counters": mapping(one(_COUNTER, 2))})
_CONSUMPTION: Final = Message(
    "DeviceCounterConsumption", {"counterSet": text(1), "counters": mapping(one(_COUNTER, 2))}
)
_DEVICE: Final = Message(
    "Device",
    {
        "name": text(1),
        "attributes": mapping(one(_ATTRIBUTE, 2)),
        "capacity": mapping(one(_CAPACITY, 3)),
        "consumesCounters": many(one(_CONSUMPTION, 4)),
        "nodeName": text(5),
        "nodeSelector": one(_SELECTOR, 6),
        "allNodes": flag(7),
        "taints": many(one(_TAINT, 8)),
        "bindsToNode": flag(9),
        "bindingConditions": many(text(10)),
        "bindingFailureConditions": many(text(11)),
        "allowMultipleAllocations": flag(12),
    },
)
_POOL: Final = Message("ResourcePool", {"name": text(1), "generation": integer(2), "resourceSliceCount": integer(3)})

RESOURCE_SLICE: Final = Message(
    "ResourceSlice",
    {
        "metadata": one(_METADATA, 1),
        "spec": one(
            Message(
                "ResourceSliceSpec",
                {
                    "driver": text(1),
                    "pool": one(_POOL, 2),
                    "nodeName": text(3),
                    "nodeSelector": one(_SELECTOR, 4),
                    "allNodes": flag(5),
                    "devices": many(one(_DEVICE, 6)),
                    "perDeviceNodeSelection": flag(7),
                    "sharedCounters": many(one(_COUNTER_SET, 8)),
                },
            ),
            2,
        ),
    },
)

# Only a pod's name is read: its other fields are known from the cluster.
POD: Final = Message("Pod", {"metadata": one(_METADATA, 1)})
