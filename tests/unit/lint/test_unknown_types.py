"""Instance types that the catalog lacks: the nearest that it has, and how to add one."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.kube.problem import left_by_template
from autoscaler.lint.pods.unknown_types import near_types, of_family, told_type
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

SHIPPED = load_catalog()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("p5.49xlarge", ["p5.48xlarge", "p5.4xlarge"]),
        ("g5.7xlarge", ["g5.8xlarge", "g5.12xlarge", "g5.4xlarge"]),
        ("a3-highgpu-3g", ["a3-highgpu-4g", "a3-highgpu-2g", "a3-highgpu-8g"]),
        ("g6.metal", ["g6.xlarge", "g6.2xlarge", "g6.4xlarge"]),  # a size without a number
        ("p5x.48xlarge", ["p5.48xlarge", "p5.4xlarge"]),  # of a family with a similar name
        ("x2gd.large", []),  # no name is similar
        ("box", []),
    ],
)
def test_the_nearest_types(name: str, near: list[str]) -> None:
    assert near_types(name, SHIPPED) == near
    assert of_family(name, SHIPPED) == (near if not name.startswith("p5x") else [])


@pytest.mark.parametrize(
    ("name", "step"),
    [
        (
            "p5.49xlarge",
            "the nearest that it has: p5.48xlarge, p5.4xlarge; if p5.49xlarge is sold, add it: `foreslice catalog add "
            "p5.49xlarge --into DIR --like p5.48xlarge --vcpu N --memory SIZE`, and plan with --catalog DIR",
        ),
        (
            "box",
            "if box is sold, add it: `foreslice catalog add box --into DIR --vcpu N --memory SIZE --accelerator KEY "
            "--count N`, and plan with --catalog DIR",
        ),
    ],
)
def test_the_command_that_adds_it(name: str, step: str) -> None:
    assert told_type(name, SHIPPED)[2] == step


@pytest.mark.parametrize("name", ["REPLACE_WITH_INSTANCE_TYPE", "your-type", "$TYPE"])
def test_no_step_has_a_placeholder_for_a_type(name: str) -> None:
    assert told_type(name, SHIPPED)[1:] == (f"selects instance type {name}", left_by_template(name))
    assert left_by_template(name)


def test_the_nearest_type_of_the_family_is_tried() -> None:
    """And none of another family."""
    catalog = shipped("g5.xlarge", "g5.8xlarge", "g5.12xlarge", "g4dn.xlarge")
    for name, expected in (("g5.7xlarge", "write g5.8xlarge instead of g5.7xlarge for"), ("g5x.7xlarge", "")):
        waiting = pod("p", "c", node_selector=FrozenMap({labels.INSTANCE_TYPE: name}))
        state = snapshot([waiting], [claim("c", gpus())])
        found = advise(waiting, state, catalog, plan_for(state, catalog, Policy(), NOW), Policy(), NOW)
        assert [one.change.kind for one in found][:1] == ([ChangeKind.REWRITE_TYPE] if expected else [])
        assert not expected or expected in advice_lines(found)[0]
