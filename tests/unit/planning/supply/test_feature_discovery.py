"""Labels of NVIDIA GPU feature discovery: predicted where it runs, assumed only where no pool says anything."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.model.capacity import CapacityPool, Limits, Mode
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.prediction.predict import node_labels
from tests.builders import NOW, claim, gpus, plan, pod, shipped, snapshot, types
from tests.one_line_advice import change_text

SHIPPED = load_catalog()
PRODUCT = "nvidia.com/gpu.product"
H100 = FrozenMap({PRODUCT: "NVIDIA-H100-80GB-HBM3"})
SOME = shipped("g6.xlarge", "p5.4xlarge")


@pytest.mark.parametrize(
    ("name", "drivers", "expected"),
    [
        (
            "p5.48xlarge",
            "nvidia:feature-discovery",
            {
                PRODUCT: "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.family": "hopper",
                "nvidia.com/gpu.compute.major": "9",
                "nvidia.com/gpu.compute.minor": "0",
                "nvidia.com/mig.capable": "true",
                "feature.node.kubernetes.io/pci-10de.present": "true",
            },
        ),
        ("g6.xlarge", "nvidia:feature-discovery", {PRODUCT: "NVIDIA-L4", "nvidia.com/gpu.family": "ada-lovelace"}),
        ("g6.xlarge", "nvidia", {PRODUCT: None, "nvidia.com/gpu.present": "true"}),
        # Whether the product is named with the MIG profile depends on its strategy.
        ("p5.48xlarge", "nvidia:mig=all-1g.10gb:feature-discovery", {PRODUCT: None, "nvidia.com/gpu.family": "hopper"}),
    ],
)
def test_what_it_writes(name: str, drivers: str, expected: dict[str, str | None]) -> None:
    found = node_labels(SHIPPED.types[name], parse_driver_set(drivers))
    assert {key: found.get(key) for key in expected} == expected


def test_a_product_that_is_not_certain_has_no_label() -> None:
    unsure = replace(SHIPPED.types["g6.xlarge"])
    assert unsure.accelerator is not None
    unsure = replace(unsure, accelerator=replace(unsure.accelerator, product_name=None, product_names=("A", "B")))
    assert PRODUCT not in node_labels(unsure, parse_driver_set("nvidia:feature-discovery"))


def test_a_plan_without_pools_assumes_it_and_says_so() -> None:
    found = plan(snapshot([pod("p", "c", node_selector=H100)], [claim("c", gpus())]), catalog=SOME)
    assert types(found) == ["p5.4xlarge"]
    assert "nvidia:feature-discovery" in found.launches[0].drivers


def test_what_a_pod_excludes_by_its_labels_is_not_bought_as_if_it_did_not_run() -> None:
    """A node without the label passes NotIn; where discovery runs, no node is without it."""
    excluded = Requirement(PRODUCT, "NotIn", ("NVIDIA-L4",))
    choosy = pod("p", "c", affinity=NodeSelector((NodeSelectorTerm((excluded,)),)))
    assert types(plan(snapshot([choosy], [claim("c", gpus())]), catalog=SOME)) == ["p5.4xlarge"]


@pytest.mark.parametrize(("drivers", "bought"), [((), []), (("nvidia:feature-discovery",), ["p5.4xlarge"])])
def test_a_pool_says_that_it_runs(drivers: tuple[str, ...], bought: list[str]) -> None:
    pool = CapacityPool("gpu", Mode.ACT, drivers=drivers, limits=Limits(nodes=5))
    state = snapshot([pod("p", "c", node_selector=H100)], [claim("c", gpus())], pools=(pool,))
    assert types(plan(state, catalog=SOME)) == bought


def test_nobody_else_pays_for_it() -> None:
    found = plan(snapshot([pod("p", "c")], [claim("c", gpus())]), catalog=SOME)
    assert all("feature-discovery" not in text for node in found.launches for text in node.drivers)


def test_a_pool_that_does_not_say_it_is_told_to() -> None:
    pool = CapacityPool("gpu", Mode.ACT, drivers=("nvidia", "compute-domain"), limits=Limits(nodes=5))
    given = snapshot([pod("p", "c", node_selector=H100)], [claim("c", gpus())], pools=(pool,))
    policy = Policy(considered=100)
    (first, *others) = advise(given.pods[0], given, SOME, plan_for(given, SOME, policy, NOW), policy, NOW)
    profiles = "[nvidia:feature-discovery, compute-domain]"
    assert change_text(first.change) == f"pool gpu: set spec.drivers.profiles to {profiles}"
    assert not [entry for entry in others if entry.change.kind is ChangeKind.DROP_NODE_SELECTOR]
