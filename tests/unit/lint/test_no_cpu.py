"""Pods that use devices and request no CPU."""

from __future__ import annotations

import pytest

from autoscaler.lint.advice import reason_of
from autoscaler.lint.pods.no_cpu import no_cpu
from autoscaler.model.pod import Container
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import claim, pod, shipped, snapshot

CATALOG = shipped("g6.xlarge", "g6.12xlarge", "p5e.48xlarge", "p5en.48xlarge")


def lacking(state: Snapshot) -> list[Diagnostic]:
    return list(no_cpu(state, CATALOG))


def test_a_pod_that_claims_a_gpu_and_no_cpu() -> None:
    (found,) = lacking(snapshot([pod("a", "c", cpu="0"), pod("b", "d", cpu="0")], [claim("c"), claim("d")]))
    assert found.about == "Pod default/a and 1 more"
    assert str(reason_of(found).subject) == found.about
    assert lacking(snapshot([pod("a", "c")], [claim("c")])) == []


def test_the_container_with_the_gpu_has_to_request_cpu_and_not_the_one_beside_it() -> None:
    beside = pod("a", "c")
    using = Container("gpu", claims=("c",))
    (found,) = lacking(snapshot([replace(beside, containers=(*beside.containers, using))], [claim("c")]))
    assert found.path == ("spec", "containers", 1, "resources", "requests")
    asking = replace(using, requests=FrozenMap({"cpu": Quantity.parse("2")}))
    idle = replace(beside.containers[0], requests=FrozenMap({}))
    assert lacking(snapshot([replace(beside, containers=(idle, asking))], [claim("c")])) == []


@pytest.mark.parametrize(
    ("selector", "told_of"),
    [
        ({"node.kubernetes.io/instance-type": "g6.xlarge"}, 0),
        ({"nvidia.com/gpu.product": "NVIDIA-H200"}, 0),
        ({"foreslice.dev/accelerator": "nvidia-l4"}, 1),
        ({"team": "a"}, 1),
    ],
)
def test_that_is_no_matter_where_the_pod_leaves_one_size_of_machines(selector: dict[str, str], told_of: int) -> None:
    found = pod("a", "c", cpu="0", node_selector=FrozenMap(selector))
    assert len(lacking(snapshot([found], [claim("c")]))) == told_of
