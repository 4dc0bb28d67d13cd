"""Types on which nothing would run are known as such, each with the source of the fact."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drivers.images import node_images, superseded_types
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.prediction.runnable import branch_bounds, what_else_it_needs, why_not_runnable
from tests.unit.instance_catalog.prediction import machines

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "drivers", "words"),
    [
        ("p2.8xlarge", "nvidia", "branch 470 of NVIDIA's driver is the last for K80; the DRA driver needs 565"),
        ("p2.8xlarge", "nvidia:driver=580.126.09", "branch 470"),
        ("g3.4xlarge", "nvidia", "EKS AL2023 NVIDIA and Bottlerocket NVIDIA do not support it"),
        ("g7.2xlarge", "nvidia:driver=580.126.09", "needs branch 595 of NVIDIA's driver or newer, the image has 580"),
        ("p3.2xlarge", "nvidia:driver=595.71.05", "branch 580 of NVIDIA's driver is its last, the image has 595.71.05"),
        ("g6f.large", "nvidia:driver=595.71.05", "branch 580 of NVIDIA's driver is its last"),
        ("n1-standard-8+1xnvidia-tesla-p100", "nvidia:driver=595.71.05", "branch 580 of NVIDIA's driver is its last"),
        ("g6.xlarge", "nvidia:PassthroughSupport=true", "is a virtual machine without an IOMMU"),
    ],
)
def test_what_does_not_run_says_why(name: str, drivers: str, words: str) -> None:
    found = why_not_runnable(CATALOG.get(name), parse_driver_set(drivers))
    assert found is not None
    assert words in found.problem
    assert found.source


@pytest.mark.parametrize(
    ("name", "drivers"),
    [
        ("g3.4xlarge", "nvidia:driver=580.126.09"),  # an image of one's own
        ("g7.2xlarge", "nvidia:driver=595.71.05"),
        ("g7.2xlarge", "nvidia"),  # the image has two branches
        ("p3.2xlarge", "nvidia"),
        ("g6f.large", "nvidia"),
        ("p5.48xlarge", "nvidia,dranet"),
        ("p6e-gb200.36xlarge", "nvidia"),
        ("n1-standard-8+1xnvidia-tesla-p100", "nvidia"),
        ("g4dn.metal", "nvidia:PassthroughSupport=true"),
        ("trn2.48xlarge", "neuron"),
        ("dl1.24xlarge", "gaudi"),
    ],
)
def test_what_runs(name: str, drivers: str) -> None:
    assert why_not_runnable(CATALOG.get(name), parse_driver_set(drivers)) is None


def test_nothing_is_concluded_about_types_that_are_newer_than_the_facts() -> None:
    new = machines.machine("p9.48xlarge", machines.H100, 8)
    assert why_not_runnable(new, parse_driver_set("nvidia")) is None
    found = why_not_runnable(replace(new, min_driver="600"), parse_driver_set("nvidia"))
    assert found is not None
    assert "needs branch 600 or newer of NVIDIA's driver, and image EKS AL2023 NVIDIA has 580 and 595" in found.problem
    found = why_not_runnable(replace(new, max_driver="570"), parse_driver_set("nvidia"))
    assert found is not None
    assert "needs branch 570 or older" in found.problem


def test_bounds_are_the_narrowest_with_the_source_of_each() -> None:
    oldest, last = branch_bounds(CATALOG.get("p3.2xlarge"))
    assert (oldest.oldest, last.last) == (565, 580)
    assert "dra-driver-nvidia-gpu" in oldest.source
    assert "g7-ami.md" in last.source


def test_every_image_has_a_source_and_no_type_on_both_lists() -> None:
    for image in node_images():
        assert image.source.strip()
        assert not set(image.types) & set(image.missing), image.name


@pytest.mark.parametrize(
    ("name", "problem", "step"),
    [
        ("dl1.24xlarge", "the node images of aws have no driver for Habana", "support the Gaudi HL-205 with 32Gi"),
        ("g4ad.xlarge", "the node images of aws have no driver for AMD", "an image of your own with that driver"),
        ("inf1.24xlarge", "no neuronx image or package runs on it", "inf2 or trn1"),
    ],
)
def test_what_people_have_to_see_to(name: str, problem: str, step: str) -> None:
    found = what_else_it_needs(CATALOG.get(name))
    assert found is not None
    assert problem in found.problem
    assert step in found.next_step
    assert found.source


@pytest.mark.parametrize("name", ["inf2.xlarge", "trn1.2xlarge", "g6.xlarge", "ct6e-standard-4t"])
def test_what_works_by_itself(name: str) -> None:
    assert what_else_it_needs(CATALOG.get(name)) is None


def test_superseded_types_are_all_those_with_the_accelerator() -> None:
    """The list is by name, as those of pods and node images are."""
    (found,) = superseded_types()
    models = {CATALOG.get(name).accelerator for name in found.types}
    assert {one.name for one in CATALOG if one.accelerator in models} == set(found.types)
