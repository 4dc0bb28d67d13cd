"""Whatever stands in a manifest, reading it ends in a value and in problems, never in an exception."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.kube.device_class import parse_device_class, parse_device_taint_rule
from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.priority import parse_priority_class
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim, parse_resource_claim_template
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.kube.storage import parse_persistent_volume, parse_persistent_volume_claim, parse_storage_class
from autoscaler.kube.workloads.compute_domain import parse_compute_domain
from autoscaler.kube.workloads.controllers import expand_cron_job, expand_job, expand_replicas, expand_stateful_set
from autoscaler.kube.workloads.daemon_set import parse_daemon_set
from autoscaler.kube.workloads.gang import parse_pod_group, parse_workload
from autoscaler.kube.workloads.pod_sets import expand_job_set, expand_leader_worker_set
from autoscaler.kube.workloads.ray import expand_ray_cluster, expand_ray_job, expand_ray_service
from autoscaler.kube.workloads.training import expand_training_job
from autoscaler.manifests.load import load
from autoscaler.manifests.yaml_documents import read_yaml

PARSERS = (
    expand_cron_job,
    expand_job,
    expand_job_set,
    expand_leader_worker_set,
    expand_ray_cluster,
    expand_ray_job,
    expand_ray_service,
    expand_replicas,
    expand_stateful_set,
    expand_training_job,
    parse_compute_domain,
    parse_daemon_set,
    parse_device_class,
    parse_device_taint_rule,
    parse_node,
    parse_persistent_volume,
    parse_persistent_volume_claim,
    parse_pod,
    parse_pod_group,
    parse_priority_class,
    parse_resource_claim,
    parse_resource_claim_template,
    parse_resource_slice,
    parse_storage_class,
    parse_workload,
)
OBJECTS: list[Any] = [
    document.value
    for path in sorted((Path(__file__).parents[2] / "docs" / "examples").rglob("*.yaml"))
    for document in read_yaml(path.read_text(encoding="utf-8"), path.name)
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("9" * 30 + "Gi")
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def paths(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [entry for key, inner in items for entry in ((value, key), *paths(inner))]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """An object of the examples with a few of its parts replaced by anything."""
    found = copy.deepcopy(draw(st.sampled_from(OBJECTS)))
    for _ in range(draw(st.integers(1, 3))):
        places = paths(found)
        if places:
            container, key = draw(st.sampled_from(places))
            container[key] = draw(JSON)
    return found


@given(raw=mutated() | JSON)
@settings(deadline=None)
def test_converters_are_total(raw: Any) -> None:
    before = copy.deepcopy(raw)
    for parse in PARSERS:
        problems = Problems()
        parse(raw, problems)
        assert all(problem.message for problem in problems)
    assert repr(raw) == repr(before)


@given(raws=st.lists(mutated(), min_size=1, max_size=4), cut=st.integers(0, 400), indent=st.sampled_from((None, 1)))
@settings(deadline=None)
def test_loading_is_total(raws: list[Any], cut: int, indent: int | None) -> None:
    text = "\n---\n".join(json.dumps(raw, indent=indent) for raw in raws)
    for content in (text, text[: len(text) - cut]):
        found = load(["-"], stdin=io.StringIO(content))
        assert all(str(problem).startswith("-") for problem in found.problems)
