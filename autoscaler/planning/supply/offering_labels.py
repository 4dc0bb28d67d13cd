"""Labels that follow from the offering, for the node and for the requirements of pools."""

from __future__ import annotations

from autoscaler.model.capacity import CapacityPool
from autoscaler.planning.supply.groups import group_keys, registered
from autoscaler.planning.supply.node_basis import NodeBasis
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.system_labels import SYSTEM_KEYS, assumed_labels, capacity_labels, type_labels
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType, InstanceType

# Kinds of node templates whose nodes register with labels that Foreslice does not write.
_OTHERS_REGISTER = frozenset({"AWSGroupNodeTemplate"})


def offering_keys(pool: CapacityPool) -> frozenset[str]:
    """The keys of labels that follow from the offering.

    The nodes of a launch have the same labels, whichever of its offerings is obtained. Offerings that differ in a label
    that pods read are not combined; the other labels are left out.
    """
    return SYSTEM_KEYS | group_keys(pool)


def offering_labels(basis: NodeBasis) -> dict[str, str]:
    """Labels that follow from the offering, for the node and for the requirements of pools."""
    instance_type, offering = basis.instance_type, basis.offering
    return {
        **type_facts(instance_type),
        **system_labels(basis),
        labels.ZONE: offering.zone,
        labels.REGION: offering.region or ANY_ZONE,
        labels.CAPACITY_TYPE: offering.capacity_type.value,
    }


def system_labels(basis: NodeBasis) -> dict[str, str]:
    """Labels of GKE and Karpenter that the node will have, and those of its group.

    A node group decides which labels its nodes register with.
    """
    groups = registered(basis.pool, basis.offering).labels
    if basis.pool.node_template.kind in _OTHERS_REGISTER:
        return {**groups}
    return {
        **groups,
        **(assumed_labels(basis.instance_type.cloud) if basis.pool.implicit else {}),
        **type_labels(basis.instance_type),
        **capacity_labels(basis.instance_type.cloud, basis.offering.capacity_type),
    }


def capacity_type_facts(capacity_type: CapacityType) -> dict[str, str]:
    """The values of a capacity type for requirements of a pool: Foreslice's key and Karpenter's.

    Karpenter has three values: "reserved" includes all capacity that is held for the account, also a capacity block.
    """
    prepaid = capacity_type == CapacityType.CAPACITY_BLOCK
    karpenter = CapacityType.RESERVED if prepaid else capacity_type
    return {labels.CAPACITY_TYPE: capacity_type.value, labels.KARPENTER_CAPACITY_TYPE: karpenter.value}


def type_facts(instance_type: InstanceType) -> dict[str, str]:
    """Labels that follow from the machine alone."""
    facts = {
        labels.INSTANCE_TYPE: instance_type.machine_type,
        labels.ARCHITECTURE: instance_type.architecture,
        labels.OPERATING_SYSTEM: "linux",
        labels.CLOUD: instance_type.cloud,
    }
    if instance_type.accelerator:
        facts[labels.ACCELERATOR] = instance_type.accelerator.key
    return facts
