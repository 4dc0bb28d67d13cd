"""The future properties of a launched machine: planning's prediction, from the provider call and the catalog alone.

For providers without real machines (simulated, kwok), whose nodes and slices are built from this.
"""

from __future__ import annotations

from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.hypothetical import Hypothetical, hypothetical
from autoscaler.planning.supply.node_basis import Bought, RecordedTerms
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.types.catalog import Catalog
from providers.contract import TAG_POOL, LaunchRequest, OfferingKey
from providers.errors import NotOfferedError


def machine_of(
    request: LaunchRequest, offering: OfferingKey, name: str, *, catalog: Catalog, profile: KubernetesProfile
) -> Hypothetical:
    """The node `name` with the labels and taints of the request. Raises NotOfferedError for an unknown type."""
    instance_type = catalog.types.get(offering.instance_type)
    if instance_type is None:
        raise NotOfferedError(f"the catalog has no type {offering.instance_type}", code="UnknownType")
    pool = RecordedTerms(
        request.tags.get(TAG_POOL, ""),
        labels=request.labels,
        taints=request.taints,
        kubelet_reserved=request.kubelet_reserved,
    )
    bought = Bought(
        pool=pool,
        instance_type=instance_type,
        drivers=(
            parse_driver_set(",".join(request.drivers), custom=catalog.drivers) if request.drivers else DriverSet(())
        ),
        offering=OfferingRef(offering.instance_type, offering.zone, offering.capacity_type),
    )
    found = hypothetical(bought, Snapshot(profile=profile), name=name)
    return replace(found, node=replace(found.node, labels=found.node.labels.with_items(request.labels)))
