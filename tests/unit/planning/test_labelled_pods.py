"""The index of pods by label misses no pod that a selector selects."""

from __future__ import annotations

import pytest

from autoscaler.model.labels import LabelSelector
from autoscaler.planning.demand.labelled_pods import LabelledPods
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import pod

PODS = [replace(pod(value), labels=FrozenMap({"app": value})) for value in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("requirements", "found"),
    [
        ((), "abc"),
        ((Requirement("app", "In", ("a", "c")),), "ac"),
        ((Requirement("app", "In", ("x",)),), ""),
        ((Requirement("app", "NotIn", ("a",)),), "abc"),
    ],
)
def test_no_selected_pod_is_missing(requirements: tuple[Requirement, ...], found: str) -> None:
    assert "".join(one.name for one in LabelledPods(PODS).perhaps(LabelSelector(requirements))) == found
