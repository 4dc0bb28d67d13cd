"""What of a future node reaches pods."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_allocatable import node_allocatable
from instance_catalog.types.node_reservation import DiskReservation, LocalDisks, NodeReservation, PodRange, Tier

Q = Quantity.parse
BOX = InstanceType("my-dc", "box", "amd64", vcpu=8, memory=Q("32Gi"))


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return load_catalog()


def _of(reservation: NodeReservation, resource: str) -> Quantity:
    return node_allocatable(replace(BOX, reservation=reservation))[resource]


def test_without_a_model_the_nominal_size_is_allocatable() -> None:
    assert node_allocatable(BOX) == {
        "cpu": Q("8"),
        "memory": Q("32Gi"),
        "ephemeral-storage": Q("0"),
        "pods": Q("110"),
    }


@pytest.mark.parametrize(
    ("reservation", "resource", "expected"),
    [
        (NodeReservation(memory_overhead=Fraction(1, 8)), "memory", "28Gi"),
        (NodeReservation(kernel_base=Q("1Gi"), kernel_tiers=(Tier(Fraction(1, 8), Q("16Gi")),)), "memory", "29Gi"),
        (NodeReservation(memory_base=Q("1Gi"), eviction_memory=Q("1Gi")), "memory", "30Gi"),
        (NodeReservation(memory_per_pod=Q("1Gi"), pods=(PodRange(2, 10),)), "memory", "22Gi"),
        (NodeReservation(memory_tiers=(Tier(Fraction(1, 2), Q("4Gi")), Tier(Fraction(1, 4)))), "memory", "23Gi"),
        (NodeReservation(memory_base=Q("64Gi")), "memory", "0"),
        (NodeReservation(cpu_tiers=(Tier(Fraction(1, 10), Q("1")), Tier(Fraction(1, 100)))), "cpu", "7830m"),
        (NodeReservation(root_disk=Q("100Gi"), eviction_disk=Fraction(1, 10)), "ephemeral-storage", "90Gi"),
        (
            NodeReservation(root_disk=Q("100Gi"), disk=DiskReservation(Q("10Gi"), Fraction(1, 5))),
            "ephemeral-storage",
            "70Gi",
        ),
        (
            NodeReservation(
                root_disk=Q("100Gi"),
                disk_overhead=DiskReservation(Q("10Gi"), Fraction(1, 10)),
                disk=DiskReservation(share=Fraction(1, 5)),
                eviction_disk=Fraction(1, 10),
            ),
            "ephemeral-storage",
            "52Gi",
        ),
        (
            NodeReservation(root_disk=Q("10Gi"), disk=DiskReservation(Q("10Gi"), most_share=Fraction(1, 2))),
            "ephemeral-storage",
            "5Gi",
        ),
        (
            NodeReservation(root_disk=Q("1Ti"), disk=DiskReservation(share=Fraction(1, 2), most=Q("24Gi"))),
            "ephemeral-storage",
            "1000Gi",
        ),
        (NodeReservation(pods=(PodRange(29, 58, 4), PodRange(58, 234))), "pods", "58"),
        (NodeReservation(pods=(PodRange(29, 58, 8), PodRange(58, 234))), "pods", "29"),
    ],
    ids=[
        "hypervisor",
        "kernel",
        "fixed",
        "most pods count",
        "memory tiers",
        "never negative",
        "cpu tiers",
        "disk eviction",
        "disk share",
        "disk overhead",
        "disk at most a share",
        "disk at most",
        "pods by size",
        "least pods count",
    ],
)
def test_what_a_model_keeps(reservation: NodeReservation, resource: str, expected: str) -> None:
    assert _of(reservation, resource) == Q(expected)


def test_a_pool_replaces_kube_reserved_by_resource() -> None:
    model = NodeReservation(memory_base=Q("1Gi"), cpu_tiers=(Tier(Fraction(1, 2)),))
    changed = node_allocatable(replace(BOX, reservation=model), reserved={"memory": Q("2Gi")})
    assert (changed["memory"], changed["cpu"]) == (Q("30Gi"), Q("4"))


def test_a_root_disk_replaces_that_of_the_image() -> None:
    model = NodeReservation(root_disk=Q("20Gi"), pods=(PodRange(29, 58),))
    changed = node_allocatable(replace(BOX, reservation=model), root_disk=Q("1Ti"))
    assert (changed["ephemeral-storage"], changed["pods"]) == (Q("1Ti"), Q("29"))


@pytest.mark.parametrize(
    ("name", "gigabytes", "expected"),
    [
        pytest.param(
            "a3-highgpu-8g", 6000, Quantity.of(5_400_000_000_000 - 100 * 2**30), id="disks less 10 % and 100Gi"
        ),
        pytest.param("a2-highgpu-1g", 6000, Q("20Gi"), id="another family"),
        pytest.param("a3-highgpu-8g", None, Q("20Gi"), id="not known"),
    ],
)
def test_local_disks_are_the_ephemeral_storage_of_some_families(
    name: str, gigabytes: int | None, expected: Quantity
) -> None:
    disks = LocalDisks(("a3",), Q("100Gi"))
    model = NodeReservation(
        root_disk=Q("20Gi"), local_disks=disks, eviction_disk=Fraction(1, 10) if gigabytes else Fraction(0)
    )
    model = model if name.startswith("a3") else replace(model, eviction_disk=Fraction(0))
    machine = replace(BOX, name=name, local_nvme_gb=gigabytes, reservation=model)
    found = node_allocatable(machine)["ephemeral-storage"]
    assert abs(found.value - expected.value) < 1024
    assert node_allocatable(machine, root_disk=Q("1Ti"))["ephemeral-storage"] != found


def test_gke_nodes_of_the_third_generation_offer_their_disks(shipped: Catalog) -> None:
    assert node_allocatable(shipped.get("a3-highgpu-8g"))["ephemeral-storage"] > Q("4Ti")
    assert node_allocatable(shipped.get("a2-ultragpu-1g"))["ephemeral-storage"] < Q("100Gi")


def test_measured_values_win() -> None:
    measured = replace(BOX, allocatable=FrozenMap({"memory": Q("31Gi"), "hugepages-2Mi": Q("1Gi")}))
    result = node_allocatable(measured)
    assert (result["memory"], result["hugepages-2Mi"], result["cpu"]) == (Q("31Gi"), Q("1Gi"), Q("8"))


@pytest.mark.parametrize(
    ("name", "cpu", "memory", "pods"),
    [
        # 4 cores keep 60 + 10 + 10 millicores; 16Gi less 7.5 %, 255Mi + 11Mi x 58 pods and 100Mi
        ("g4dn.xlarge", "3920m", "14502092Ki", 29),
        # 192 cores keep 80 + 188 x 2.5; 2Ti less 7.5 %, 255Mi + 11Mi x 737 pods and 100Mi
        ("p5.48xlarge", "191450m", "1977757286Ki", 100),
        # 16Gi less 1.5625 % + 0.175 % + 96Mi, 25 % of 4Gi, 20 % of 4Gi, 10 % of 8Gi and 100Mi
        ("g2-standard-4", "3920m", "13558710Ki", 110),
    ],
)
def test_shipped_models(shipped: Catalog, name: str, cpu: str, memory: str, pods: int) -> None:
    result = node_allocatable(shipped.get(name))
    assert (result["cpu"], result["memory"], result["pods"]) == (Q(cpu), Q(memory), Quantity.of(pods))


@pytest.mark.parametrize(
    ("memory", "capacity", "allocatable"),
    [
        ("32Gi", "32880872Ki", "29085928Ki"),
        ("128Gi", "131919220Ki", "122210676Ki"),
        ("512Gi", "528365196Ki", "510603916Ki"),
    ],
)
def test_gke_nodes_show_no_less_memory_than_predicted(
    shipped: Catalog, memory: str, capacity: str, allocatable: str
) -> None:
    """Of n2-highmem machines in 2i2c-org/infrastructure#2121; less by half a percent at most."""
    model = shipped.get("g2-standard-4").reservation
    bare = replace(model, memory_tiers=(), eviction_memory=Q("0"))
    for reservation, shown in ((bare, Q(capacity)), (model, Q(allocatable))):
        found = node_allocatable(replace(BOX, memory=Q(memory), reservation=reservation))["memory"]
        assert shown.value * Fraction(199, 200) < found.value <= shown.value


