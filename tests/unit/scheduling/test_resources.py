"""Effective pod requests, case by case against the rules of component-helpers."""

from __future__ import annotations

import pytest

from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.unit.scheduling import scene


def container(*, sidecar: bool = False, **requests: str) -> Container:
    return Container("c", FrozenMap({k.replace("_", "-"): Quantity.parse(v) for k, v in requests.items()}), sidecar)


def quantities(**values: str) -> FrozenMap[str, Quantity]:
    return FrozenMap({key: Quantity.parse(value) for key, value in values.items()})


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            Pod("ns", "p", containers=(container(cpu="500m", memory="1Gi"), container(cpu="1"))),
            {"cpu": 1500, "memory": 2**30},
            id="containers add up",
        ),
        pytest.param(
            Pod("ns", "p", containers=(container(cpu="1"),), init_containers=(container(cpu="3", memory="1"),)),
            {"cpu": 3000, "memory": 1},
            id="a larger init container wins",
        ),
        pytest.param(
            Pod("ns", "p", containers=(container(cpu="1"),), init_containers=(container(cpu="2", sidecar=True),)),
            {"cpu": 3000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            Pod(
                "ns",
                "p",
                containers=(container(cpu="1"),),
                init_containers=(container(cpu="2", sidecar=True), container(cpu="4")),
            ),
            {"cpu": 6000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            Pod(
                "ns",
                "p",
                containers=(container(cpu="1"),),
                init_containers=(container(cpu="4"), container(cpu="2", sidecar=True)),
            ),
            {"cpu": 4000},
            id="a later sidecar does not count for an earlier init container",
        ),
        pytest.param(
            Pod("ns", "p", containers=(container(cpu="1"),), overhead=quantities(cpu="250m")),
            {"cpu": 1250},
            id="overhead is added",
        ),
        pytest.param(
            Pod(
                "ns",
                "p",
                containers=(container(cpu="1", memory="7"),),
                pod_requests=quantities(cpu="5"),
                overhead=quantities(cpu="1"),
            ),
            {"cpu": 6000, "memory": 7},
            id="pod-level requests replace the sum before overhead",
        ),
    ],
)
def test_pod_requests(pod: Pod, expected: dict[str, int]) -> None:
    assert pod_requests(pod) == expected


def test_units_round_up() -> None:
    assert units("cpu", Quantity.parse("1.0001")) == 1001
    assert units("memory", Quantity.parse("1500m")) == 2


@pytest.mark.parametrize(("cpu", "found"), [("4", []), ("4001m", [Code.INSUFFICIENT_RESOURCE])])
def test_a_pod_that_wants_a_thousandth_more_than_is_free_does_not_fit(cpu: str, found: list[Code]) -> None:
    assert scene.codes(scene.pod(cpu=cpu), "n1", scene.world()) == found
    crowd = tuple(scene.bound("n1", f"p{number}", cpu="1m") for number in range(10))
    full = scene.world(pods=crowd)
    assert scene.codes(scene.pod(cpu="1m"), "n1", full) == [Code.INSUFFICIENT_RESOURCE]
