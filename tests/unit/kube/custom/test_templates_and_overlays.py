"""Node templates and overlays are read with their defaults, and their mistakes are named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from autoscaler.kube.custom.instance_type_overlay import overlay_layer, parse_instance_type_overlay
from autoscaler.kube.custom.node_template import parse_kwok_node_template, parse_simulated_node_template
from autoscaler.kube.problem import Problems


def named(spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": spec}


def test_a_simulated_template_needs_nothing() -> None:
    spec = parse_simulated_node_template(named({}))
    assert spec is not None
    assert (spec.boot, spec.publish, spec.shutdown, spec.broken) == ("40s", "10s", "20s", "")


def test_a_kwok_template_selects_nodes_as_kwok_is_installed_by_default() -> None:
    spec = parse_kwok_node_template(named(None))
    assert spec is not None
    assert spec.annotations == {"kwok.x-k8s.io/node": "fake"}


def test_an_overlay_is_a_partial_catalog_entry_with_a_source() -> None:
    entry = {"accelerator": {"count": 8}, "prices": {"on-demand": "55.04"}}
    spec = parse_instance_type_overlay(
        named({"cloud": "aws", "instanceType": "p5.48xlarge", "entry": entry, "source": "contract 2026"})
    )
    assert spec is not None
    assert spec.catalog_file()["types"] == [{"name": "p5.48xlarge", **entry}]
    assert spec.expires_at is None


@pytest.mark.parametrize(
    ("parse", "spec", "field", "message"),
    [
        pytest.param(parse_simulated_node_template, {"boot": 40}, "spec.boot", "expected a string", id="boot"),
        pytest.param(parse_kwok_node_template, {"publish": "soon"}, "spec.publish", "not a duration", id="publish"),
        pytest.param(
            parse_kwok_node_template, {"taints": [{"key": "a"}]}, "spec.taints[0].effect", "is required", id="taint"
        ),
        pytest.param(
            parse_kwok_node_template,
            {"labels": {"a b": "c"}},
            "spec.labels",
            "'a b' is not a label key",
            id="label key",
        ),
        pytest.param(
            parse_kwok_node_template,
            {"labels": {"team": "x --anonymous-auth=true"}},
            "spec.labels.team",
            "does not match",
            id="label value",
        ),
        pytest.param(
            parse_kwok_node_template,
            {"taints": [{"key": "a=b", "effect": "NoExecute"}]},
            "spec.taints[0].key",
            "does not match",
            id="taint key",
        ),
        pytest.param(
            parse_instance_type_overlay,
            {"cloud": "aws", "instanceType": "t"},
            "spec.source",
            "is required",
            id="overlay without source",
        ),
        pytest.param(
            parse_instance_type_overlay,
            {"cloud": "aws", "instanceType": "t", "source": "s", "expiresAt": "2027"},
            "spec.expiresAt",
            "not a time",
            id="overlay expiry",
        ),
    ],
)
def test_a_mistake_is_named(parse: Callable[..., Any], spec: Any, field: str, message: str) -> None:
    problems = Problems()
    assert parse(named(spec), problems) is None
    (problem,) = problems
    assert problem.field == field
    assert message in problem.message


def test_an_overlay_of_a_cluster_is_a_layer_with_priority_reason_and_end() -> None:
    spec = {
        "cloud": "aws",
        "instanceType": "p5.48xlarge",
        "entry": {"vcpu": 96},
        "source": "contract 7",
        "reason": "half machines",
        "priority": 5,
        "expiresAt": "2026-12-31T00:00:00Z",
    }
    raw = {
        "apiVersion": "foreslice.dev/v1alpha1",
        "kind": "InstanceTypeOverlay",
        "metadata": {"name": "half"},
        "spec": spec,
    }
    layer = overlay_layer(raw)
    assert (layer.name, layer.priority, layer.reason) == ("InstanceTypeOverlay half", 5, "half machines (contract 7)")
    assert layer.expires == datetime(2026, 12, 31, tzinfo=UTC)
    assert layer.problems == ()

    refused = overlay_layer({**raw, "spec": {"cloud": "aws"}})
    assert refused.file is None
    assert "instanceType" in refused.problems[0].message
