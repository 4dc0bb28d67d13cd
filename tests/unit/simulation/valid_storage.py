"""One valid object of each kind of storage that the store reads."""

from __future__ import annotations

from typing import Any, Final

from autoscaler.cluster.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CAPACITIES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)

MOMENT: Final = "2026-01-01T00:00:00Z"
TERMS: Final = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
METADATA: Final = {
    "labels": {"app": "x"},
    "annotations": {"karpenter.sh/do-not-disrupt": "true"},
    "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}],
    "creationTimestamp": MOMENT,
    "finalizers": ["x/y"],
}
STORAGE: Final[dict[Resource, dict[str, Any]]] = {
    PERSISTENT_VOLUMES: {
        "metadata": METADATA,
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": TERMS}},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "v"},
        },
        "status": {"phase": "Bound"},
    },
    PERSISTENT_VOLUME_CLAIMS: {
        "metadata": METADATA,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            "volumeName": "v",
            "selector": {"matchLabels": {"a": "b"}},
        },
        "status": {"phase": "Bound"},
    },
    STORAGE_CLASSES: {
        "metadata": {**METADATA, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    CSI_NODES: {
        "metadata": METADATA,
        "spec": {"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i", "allocatable": {"count": 25}}]},
    },
    CSI_DRIVERS: {"metadata": METADATA, "spec": {"storageCapacity": True}},
    STORAGE_CAPACITIES: {
        "metadata": METADATA,
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {"a": "b"}},
        "capacity": "1Ti",
        "maximumVolumeSize": "100Gi",
    },
    VOLUME_ATTACHMENTS: {
        "metadata": METADATA,
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    },
}
