"""Every name, label and message that is composed fits where it is written, however long its parts are."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from autoscaler.clock import EPOCH
from autoscaler.cluster import resources
from autoscaler.cluster.intents import batches_of, halves, nodes_of, part_of
from autoscaler.cluster.publishing.event_queue import manifest_of
from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.node import Node
from autoscaler.model.plan import PlannedNode
from autoscaler.model.provisioned_node import OfferingRef, Prediction
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.naming import prefix_of
from autoscaler.report.events import Event, Subject, not_launched_event, trouble_event
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from tests.crash.life import START, small_catalog
from tests.crash.plots import LAUNCH

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def names(longest: int) -> st.SearchStrategy[str]:
    """DNS subdomains of up to so many characters, mostly long ones."""
    inside = st.text("abz019-.", min_size=longest // 2, max_size=longest - 2)
    text = inside.map(lambda middle: re.sub(r"[-.]*\.[-.]*", ".", f"a{middle}z"))
    return st.one_of(st.just("a" * longest), text, st.text("ab", min_size=1, max_size=3))


POOLS = names(63)
PODS = st.builds(
    lambda namespace, name: f"{namespace}/{name}", st.just("n" * 63) | st.text("ab", min_size=1), names(253)
)
TEXTS = st.text(max_size=3000) | st.just("é" * 2000) | st.just("\U0001f600" * 1024)


def schema(plural: str) -> Draft202012Validator:
    text = (CRDS / f"foreslice.dev_{plural}.yaml").read_text(encoding="utf-8")
    return Draft202012Validator(yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


BATCHES, NODES = schema("launchbatches"), schema("provisionednodes")


def planned(pool: str, number: int, pods: tuple[str, ...]) -> PlannedNode:
    offering = OfferingRef("t" * 253, "z" * 253, CapacityType.ON_DEMAND, Decimal("1.00"), "r" * 1024, "b" * 63)
    name = f"{prefix_of(CapacityPool(pool))}{number:010x}"
    own = FrozenMap({f"label.example/{index}": "v" * 63 for index in range(100)})
    return PlannedNode(
        name=name,
        pool=pool,
        drivers=("nvidia",),
        offerings=(offering,) * 70,
        node=Node(name, labels=own, taints=tuple(Taint("k" * 253, "v" * 63, "NoSchedule") for _ in range(51))),
        predicted=(),
        pods=pods,
        devices_used=(),
        devices_total=0,
        usd_per_hour=None,
        prediction=Prediction("t" * 253, ("d" * 253,) * 16, "c", "s"),
    )


@pytest.mark.slow
@given(POOLS, st.lists(PODS, min_size=1, max_size=5))
def test_whatever_a_launch_is_called_the_api_server_takes_its_objects(pool: str, pods: list[str]) -> None:
    launches = [planned(pool, number, (pod,)) for number, pod in enumerate(pods)]
    startup = tuple(Taint(f"{'s' * 200}{index}", "v" * 63, "NoExecute") for index in range(50))
    snapshot = Snapshot(pools=(CapacityPool(pool, mode=Mode.ACT, startup_taints=startup),))
    (batch,) = batches_of(launches, snapshot)
    for part in (batch, *halves(batch), part_of(batch, batch.nodes[-1:])):
        manifest = written(BATCHES, write_launch_batch(part))
        assert parse_launch_batch({**manifest, "status": {}}).members == part.members
        for node in nodes_of(part):
            manifest = written(NODES, write_provisioned_node(node))
            assert parse_provisioned_node({**manifest, "status": {}}).pods == node.pods


def written(validator: Draft202012Validator, manifest: dict[str, Any]) -> dict[str, Any]:
    """What the API server checks: the schema, and by the definition's rule names of 63 characters."""
    validator.validate(manifest)
    metadata = manifest["metadata"]
    assert len(metadata["name"]) <= 63
    assert SUBDOMAIN.fullmatch(metadata["name"]), metadata["name"]
    for value in metadata["labels"].values():
        assert len(value) <= 63
        assert LABEL_VALUE.fullmatch(value)
    return manifest


@given(names(253), st.just("n" * 63), TEXTS, TEXTS)
def test_an_event_fits_whatever_it_says(name: str, namespace: str, reason: str, message: str) -> None:
    events = (
        Event(Subject("Pod", name, namespace, "u" * 36), "Warning", reason, message),
        trouble_event("Pod", namespace, name, "", reason=reason, text=message),
        not_launched_event(f"{namespace}/{name}", "", "b" * 63, reason),
    )
    for event in events:
        manifest = manifest_of(event, EPOCH + timedelta(seconds=1))
        assert len(manifest["metadata"]["name"]) <= 253
        assert SUBDOMAIN.fullmatch(manifest["metadata"]["name"])
        assert len(manifest["message"].encode()) <= 1024
        assert len(manifest["reason"].encode()) <= 128


@pytest.mark.parametrize("pool", ["gpu", "a" * 52])
def test_batches_that_could_be_written_so_far_keep_their_names(pool: str) -> None:
    launch = planned(pool, 1, ("default/a",))
    (batch,) = batches_of([launch], Snapshot(pools=(CapacityPool(pool),)))
    known = {"gpu": "gpu-", "a" * 52: "a" * 52 + "-"}
    assert re.fullmatch(re.escape(known[pool]) + "[0-9a-f]{10}", batch.name)


def test_pools_with_long_names_that_begin_alike_have_batches_of_different_names() -> None:
    pools = ["p" * 62 + end for end in "ab"]
    found = batches_of(
        [planned(pool, number, ()) for number, pool in enumerate(pools)],
        Snapshot(pools=tuple(CapacityPool(pool) for pool in pools)),
    )
    assert len({batch.name for batch in found}) == 2


def test_a_batch_stays_below_what_an_object_may_weigh() -> None:
    pods = tuple(f"{'n' * 63}/{number:0253}" for number in range(110))
    launches = [planned("gpu", number, pods) for number in range(100)]
    batches = batches_of(launches, Snapshot(pools=(CapacityPool("gpu"),)))
    assert sum(len(batch.nodes) for batch in batches) == 100
    assert all(len(repr(write_launch_batch(batch))) < 1_500_000 for batch in batches)


def test_a_pod_and_a_pool_with_the_longest_names_live_like_others() -> None:
    namespace, pod, pool = "n" * 63, "p" * 250, "g" * 63
    manifests = LAUNCH.manifests.replace("KIND", "SimulatedNodeTemplate")
    manifests = manifests.replace("{name: gpu}\nspec: {spec:", f"{{name: gpu, namespace: {namespace}}}\nspec: {{spec:")
    manifests = manifests.replace("name: work", f"name: {pod}\n  namespace: {namespace}")
    manifests = manifests.replace("metadata: {name: gpu}\nspec:\n  mode", f"metadata: {{name: {pool}}}\nspec:\n  mode")
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.api.create(resources.NAMESPACES, {"metadata": {"name": namespace}})
    simulation.add(parse_scenario(manifests))
    simulation.run(START + timedelta(minutes=5))
    batches, nodes = (
        simulation.api.list(kind).items for kind in (resources.LAUNCH_BATCHES, resources.PROVISIONED_NODES)
    )
    assert (sum(len(batch["spec"]["nodes"]) for batch in batches), len(nodes)) == (2, 2)
    for validator, objects in ((BATCHES, batches), (NODES, nodes)):
        for made in objects:
            written(validator, made)
    pods = simulation.api.list(resources.PODS).items
    assert {found["status"]["phase"] for found in pods} == {"Running"}
    for event in simulation.api.list(resources.EVENTS).items:
        assert len(event["metadata"]["name"]) <= 253
