"""What the network cards of AWS's types, Elastic Fabric Adapters, can do."""

from __future__ import annotations

from instance_catalog.package_data import contents


def reads_remotely(instance_type: str) -> bool:
    """True if the type is one of those whose EFA has RDMA read (gpudirect.yaml)."""
    return instance_type.startswith(tuple(contents("drivers")["gpudirect"]["rdma_read"]["types"]))
