"""Labels that pods select and that nodes have only because their pool says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.named_models import machine_meant
from autoscaler.advice.pod_changes import node_selectors
from autoscaler.advice.situation import Situation
from autoscaler.advice.trial import Advice
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.pod import Container, HostPort, Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

_CATALOG = shipped("g4dn.xlarge", "g2-standard-4")


def _advice(selecting: Pod, *pools: CapacityPool) -> tuple[Advice, ...]:
    given, policy = snapshot([selecting], [claim("c", gpus())], pools=pools), Policy(considered=1000)
    return advise(selecting, given, _CATALOG, plan_for(given, _CATALOG, policy, NOW), policy, NOW, most=1)


@pytest.mark.parametrize(
    ("key", "labelled"),
    [
        ("nvidia.com/gpu", True),  # the name of a resource, which no driver labels nodes with
        ("aws.amazon.com/neuron", True),
        ("nvidia.com/gpu.family", False),  # of GPU feature discovery
        ("nvidia.com/gpus", False),  # no resource, and perhaps a label of something that is not known here
    ],
)
def test_a_label_that_has_a_resources_name_is_given_by_people(key: str, labelled: bool) -> None:
    selector = NodeSelector((NodeSelectorTerm((Requirement(key, "In", ("true",)),)),))
    (found,) = _advice(pod("p", "c", affinity=selector))
    assert found.change.kind is (ChangeKind.ADD_LABELS if labelled else ChangeKind.DROP_NODE_AFFINITY)
    assert found.change.detail.get("labels") == ((f"{key}=true",) if labelled else None)


@pytest.mark.parametrize(("layout", "labelled"), [("all-disabled", True), ("all-balanced", False)])
def test_a_pool_labels_nodes_as_undivided_but_not_with_a_layout_that_divides_gpus(layout: str, labelled: bool) -> None:
    selecting = FrozenMap({"team": "a", labels.NVIDIA_MIG_CONFIG: layout})
    found = [advice.change for advice in _advice(pod("p", "c", node_selector=selecting))]
    given = [part.detail["labels"] for change in found for part in change.steps if part.kind is ChangeKind.ADD_LABELS]
    assert (("team=a", f"{labels.NVIDIA_MIG_CONFIG}={layout}") in given) is labelled


def test_a_dropped_node_affinity_is_told_with_all_its_values() -> None:
    selector = NodeSelector((NodeSelectorTerm((Requirement(labels.HOSTNAME, "In", ("a", "b")),)),))
    (found,) = _advice(pod("p", "c", affinity=selector))
    assert found.change.detail["values"] == ("a", "b")


@pytest.mark.parametrize(
    ("key", "ports"),
    [(labels.HOSTNAME, ("23456 (of an operator)",)), ("team", None)],
)
def test_without_names_of_nodes_the_host_ports_of_all_pods_are_told(key: str, ports: tuple[str, ...] | None) -> None:
    one, other = HostPort(23456, added="of an operator"), HostPort(80)
    first, second = (
        replace(pod(name, name, node_selector=FrozenMap({key: "a"})), containers=(Container("main", host_ports=found),))
        for name, found in (("p", (one, other)), ("q", (one,)))
    )
    given = snapshot([first, second], [claim("p", gpus()), claim("q", gpus())])
    plan = plan_for(given, _CATALOG, Policy(), NOW)
    asked = Situation.of(first, given, _CATALOG, plan, Policy().where)
    assert asked is not None
    (change,) = node_selectors(replace(asked, pods=(first, second)))
    assert change.detail.get("ports") == ports


@pytest.mark.parametrize(("value", "labelled"), [("x" * 63, True), ("x" * 64, False), ("my node", False)])
def test_no_pool_gives_nodes_a_value_that_no_label_can_have(value: str, labelled: bool) -> None:
    """An API server takes any text as a value of a node affinity, as long as the object may be."""
    selector = NodeSelector((NodeSelectorTerm((Requirement("team", "In", (value,)),)),))
    (found,) = _advice(pod("p", "c", affinity=selector))
    assert found.change.kind is (ChangeKind.ADD_LABELS if labelled else ChangeKind.DROP_NODE_AFFINITY)


@pytest.mark.parametrize(
    ("cloud", "said"),
    [
        ("", ("add foreslice.dev/cloud In [gcp] to spec.requirements", "list training alone in spec.nodePools")),
        ("gcp", ("pool gpu: list training alone in spec.nodePools of a GCPNodeTemplate with its spec.cluster",)),
        ("aws", ("pod default/p: drop nodeSelector cloud.google.com/gke-nodepool=training",)),
    ],
)
def test_a_node_pool_is_listed_by_a_pool_that_buys_in_its_cloud(cloud: str, said: tuple[str, ...]) -> None:
    selecting = pod("p", "c", node_selector=FrozenMap({labels.GKE_NODE_POOL: "training"}))
    requirements = (Requirement(labels.CLOUD, "In", (cloud,)),) if cloud else ()
    (line,) = advice_lines(_advice(selecting, CapacityPool("gpu", requirements=requirements)))
    assert all(text in line for text in said)
    assert "spec.labels" not in line


@pytest.mark.parametrize("team", [{}, {"team": "a"}])
@pytest.mark.parametrize("name", ["NODEPOOL_NAME", "YOUR_NODEPOOL", "Pool"])
def test_a_name_that_no_node_pool_has_is_dropped_and_not_listed(name: str, team: dict[str, str]) -> None:
    selecting = pod("p", "c", node_selector=FrozenMap({labels.GKE_NODE_POOL: name, **team}))
    (line,) = advice_lines(_advice(selecting))
    assert f"drop nodeSelector cloud.google.com/gke-nodepool={name}" in line
    assert "spec.nodePools" not in line
    assert ("team=a in spec.labels" in line) is bool(team)


@pytest.mark.parametrize(
    ("memory", "machine", "told"),
    [("2800Gi", "a3-ultragpu-8g", False), ("2900Gi", "a3-ultragpu-8g", True), ("3500Gi", "a4-highgpu-8g", False)],
)
def test_a_machine_that_is_short_of_an_estimated_amount_by_little_comes_first(
    memory: str, machine: str, *, told: bool
) -> None:
    """The pods were written for the machine that they name: the model of what its node reserves may be wrong."""
    asking = Container("main", FrozenMap({"memory": Quantity.parse(memory)}))
    selector = FrozenMap({labels.GKE_NODE_POOL: "a3-ultragpu-8g-pool"})
    selecting = replace(pod("p", "c", node_selector=selector), containers=(asking,))
    given, policy = snapshot([selecting], [claim("c", gpus(8))]), Policy(considered=1000)
    catalog = shipped("a3-ultragpu-8g", "a4-highgpu-8g")
    found = advise(selecting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    assert [ref.instance_type for ref, _ in found[0].result.launches] == [machine]
    said = "request memory 2900Gi → 2839Gi (container main) (what a3-ultragpu-8g has of memory for pods is an estimate"
    assert (said in advice_lines(found)[0]) is told


@pytest.mark.parametrize(("key", "cloud"), [(labels.GKE_METADATA_SERVER, "gcp"), (labels.KARPENTER_CATEGORY, "aws")])
def test_a_new_pool_stays_in_the_cloud_whose_nodes_alone_have_a_label(key: str, cloud: str) -> None:
    value = {labels.GKE_METADATA_SERVER: "true", labels.KARPENTER_CATEGORY: "g"}[key]
    (line,) = advice_lines(_advice(pod("p", "c", node_selector=FrozenMap({key: value, "example.com/team": "a"}))))
    assert f"foreslice.dev/cloud In [{cloud}] in spec.requirements" in line
    assert "example.com/team=a" in line


@pytest.mark.parametrize("label", ["", "example.com/team"])
def test_beside_a_claim_whose_devices_nobody_predicts(label: str) -> None:
    """The claim counts as met, to find out what else the pod needs; alone it is no change."""
    cached = replace(gpus(), name="model", device_class="cached.example.com")
    selecting = pod("p", "c", "m", node_selector=FrozenMap({label: "a"} if label else {}))
    given = replace(snapshot([selecting], [claim("c", gpus()), claim("m", cached)]), from_files=True)
    policy = Policy(considered=1000)
    found = advise(selecting, given, _CATALOG, plan_for(given, _CATALOG, policy, NOW), policy, NOW, most=1)
    if not label:
        assert found == ()
        return
    (line,) = advice_lines(found)
    assert "(1) pod default/p: describe the driver of DeviceClass cached.example.com" in line
    assert "(tried as if claim default/m fits on every node)" in line
    assert "(2) create a CapacityPool with spec.limits.nodes 1 or more, example.com/team=a in spec.labels and" in line
    assert "and spec.drivers.profiles [nvidia, compute-domain, NAME] → 1 ×" in line


_OWN_DRIVER = """
drivers:
  - name: cache
    driver: cache.example.com
    release: v0.1.0
    deviceClasses: [{name: cache.example.com, selectors: ['device.driver == "cache.example.com"']}]
    devices: [{forEach: node, name: cache, attributes: {id: {string: none}}}]
