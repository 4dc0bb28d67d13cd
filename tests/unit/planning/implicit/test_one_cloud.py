"""Plans without CapacityPools keep to one cloud where one serves all pods."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from autoscaler.advice.advise import advise
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cloud_meant, clouds_of, cost_of, plan_in_one_cloud
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot

# Eight and one A100 of 80 GB: eight pods are cheapest on p4de and a2-ultragpu-1g together.
CATALOG = shipped("p4de.24xlarge", "a2-ultragpu-1g", "a2-ultragpu-2g", "a2-ultragpu-8g")


def pods(count: int, **fields: object) -> Snapshot:
    names = [f"p{number}" for number in range(count)]
    return snapshot([pod(name, name, cpu="12", **fields) for name in names], [claim(name, gpus()) for name in names])


def mixed(state: Snapshot) -> Snapshot:
    """What is cheapest over both clouds has machines of both."""
    together = plan_for(state, CATALOG, Policy(), NOW)
    assert clouds_of(together, CATALOG) == ("aws", "gcp")
    return state


def test_a_plan_keeps_to_the_cloud_in_which_it_costs_least() -> None:
    state = mixed(pods(8))
    plan, used = plan_in_one_cloud(state, CATALOG, Policy(), NOW)
    costs = {
        cloud: cost_of(plan_for(state, CATALOG, Policy(where=Where(clouds=(cloud,))), NOW)) for cloud in ("aws", "gcp")
    }
    cheapest = min(costs, key=lambda cloud: costs[cloud] or Decimal("Infinity"))
    assert (used.where.clouds, clouds_of(plan, CATALOG), cost_of(plan)) == ((cheapest,), (cheapest,), costs[cheapest])
    assert len(plan.placements) == 8


@pytest.mark.parametrize(
    ("pools", "where"),
    [
        pytest.param((CapacityPool("gpu"),), Where(), id="a pool says where it is"),
        pytest.param((), Where(clouds=("aws", "gcp")), id="somebody asked for both"),
    ],
)
def test_who_says_where_gets_what_he_says(pools: tuple[CapacityPool, ...], where: Where) -> None:
    policy = Policy(where=where)
    plan, used = plan_in_one_cloud(mixed(replace(pods(8), pools=pools)), CATALOG, policy, NOW)
    assert (clouds_of(plan, CATALOG), used) == (("aws", "gcp"), policy)


def test_pods_that_no_one_cloud_serves_stay_in_several() -> None:
    def on(cloud: str) -> Pod:
        return pod(cloud, cloud, node_selector=FrozenMap({labels.CLOUD: cloud}))

    state = mixed(snapshot([on("aws"), on("gcp")], [claim("aws", gpus()), claim("gcp", gpus())]))
    plan, used = plan_in_one_cloud(state, CATALOG, Policy(), NOW)
    assert (len(plan.placements), used) == (2, Policy())


def test_what_a_change_promises_is_of_one_cloud_as_well() -> None:
    state, policy = pods(8, node_selector=FrozenMap({"gpu": "a100-80gb"})), Policy(considered=100)
    found = advise(state.pods[0], state, CATALOG, plan_for(state, CATALOG, policy, NOW), policy, NOW, most=1)
    clouds = {CATALOG.types[ref.instance_type].cloud for entry in found for ref, _ in entry.result.launches}
    assert len(clouds) == 1


def test_what_a_change_promises_is_of_the_cloud_whose_registry_has_the_image() -> None:
    """One GPU of 80 GB is cheapest on Google Cloud, and the pod's image is in a registry of AWS."""
    state, policy = pods(1, node_selector=FrozenMap({"team": "research"})), Policy(considered=100)
    (one,) = state.pods
    placeholder = "<<ACCOUNT>>.dkr.ecr.<<REGION>>.amazonaws.com/train:1"
    for image, cloud in (("registry.example/train:1", "gcp"), (ECR, "aws"), (placeholder, "aws")):
        named = replace(one, containers=(replace(one.containers[0], image=image),))
        there = replace(state, pods=(named,))
        found = advise(named, there, CATALOG, plan_for(there, CATALOG, policy, NOW), policy, NOW, most=1)
        launched = [ref.instance_type for entry in found for ref, _ in entry.result.launches]
        assert {CATALOG.types[name].cloud for name in launched} == {cloud}, image
        # A plan with pools buys where these say, so the pool of the change has to say it.
        required = [
            part.detail.get("value") for part in found[0].change.parts if part.detail.get("key") == labels.CLOUD
        ]
        assert required == (["aws"] if cloud == "aws" else [])
    ignored = replace(named, scheduler_name="volcano", node_selector=FrozenMap())
    there = replace(state, pods=(ignored,))
    (found,) = advise(ignored, there, CATALOG, plan_for(there, CATALOG, policy, NOW), policy, NOW, most=1)
    assert [part.detail.get("value") for part in found.change.parts if part.detail.get("key") == labels.CLOUD] == [
        "aws"
    ]


ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1"


@pytest.mark.parametrize(
    ("containers", "where", "cloud"),
    [
        pytest.param({"image": "registry.example/train:1"}, (), "gcp", id="nothing says it"),
        pytest.param({"requests": FrozenMap({"vpc.amazonaws.com/efa": Quantity.of(0)})}, (), "aws", id="none of it"),
        pytest.param({"image": ECR}, (), "aws", id="a registry of its accounts"),
        pytest.param({"image": ECR}, ("gcp",), "gcp", id="the command line says otherwise"),
    ],
)
def test_the_cloud_that_the_pods_mean(containers: dict[str, Any], where: tuple[str, ...], cloud: str) -> None:
    """One GPU of 80 GB is cheapest on Google Cloud."""
    state = pods(1)
    named = tuple(replace(one, containers=(replace(one.containers[0], **containers),)) for one in state.pods)
    found, used = plan_in_one_cloud(replace(state, pods=named), CATALOG, Policy(where=Where(clouds=where)), NOW)
    assert clouds_of(found, CATALOG) == (cloud,)
    assert used.where.clouds == (where or (() if cloud == "gcp" else ("aws",)))


def test_pods_that_run_already_say_nothing() -> None:
    state = pods(1)
    both = FrozenMap({"vpc.amazonaws.com/efa": Quantity.of(0)})
    (one,) = state.pods
    named = replace(one, containers=(replace(one.containers[0], requests=both, image=ECR),))
    assert cloud_meant(replace(state, pods=(named,))) == ("aws", "vpc.amazonaws.com/efa")
    assert cloud_meant(state) == ("", "")
    assert cloud_meant(replace(state, pods=(replace(named, node_name="n"),))) == ("", "")
