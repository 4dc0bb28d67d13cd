"""Scenarios are plain manifests; their annotations say when, how often and what is expected."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.errors import BadInputError
from autoscaler.simulation.scenario import load_scenario, parse_scenario

POD = """
kind: Pod
metadata:
  name: a
  annotations:
    simulation.foreslice.dev/at: 2m
    simulation.foreslice.dev/copies: "3"
    simulation.foreslice.dev/title: Three of them
    simulation.foreslice.dev/expect: Pending
spec: {}
---
kind: Namespace
metadata: {name: early}
"""


def test_objects_arrive_in_order_of_time() -> None:
    arrivals = parse_scenario(POD).arrivals
    assert [arrival.manifest["metadata"]["name"] for arrival in arrivals] == ["early", "a-0", "a-1", "a-2"]
    assert [arrival.after for arrival in arrivals] == [timedelta(0), *[timedelta(minutes=2)] * 3]


def test_only_the_first_copy_carries_the_title() -> None:
    assert [arrival.title for arrival in parse_scenario(POD).arrivals] == ["", "Three of them", "", ""]


def test_expectations_are_by_pod() -> None:
    assert parse_scenario(POD).expected() == {f"default/a-{index}": "Pending" for index in range(3)}


def test_a_kind_the_cluster_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(BadInputError, match="Deployment") as caught:
        parse_scenario("kind: Deployment\nmetadata: {name: d}")
    assert "ResourceClaim" in caught.value.next_step


def test_every_pod_of_the_demo_says_what_it_shows() -> None:
    scenario = load_scenario("demo")
    titles = {a.manifest["metadata"]["name"].rstrip("-0123456789"): a.title for a in scenario.arrivals if a.title}
    pods = {a.manifest["metadata"]["name"].rstrip("-0123456789") for a in scenario.arrivals if a.resource.kind == "Pod"}
    assert titles.keys() == pods
    assert set(scenario.expected().values()) == {"Succeeded", "Evicted", "Pending"}