"""


@pytest.mark.parametrize(("label", "pooled"), [("", False), ("example.com/team", False), ("", True)])
def test_a_driver_of_ones_own_is_listed_beside_those_that_the_pool_would_have(
    label: str, pooled: bool, tmp_path: Path
) -> None:
    (tmp_path / "driver.yaml").write_text(_OWN_DRIVER, encoding="utf-8")
    every = load_catalog(extra_dirs=[tmp_path])
    catalog = replace(every, types=FrozenMap({name: every.types[name] for name in _CATALOG.types}))
    cached = replace(gpus(), name="cache", device_class="cache.example.com")
    selecting = pod("p", "c", "m", node_selector=FrozenMap({label: "a"} if label else {}))
    state, policy = snapshot([selecting], [claim("c", gpus()), claim("m", cached)]), Policy(considered=1000)
    own = DeviceClass("cache.example.com", (Selector('device.driver == "cache.example.com"'),))
    given = replace(state, classes=(*state.classes, own), pools=(CapacityPool("own"),) if pooled else ())
    found = advise(selecting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    (line,) = advice_lines(found)
    if pooled:
        assert line.startswith("pool own: set spec.drivers.profiles to [nvidia, cache] → 1 × ")
        return
    assert "create a CapacityPool with spec.limits.nodes 1 or more" in line
    assert "spec.drivers.profiles [nvidia, cache] → 1 × " in line
    assert ("example.com/team=a in spec.labels" in line) is bool(label)


@pytest.mark.parametrize(
    ("resource", "read"), [("nvidia.com/gpu", False), ("aws.amazon.com/neuron", True)], ids=["inference", "Inferentia"]
)
def test_an_abbreviation_is_a_family_of_machines_only_with_the_devices_that_the_pod_requests(
    resource: str, read: bool
) -> None:
    asking = (Container("main", FrozenMap({resource: Quantity.of(1)})),)
    one = replace(pod("p", node_selector=FrozenMap({"karpenter.sh/nodepool": "inf"})), containers=asking)
    given, catalog, policy = snapshot([one]), shipped("g4dn.xlarge", "inf2.xlarge"), Policy(considered=1000)
    asked = Situation.of(one, given, catalog, plan_for(given, catalog, policy, NOW), policy.where)
    assert asked is not None
    found = machine_meant({"karpenter.sh/nodepool": "inf"}, asked.pools[0], asked)
    assert [one.values for one in found if "family" in one.key] == [("inf2",)] * read
