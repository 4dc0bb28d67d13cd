"""The messages of Cluster Autoscaler's two gRPC services, as tables of field numbers.

Facts: kubernetes/autoscaler 55c37cd5 (2026-08-22), cloudprovider/externalgrpc/protos/externalgrpc.proto, and
kubernetes-sigs/cluster-autoscaler (2026-08-21), pkg/expander/grpcplugin/protos/expander.proto. `resourceSliceBytes` is
number 3 in pull request kubernetes/autoscaler#10303, which was not merged on 2026-09-17.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from autoscaler.externalgrpc.wire import Message, double, integer, many, mapping, one, raw, text

PROVIDER: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
EXPANDER: Final = "grpcplugin.Expander"

NOTHING: Final = Message("(nothing)", {})
TIMESTAMP: Final = Message("Timestamp", {"seconds": integer(1), "nanos": integer(2)})
_GROUP: Final = Message("NodeGroup", {"id": text(1), "minSize": integer(2), "maxSize": integer(3), "debug": text(4)})
_NODE: Final = Message(
    "ExternalGrpcNode",
    {"providerID": text(1), "name": text(2), "labels": mapping(text(3)), "annotations": mapping(text(4))},
)
_ERROR: Final = Message(
    "InstanceErrorInfo", {"errorCode": text(1), "errorMessage": text(2), "instanceErrorClass": integer(3)}
)
_STATUS: Final = Message("InstanceStatus", {"instanceState": integer(1), "errorInfo": one(_ERROR, 2)})
_INSTANCE: Final = Message("Instance", {"id": text(1), "status": one(_STATUS, 2)})
_OF_GROUP: Final = Message("(group)", {"id": text(1)})
_CHANGE: Final = Message("(size change)", {"delta": integer(1), "id": text(2)})
_OPTION: Final = Message(
    "Option",
    {"nodeGroupId": text(1), "nodeCount": integer(2), "debug": text(3), "podBytes": many(raw(5))},
)

# The request and the answer of each method. Options are passed on unchanged: a field that is missing in the answer
# would count as zero, and a later release may have more of them.
METHODS: Final[dict[str, tuple[Message, Message]]] = {
    "NodeGroups": (NOTHING, Message("NodeGroupsResponse", {"nodeGroups": many(one(_GROUP, 1))})),
    "NodeGroupForNode": (
        Message("NodeGroupForNodeRequest", {"node": one(_NODE, 1)}),
        Message("NodeGroupForNodeResponse", {"nodeGroup": one(_GROUP, 1)}),
    ),
    "PricingNodePrice": (
        Message(
            "PricingNodePriceRequest",
            {"node": one(_NODE, 1), "startTimestamp": one(TIMESTAMP, 4), "endTimestamp": one(TIMESTAMP, 5)},
        ),
        Message("PricingNodePriceResponse", {"price": double(1)}),
    ),
    "PricingPodPrice": (
        Message(
            "PricingPodPriceRequest",
            {"pod_bytes": raw(4), "startTimestamp": one(TIMESTAMP, 5), "endTimestamp": one(TIMESTAMP, 6)},
        ),
        Message("PricingPodPriceResponse", {"price": double(1)}),
    ),
    "GPULabel": (NOTHING, Message("GPULabelResponse", {"label": text(1)})),
    "GetAvailableGPUTypes": (NOTHING, Message("GetAvailableGPUTypesResponse", {"gpuTypes": mapping(raw(1))})),
    "Cleanup": (NOTHING, NOTHING),
    "Refresh": (NOTHING, NOTHING),
    "NodeGroupTargetSize": (_OF_GROUP, Message("NodeGroupTargetSizeResponse", {"targetSize": integer(1)})),
    "NodeGroupIncreaseSize": (_CHANGE, NOTHING),
    "NodeGroupDeleteNodes": (
        Message("NodeGroupDeleteNodesRequest", {"nodes": many(one(_NODE, 1)), "id": text(2)}),
        NOTHING,
    ),
    "NodeGroupDecreaseTargetSize": (_CHANGE, NOTHING),
    "NodeGroupNodes": (_OF_GROUP, Message("NodeGroupNodesResponse", {"instances": many(one(_INSTANCE, 1))})),
    "NodeGroupTemplateNodeInfo": (
        _OF_GROUP,
        Message("NodeGroupTemplateNodeInfoResponse", {"nodeBytes": raw(2), "resourceSliceBytes": many(raw(3))}),
    ),
    "NodeGroupGetOptions": (
        Message("NodeGroupAutoscalingOptionsRequest", {"id": text(1), "defaults": raw(2)}),
        Message("NodeGroupAutoscalingOptionsResponse", {"nodeGroupAutoscalingOptions": raw(1)}),
    ),
}

BEST_OPTIONS: Final[tuple[Message, Message]] = (
    Message("BestOptionsRequest", {"options": many(one(_OPTION, 1)), "nodeBytesMap": mapping(raw(3))}),
    Message("BestOptionsResponse", {"options": many(one(_OPTION, 1))}),
)


class InstanceState(IntEnum):
    """InstanceStatus.InstanceState."""

    RUNNING = 1
    CREATING = 2
    DELETING = 3


class ErrorClass(IntEnum):
    """cloudprovider.InstanceErrorClass: whether another group may have what this one has not."""

    OUT_OF_RESOURCES = 1
    OTHER = 99
