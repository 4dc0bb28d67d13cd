"""Pods in files get the containers that a cloud's webhook adds when they are created."""

from __future__ import annotations

import pytest

from autoscaler.manifests.assemble import with_sidecars
from autoscaler.model.pod import Container
from instance_catalog.frozen_map import FrozenMap
from tests.builders import pod

ON = {"gke-gcsfuse/volumes": "true"}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param(ON, {"cpu": "250m", "memory": "256Mi", "ephemeral-storage": "5Gi"}, id="defaults"),
        pytest.param(
            {**ON, "gke-gcsfuse/cpu-request": "1", "gke-gcsfuse/memory-limit": "2Gi"},
            {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "5Gi"},
            id="annotations",
        ),
        pytest.param(
            {**ON, "gke-gcsfuse/cpu-limit": "0", "gke-gcsfuse/memory-request": "much"},
            {"cpu": "250m", "memory": "256Mi", "ephemeral-storage": "5Gi"},
            id="no limit, no amount",
        ),
        pytest.param({"gke-gcsfuse/volumes": "false"}, None, id="off"),
    ],
)
def test_what_is_added(annotations: dict[str, str], expected: dict[str, str] | None) -> None:
    found = with_sidecars(pod("p", annotations=FrozenMap(annotations))).init_containers
    requests = [{name: str(amount) for name, amount in one.requests.items()} for one in found if one.sidecar]
    assert requests == ([] if expected is None else [expected])


def test_a_pod_that_has_it_already_is_left_alone() -> None:
    there = pod("p", annotations=FrozenMap(ON), init_containers=(Container("gke-gcsfuse-sidecar", sidecar=True),))
    assert with_sidecars(there) is there
