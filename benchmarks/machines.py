"""The devices of real instance types, as objects that both the simulator and Kubernetes' code read."""

from __future__ import annotations

from autoscaler.kube.writing.slices import slice_manifest
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.prediction.predict import predict
from tests.oracle.upstream import Json

NODE = "node-a"
GPU = "gpu.nvidia.com"


def slices_of(instance_type: str, drivers: str) -> list[Json]:
    """The ResourceSlices of a node of that type, values of run time made up."""
    machine = load_catalog().get(instance_type)
    predicted = predict(machine, parse_driver_set(drivers), kubernetes=REFERENCE, node_name=NODE)
    return [slice_manifest(piece) for piece in make_concrete(predicted, node_name=NODE)]