def test_an_h200_machine_of_gke_runs_what_google_requests_on_it(shipped: Catalog) -> None:
    assert Q("2800Gi") < node_allocatable(shipped.get("a3-ultragpu-8g"))["memory"] < Q("2840Gi")


def test_every_shipped_type_leaves_room_for_pods(shipped: Catalog) -> None:
    for instance_type in shipped:
        result = node_allocatable(instance_type)
        assert Q("0") < result["memory"] < instance_type.memory, instance_type.name
        assert Q("0") < result["cpu"] < Quantity.of(instance_type.vcpu), instance_type.name
        assert result["ephemeral-storage"] > Q("0"), instance_type.name


@pytest.mark.parametrize(
    ("name", "disk", "shown"),
    [
        ("g2-standard-24", "100Gi", 47060071478),  # plan GKE Standard node sizes: 100 GB
        ("g6.xlarge", "20Gi", 18181869946),  # public output of kubectl for AL2023
    ],
)
def test_the_default_disk_leaves_what_nodes_show(shipped: Catalog, name: str, disk: str, shown: int) -> None:
    """No more than they show, and less by 0.1 percent at most."""
    machine = shipped.types[name]
    assert machine.reservation.root_disk == Q(disk)
    assert shown * 0.999 < node_allocatable(machine)["ephemeral-storage"].int64_value() <= shown


