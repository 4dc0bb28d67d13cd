"""Where only the root disk is short, a larger one is the change: nobody is told to give up an accelerator for it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.amounts import cheaper_with_larger_disks
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.trial import Advice
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Container
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from instance_catalog.types.node_allocatable import node_allocatable
from tests.builders import NOW, claim, gpus, plan, pod, shipped, snapshot, types
from tests.one_line_advice import advice_lines

L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
DISABLED = {"cloud.google.com/gke-gpu-driver-version": "disabled"}
CATALOG = shipped("g2-standard-24", "g2-standard-48", "a3-highgpu-8g")
DISK = (
    "give g2-standard-48 a root disk of 170Gi or more (--disk-size of the GKE node pool), say so "
    "(`foreslice catalog set g2-standard-48 allocatable.ephemeral-storage=80Gi --into DIR --reason WHY`) and plan with "
    "--catalog DIR → 1 × g2-standard-48 (on-demand), 4.00 $/h"
)


def wanting(
    selector: dict[str, str], *pools: CapacityPool, disk: str = "80Gi", memory: str = "80Gi", count: int = 4
) -> Snapshot:
    asked = {"cpu": "10", "memory": memory, "ephemeral-storage": disk}
    container = Container("main", FrozenMap({name: Quantity.parse(text) for name, text in asked.items()}))
    waiting = replace(pod("p", "c", node_selector=FrozenMap(selector)), containers=(container,))
    return snapshot([waiting], [claim("c", gpus(count))], pools=pools)


def advice(given: Snapshot, catalog: Catalog = CATALOG) -> tuple[Advice, ...]:
    policy = Policy(considered=10_000)
    found = plan_for(given, catalog, policy, NOW)
    return advise(given.pods[0], given, catalog, found, policy, NOW, most=1)


def test_the_disk_comes_before_a_smaller_request() -> None:
    assert advice_lines(advice(wanting(L4))) == [DISK]


def test_no_accelerator_is_given_up_for_a_disk_behind_a_label() -> None:
    label = (
        "(1) create a CapacityPool with spec.limits.nodes 1 or more, foreslice.dev/cloud In [gcp] in spec.requirements "
        "and cloud.google.com/gke-gpu-driver-version=disabled in spec.labels; (2) "
    )
    assert advice_lines(advice(wanting(L4 | DISABLED))) == [label + DISK]


@pytest.mark.parametrize("value", ["default", "latest"])
def test_no_pool_gets_the_label_of_a_driver_that_the_cloud_installs(value: str) -> None:
    """DRA needs node pools without that driver."""
    key = "cloud.google.com/gke-gpu-driver-version"
    asked = wanting(L4 | {key: value}, disk="1Gi")
    (line,) = advice_lines(advice(asked))
    assert line == f"pod default/p: drop nodeSelector {key}={value} → 1 × g2-standard-48 (on-demand), 4.00 $/h"


def test_no_accelerator_is_given_up_for_a_disk_behind_a_class_of_autopilot() -> None:
    """Dropping both labels would place the pod, too."""
    asked = wanting(L4 | {"cloud.google.com/compute-class": "Accelerator"})
    dropped = "(1) pod default/p: drop nodeSelector cloud.google.com/compute-class=Accelerator; (2) "
    assert advice_lines(advice(asked)) == [dropped + DISK]


def test_the_change_does_what_it_says_when_it_is_carried_out() -> None:
    (found,) = advice(wanting(L4 | DISABLED))
    told = found.change.parts[-1].detail
    assert (told["instance_type"], told["allocatable"]) == ("g2-standard-48", "80Gi")
    known = CATALOG.types["g2-standard-48"]
    disk = Quantity.parse(str(told["disk"]))
    wanted = Quantity.parse("80Gi").value
    assert node_allocatable(known, root_disk=disk)["ephemeral-storage"].value >= wanted
    smaller = Quantity.of(disk.int64_value() - 10 * 2**30, "BinarySI")
    assert node_allocatable(known, root_disk=smaller)["ephemeral-storage"].value < wanted

    stated = replace(known, allocatable=FrozenMap({"ephemeral-storage": Quantity.parse(str(told["allocatable"]))}))
    pool = CapacityPool("gpu", labels=FrozenMap(DISABLED), capacity_types=(CapacityType.ON_DEMAND,))
    after = plan(wanting(L4 | DISABLED, pool), catalog=Catalog.of([stated, CATALOG.types["a3-highgpu-8g"]]))
    assert types(after) == ["g2-standard-48"]
    assert after.launches[0].usd_per_hour == found.result.usd_per_hour
    assert found.result.usd_per_hour is not None
    assert found.result.usd_per_hour < Decimal(5)


def test_a_disk_that_was_measured_is_not_enlarged() -> None:
    measured = {"ephemeral-storage": Quantity.parse("45Gi")}
    known = [replace(CATALOG.types[name], allocatable=FrozenMap(measured)) for name in ("g2-standard-48",)]
    (found,) = advice(wanting(L4), Catalog.of(known))
    assert found.change.kind is ChangeKind.LOWER_REQUEST


def test_a_disk_beyond_every_volume_is_not_named() -> None:
    (found,) = advice(wanting(L4, disk="40Ti"))
    assert found.change.kind is ChangeKind.LOWER_REQUEST


def test_memory_that_is_short_as_well_is_no_matter_of_disks() -> None:
    kinds = [entry.change.kind for entry in advice(wanting(L4, memory="900Gi"))]
    assert ChangeKind.ENLARGE_DISK not in kinds


def test_a_machine_that_was_left_out_for_its_assumed_disk_is_named_with_what_it_costs() -> None:
    given, policy = wanting({}, disk="600Gi", memory="20Gi", count=1), Policy()
    catalog = shipped("g6.4xlarge", "g5.16xlarge")
    small, large = catalog.types["g6.4xlarge"], catalog.types["g5.16xlarge"]
    stated = FrozenMap({"ephemeral-storage": Quantity.parse("1000Gi")})
    catalog = Catalog.of([small, replace(large, allocatable=stated)])
    found = plan_for(given, catalog, policy, NOW)
    assert types(found) == ["g5.16xlarge"]
    cheaper = cheaper_with_larger_disks(found, given, catalog, policy, NOW)
    assert cheaper is not None
    assert cheaper.launches == (("g6.4xlarge", 1),)
    assert cheaper.usd_per_hour < (found.launches[0].usd_per_hour or 0)
    assert [change.detail["instance_type"] for change in cheaper.types] == ["g6.4xlarge"]


def test_the_disk_of_a_sidecar_makes_a_plan_dear_too() -> None:
    """A sidecar runs beside the containers, so that a disk for the larger of both would be too small."""
    (waiting,) = wanting({}, disk="80Gi", count=1).pods
    sidecar = Container("fuse", FrozenMap({"ephemeral-storage": Quantity.parse("20Gi")}), sidecar=True)
    given = snapshot([replace(waiting, init_containers=(sidecar,))], [claim("c", gpus(1))])
    catalog, policy = shipped("g2-standard-24", "a3-highgpu-8g"), Policy()
    found = plan_for(given, catalog, policy, NOW)
    assert types(found) == ["a3-highgpu-8g"]
    cheaper = cheaper_with_larger_disks(found, given, catalog, policy, NOW)
    assert cheaper is not None
    assert cheaper.launches == (("g2-standard-24", 1),)
    assert [change.detail["allocatable"] for change in cheaper.types] == ["100Gi"]


def test_a_disk_that_changes_nothing_is_not_named() -> None:
    given, policy = wanting(L4, disk="10Gi"), Policy()
    found = plan_for(given, CATALOG, policy, NOW)
    assert cheaper_with_larger_disks(found, given, CATALOG, policy, NOW) is None


def test_the_disk_of_a_sidecar_is_enlarged_too() -> None:
    """Clouds add sidecars, which are init containers: the pod asks for the disk through them."""
    (waiting,) = wanting(L4, disk="0").pods
    sidecar = Container("fuse", FrozenMap({"ephemeral-storage": Quantity.parse("80Gi")}), sidecar=True)
    given = snapshot([replace(waiting, init_containers=(sidecar,))], [claim("c", gpus(4))])
    assert advice_lines(advice(given)) == [DISK]
