"""Every predicted ResourceSlice is accepted by a real API server, which keeps every field and changes none."""

from __future__ import annotations

import pytest

from autoscaler.kube.write_slices import slice_manifest
from instance_catalog.driver_data import builtin_device_classes
from instance_catalog.instance_type import InstanceType
from instance_catalog.kubernetes_profile import REFERENCE
from instance_catalog.loader import load_catalog
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets
from tests.e2e.control_plane import ApiError, ControlPlane, Json

SLICES = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses?dryRun=All"
FAMILIES = sorted({name.split(".")[0].rsplit("-", 1)[0] for name in load_catalog().types})


def manifests(machine: InstanceType) -> list[Json]:
    """The slices of every driver set that a plan may offer on the type."""
    return [
        slice_manifest(piece)
        for driver_set in implicit_driver_sets(machine, REFERENCE)
        for piece in make_concrete(
            predict(machine, driver_set, kubernetes=REFERENCE, node_name="node-1"), node_name="node-1"
        )
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_slices_of_a_family(family: str, control_plane: ControlPlane) -> None:
    machines = [m for name, m in load_catalog().types.items() if name.split(".")[0].rsplit("-", 1)[0] == family]
    refused: dict[str, str] = {}
    changed: dict[str, Json] = {}
    for machine in machines:
        for manifest in manifests(machine):
            name = f"{machine.name} {manifest['metadata']['name']}"
            try:
                answer = control_plane.call("POST", SLICES, manifest)
            except ApiError as error:
                refused[name] = error.message
                continue
            if answer["spec"] != manifest["spec"]:
                changed[name] = answer["spec"]
    assert refused == {}
    assert changed == {}


@pytest.mark.parametrize("facts", builtin_device_classes(REFERENCE), ids=lambda facts: str(facts.name))
def test_built_in_device_classes(facts: object, control_plane: ControlPlane) -> None:
    from instance_catalog.driver_data import DeviceClassFacts

    assert isinstance(facts, DeviceClassFacts)
    spec: Json = {"selectors": [{"cel": {"expression": text}} for text in facts.selectors]}
    if facts.extended_resource_name:
        spec["extendedResourceName"] = facts.extended_resource_name
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": facts.name},
        "spec": spec,
    }
    answer = control_plane.call("POST", CLASSES, manifest)
    assert answer["spec"] == spec