@pytest.mark.parametrize(("disk", "shown"), [("30Gi", 27226542080), ("1000Gi", 1027832452 * 1024)])
def test_other_disks_of_gke_show_no_less_than_predicted(shipped: Catalog, disk: str, shown: int) -> None:
    """Capacities in public reports, of 30 GB and 1000 GB."""
    machine = shipped.types["g2-standard-24"]
    model = replace(machine.reservation, disk=DiskReservation(), eviction_disk=Fraction(0))
    found = node_allocatable(replace(machine, reservation=model), root_disk=Q(disk))["ephemeral-storage"].int64_value()
    assert shown * 0.998 < found <= shown


def test_models_are_sourced(shipped: Catalog) -> None:
    groups = {"memoryOverhead", "kubeReserved", "eviction", "rootDisk", "diskOverhead", "maxPods"}
    expected = {"aws": groups, "gcp": groups | {"kernelMemory", "localDisks"}}
    assert {t.cloud: set(t.reservation.provenance) for t in shipped} == expected


def test_a_directory_can_correct_a_cloud(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("nodes:\n  - {cloud: aws, memoryOverhead: 0, rootDisk: 1Ti}\n")
    corrected = load_catalog(extra_dirs=[tmp_path]).get("p5.48xlarge").reservation
    assert (corrected.memory_overhead, corrected.root_disk, corrected.memory_base) == (
        Fraction(0),
        Q("1Ti"),
        Q("255Mi"),
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("memoryOverhead: 7.5", "memoryOverhead: found '7.5'; allowed: a share between 0 and 1, such as 0.075"),
        ("memoryOverhead: lots", "memoryOverhead: found 'lots'; allowed: a share between 0 and 1, such as 0.075"),
        ("maxPods: [{vcpuUpTo: 4, least: 1, most: 2}]", "maxPods: found bounds [4]; allowed: rising vcpuUpTo, and a "),
        ("rootDsk: 1Gi", "rootDsk: found an unknown field; allowed: cloud, image, "),
    ],
)
def test_a_bad_model_is_a_defect(tmp_path: Path, fields: str, message: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(f"nodes:\n  - cloud: aws\n    {fields}\n")
    with pytest.raises(CatalogError) as caught:
        load_catalog(extra_dirs=[tmp_path])
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{path}:3: nodes of aws: {message}")
