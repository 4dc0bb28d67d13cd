"""Every predicted ResourceSlice is accepted by a real API server, which keeps every field and changes none."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.kube.writing.slices import slice_manifest
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.instance_type import InstanceType
from tests.e2e.harness.control_plane import ApiError, ControlPlane, Json

SLICES = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses?dryRun=All"
PUBLISHED = Path(__file__).parents[2] / "data" / "published" / "catalog"
FAMILIES = sorted({name.split(".")[0].rsplit("-", 1)[0] for name in load_catalog().types})


# One type for every driver and option that no plan offers by itself: (type, drivers).
CHOSEN = [
    ("p5.48xlarge", "nvidia@v0.5.0:ConsumableShares=true:consumable-shares=4"),
    ("p5.48xlarge", "nvidia@v0.5.0:ConsumableShares=true:consumable-shares=memory:dynamic-mig"),
    ("p4d.24xlarge", "nvidia:PassthroughSupport=true"),
    ("p4d.24xlarge", "nvidia@v25.12.0:dynamic-mig:mig-mode-on"),
    ("p5.48xlarge", "nvidia@v0.5.0:FabricManagerPartitioning=true:PassthroughSupport=true"),
    ("g4-standard-384", "nvidia:dynamic-mig"),
    ("mi300x-1", "amd"),
    ("mi300x-1", "amd:partition=cpx_nps4"),
    ("mi300x-1", "amd:AutoPartition=true"),
    ("flex-1", "intel-gpu"),
    ("dl1.24xlarge", "gaudi"),
    ("two-numa-nodes", "dra-cpu"),
    ("two-numa-nodes", "dra-cpu:mode=individual"),
    ("p5.48xlarge", "dra-cpu:group-by=machine"),
    ("two-numa-nodes", "example"),
    ("two-numa-nodes", "example:shared"),
    ("two-numa-nodes", "example:partitions=4:shared:binding-conditions"),
    ("p5.48xlarge", "pipes"),
]
PIPES = """
drivers:
  - name: pipes
    driver: fabric.acme.com
    devices:
      - name: pipe-{index}
        attributes: {model: {string: "{model}"}, numaNode: {int: "{numaNode}"}, serial: {string: null}}
        capacity: {memory: "{memory}"}
"""


def manifests(machine: InstanceType, *driver_sets: DriverSet) -> list[Json]:
    """The slices of the driver sets, of all that a plan may offer on the type if none is given."""
    return [
        slice_manifest(piece)
        for driver_set in driver_sets or implicit_driver_sets(machine, REFERENCE)
        for piece in make_concrete(
            predict(machine, driver_set, kubernetes=REFERENCE, node_name="node-1"), node_name="node-1"
        )
    ]


@pytest.mark.parametrize(("name", "drivers"), CHOSEN, ids=lambda text: str(text))
def test_slices_of_a_chosen_driver(name: str, drivers: str, control_plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "pipes.yaml").write_text(PIPES, encoding="utf-8")
    catalog = load_catalog(extra_dirs=[PUBLISHED, tmp_path])
    made = manifests(catalog.get(name), parse_driver_set(drivers, custom=catalog.drivers))
    assert made
    for manifest in made:
        assert control_plane.call("POST", SLICES, manifest)["spec"] == manifest["spec"]


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
    from instance_catalog.drivers.terms import DeviceClassFacts

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
