"""A label of another cloud whose value names a GPU: the pod keeps that wish."""

from __future__ import annotations

import re

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.named_models import (
    count_named,
    families_meant,
    families_named,
    renamed_models,
    type_shortened,
)
from autoscaler.advice.pod_changes import node_selectors
from autoscaler.advice.pool_opening import node_labels
from autoscaler.advice.situation import Situation
from autoscaler.lint.pods.card_names import accelerators_named
from autoscaler.model.pod import Container
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advised.listed import advice_document
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

SHIPPED = load_catalog()
SOME = shipped("g4dn.xlarge", "p3.2xlarge", "p4de.24xlarge", "a2-ultragpu-1g")
KEY = "machine.cluster.vke.volcengine.com/gpu-name"


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (KEY, "Tesla-V100", ("nvidia-v100-16gb", "nvidia-v100-32gb")),
        (KEY, "Tesla-A100-80G", ("nvidia-a100-80gb",)),
        ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB", ("nvidia-a100-40gb",)),
        ("gpu-type", "h200", ("nvidia-h200",)),
        ("gpu", "L40S", ("nvidia-l40s",)),
        ("accelerator", "NVIDIA-RTX-PRO-6000", ("nvidia-rtx-pro-6000",)),
        (KEY, "NVIDIA-H20-SXM5-96GB", ()),  # no type has one
        ("rack", "l4", ()),  # says nothing about accelerators
        ("gpu", "true", ()),
        ("gpu-pool", "team-4", ()),
        ("gpu", "8xH200", ("nvidia-h200",)),
        ("gpu", "l40sx4", ("nvidia-l40s",)),
        ("cloud.google.com/gke-nodepool", "gpu-a100x2-a2h2", ("nvidia-a100-40gb", "nvidia-a100-80gb")),
        ("cloud.google.com/gke-nodepool", "pool-a100x2", ("nvidia-a100-40gb", "nvidia-a100-80gb")),
        ("cloud.google.com/gke-nodepool", "a100-80gb-pool", ("nvidia-a100-80gb",)),
        ("cloud.google.com/gke-nodepool", "l4-spot-nodepool", ("nvidia-l4",)),
        ("cloud.google.com/gke-nodepool", "non-h100-pool", ()),
        ("cloud.google.com/compute-class", "h200-ccc", ("nvidia-h200",)),
        ("cloud.google.com/compute-class", "Accelerator", ()),
        ("cloud.google.com/gke-nodepool", "a10g-pool", ()),  # Google Cloud has none
        ("eks.amazonaws.com/nodegroup", "h100-nodes", ("nvidia-h100-80gb",)),
        ("eks.amazonaws.com/nodegroup", "p4-nodes", ()),  # a family of EC2, and no P4 of Google Cloud
        ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", ()),  # a part
        ("gpu", "non-a100", ()),
        ("gpu", "H100-NVL-94GB", ()),  # none has that memory
        ("gpu", "gpu-l4-a100", ()),  # which of them?
        ("node.coreweave.cloud/type", "gd-8xl40s-i128", ("nvidia-l40s",)),  # machines of other clouds
        ("node.coreweave.cloud/type", "gd-8xh200ib-i128", ("nvidia-h200",)),
        ("node.kubernetes.io/instance-type", "BM.GPU.A100-v2.8", ("nvidia-a100-80gb",)),
        ("node.kubernetes.io/instance-type", "BM.GPU4.8", ("nvidia-a100-40gb",)),  # whose name does not say it
        ("node.kubernetes.io/instance-type", "VM.GPU3.2", ("nvidia-v100-16gb",)),
        ("node.kubernetes.io/instance-type", "Standard_ND96asr_v4", ("nvidia-a100-40gb",)),
        ("node.kubernetes.io/instance-type", "Standard_NC24ads_A100_v4", ("nvidia-a100-80gb",)),
        ("node.kubernetes.io/instance-type", "BM.GPU.B300.8", ("nvidia-b300",)),
        ("node.kubernetes.io/instance-type", "Standard_ND96isr_H200_v5", ("nvidia-h200",)),
    ],
)
def test_which_accelerators_a_value_names(key: str, value: str, named: tuple[str, ...]) -> None:
    assert accelerators_named(key, value, SHIPPED) == named


@pytest.mark.parametrize(
    ("key", "value", "families"),
    [
        ("karpenter.sh/nodepool", "inf2", ("inf2",)),
        ("karpenter.sh/nodepool", "amd-neuron-trn1", ("trn1",)),
        ("eks.amazonaws.com/nodegroup", "g5-12xlarge", ("g5",)),
        ("node-group", "P6-B200", ("p6-b200",)),
        ("karpenter.sh/nodepool", "neuron-trn-2", ("trn2",)),
        ("karpenter.sh/nodepool", "trn-22", ()),
        ("karpenter.sh/nodepool", "trn1x", ()),
        ("karpenter.sh/nodepool", "gpu", ()),
        ("rack", "p5", ()),  # says nothing about machines
        ("karpenter.sh/nodepool", "g5-or-g6", ("g5", "g6")),
    ],
)
def test_which_families_the_name_of_a_group_of_nodes_has_in_it(key: str, value: str, families: tuple[str, ...]) -> None:
    assert families_named(key, value, SHIPPED) == families


@pytest.mark.parametrize(
    ("value", "families"),
    [
        ("amd-neuron-trn", ("trn1", "trn1n", "trn2", "trn2u")),
        ("neuron-trn1", ("trn1",)),
        ("inf1-or-inf2", ()),
        ("g5-or-g6", ()),
        ("gpu-p", ()),
    ],
)
def test_which_families_are_meant(value: str, families: tuple[str, ...]) -> None:
    found = families_meant({"karpenter.sh/nodepool": value, "rack": "inf"}, SHIPPED)
    assert set(found) & {"trn1", "trn1n", "trn2", "trn2u", "g5", "g6", "inf1", "inf2"} == set(families)


@pytest.mark.parametrize("value", ["gemma3-inf-nodes", "inf2-pool", "inferentia2-pool"])
def test_no_accelerator_of_another_cloud_is_meant(value: str) -> None:
    """`inf` is short for inference in the name of a ComputeClass of GKE, whose nodes have no Inferentia."""
    catalog = shipped("inf2.xlarge", "g2-standard-4")
    selecting = pod("p", "c", node_selector=FrozenMap({"cloud.google.com/compute-class": value}))
    given, policy = snapshot([selecting], [claim("c", gpus())]), Policy(considered=1000)
    found = advise(selecting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    (line,) = advice_lines(found)
    assert f"foreslice.dev/cloud In [gcp] in spec.requirements and cloud.google.com/compute-class={value}" in line


@pytest.mark.parametrize(
    ("value", "family", "machine"), [("inf2", "[inf2]", "inf2.xlarge"), ("inf1-or-inf2", "", "inf1.xlarge")]
)
def test_a_pool_named_for_one_family_has_its_machines(value: str, family: str, machine: str) -> None:
    catalog = shipped("inf1.xlarge", "inf2.xlarge")
    asking = Container("c", FrozenMap({"aws.amazon.com/neuron": Quantity.of(1)}))
    selecting = replace(pod("p", node_selector=FrozenMap({"karpenter.sh/nodepool": value})), containers=(asking,))
    given, policy = snapshot([selecting], []), Policy(considered=1000)
    found = advise(selecting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    (line,) = advice_lines(found)
    assert (f"karpenter.k8s.aws/instance-family In {family} in spec.requirements" in line) == bool(family)
    assert ("only Karpenter's NodePool says which machines it means" in line) != bool(family)
    assert f"Karpenter serves such pods by its NodePool {value}" in line
    assert [ref.instance_type for ref, _ in found[0].result.launches] == [machine]


def test_a_label_in_other_words_and_a_volume_that_is_not_there_are_one_change() -> None:
    selector = FrozenMap({KEY: "NVIDIA-A100-SXM4-80GB-X"})
    given = snapshot([pod("p", "c", node_selector=selector, volumes=("models",))], [claim("c", gpus())])
    policy = Policy(considered=1000)
    found = advise(given.pods[0], given, SOME, plan_for(given, SOME, policy, NOW), policy, NOW)
    assert [[part.kind for part in entry.change.parts] for entry in found] == [
        [ChangeKind.REWRITE_LABEL, ChangeKind.ADD_VOLUME_CLAIMS]
    ]
    assert [ref.instance_type for ref, _ in found[0].result.launches] == ["a2-ultragpu-1g"]


@pytest.mark.parametrize(
    ("value", "dropped"), [("A10", False), ("A40", False), ("NVIDIA-RTX4090", False), ("gold", True), ("gpu1", True)]
)
def test_a_model_that_the_catalog_lacks_is_not_dropped_for_any_other(value: str, dropped: bool) -> None:
    catalog = shipped("g4dn.xlarge", "g5.xlarge", "p4de.24xlarge")  # A10G is nearest to A10, and dearer than T4
    given = snapshot([pod("p", "c", node_selector=FrozenMap({"gpu.nvidia.com/model": value}))], [claim("c", gpus())])
    asked = Situation.of(given.pods[0], given, catalog, plan_for(given, catalog, Policy(considered=1000), NOW))
    assert asked is not None
    assert any(change.kind is ChangeKind.DROP_NODE_SELECTOR for change in node_selectors(asked)) == dropped


@pytest.mark.parametrize(
    ("key", "value", "labelled"),
    [
        ("cluster.example.com/gpu-name", "NVIDIA-L20", False),
        ("cluster.example.com/gpu-name", "gold", True),
        ("cluster.example.com/group", "gpu-az01", True),
    ],
)
def test_no_pool_is_labelled_with_a_model_that_the_catalog_lacks(key: str, value: str, labelled: bool) -> None:
    given = snapshot([pod("p", "c", node_selector=FrozenMap({key: value}))], [claim("c", gpus())])
    asked = Situation.of(given.pods[0], given, SOME, plan_for(given, SOME, Policy(considered=1000), NOW))
    assert asked is not None
    assert bool(list(node_labels(asked))) is labelled


def test_beside_other_labels_the_nearest_model_is_advised_too() -> None:
    """A node with the label would have another GPU than the label says."""
    selector = FrozenMap({"gpuspecs": "A5000_24GB", "tier": "gpu"})
    catalog = shipped("g4dn.xlarge", "g5.xlarge")
    given = snapshot([pod("p", "c", node_selector=selector)], [claim("c", gpus())])
    policy = Policy(considered=1000)
    (found,) = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    (line,) = advice_lines([found])
    assert "require foreslice.dev/accelerator In [nvidia-a10g], the nearest in the catalog" in line
    assert "1 or more and tier=gpu in spec.labels" in line
    assert "do not say which machines they mean" not in line
    assert [ref.instance_type for ref, _ in found.result.launches] == ["g5.xlarge"]


@pytest.mark.parametrize("other", ["NVIDIA-H20-SXM5-96GB", "gold", ""])
def test_the_model_is_kept_and_the_label_is_not_just_dropped(other: str) -> None:
    """Beside it, the affinity names a model that the catalog lacks or no model at all; or the nodeSelector has it."""
    term = NodeSelectorTerm((Requirement(KEY, "In", ("Tesla-A100-80G", other)),))
    selecting = pod("p", "c", affinity=NodeSelector((term,)))
    if not other:
        selecting = pod("p", "c", node_selector=FrozenMap({KEY: "Tesla-A100-80G"}))
    given = snapshot([selecting], [claim("c", gpus())])
    policy = Policy(considered=1000)
    found = advise(given.pods[0], given, SOME, plan_for(given, SOME, policy, NOW), policy, NOW)
    dropped = {ChangeKind.DROP_NODE_SELECTOR, ChangeKind.DROP_NODE_AFFINITY}
    assert not dropped & {entry.change.kind for entry in found}
    assert "require foreslice.dev/accelerator In [nvidia-a100-80gb] instead of" in "\n".join(advice_lines(found))
    assert {ref.instance_type for entry in found for ref, _ in entry.result.launches} == {"a2-ultragpu-1g"}


@pytest.mark.parametrize(
    ("label", "value", "requirement", "machine"),
    [
        ("cloud.google.com/compute-class", "gpu-a100-80gb-x1", "[nvidia-a100-80gb]", "a2-ultragpu-1g"),
        ("team.example.com/gpu-kind", "v100", "[nvidia-v100-16gb]", "p3.2xlarge"),
    ],
)
def test_a_pool_that_gets_such_a_label_has_such_machines(
    label: str, value: str, requirement: str, machine: str
) -> None:
    other = {"team": "a"} if "example" in label else {}
    given = snapshot([pod("p", "c", node_selector=FrozenMap({label: value, **other}))], [claim("c", gpus())])
    policy = Policy(considered=1000)
    found = advise(given.pods[0], given, SOME, plan_for(given, SOME, policy, NOW), policy, NOW, most=1)
    assert f"foreslice.dev/accelerator In {requirement} in spec.requirements" in advice_lines(found)[0]
    served = f"GKE serves such pods by its ComputeClass {value}: for Foreslice to launch for them"
    assert (served in advice_lines(found)[0]) is ("compute-class" in label)
    assert [ref.instance_type for ref, _ in found[0].result.launches] == [machine]


@pytest.mark.parametrize(
    ("key", "value", "machine"),
    [
        ("cloud.google.com/gke-nodepool", "gpu-l4x2-g2s24-dws", "g2-standard-24"),
        ("cloud.google.com/gke-nodepool", "gpu-a100x2-a2h2", "a2-highgpu-2g"),
        ("cloud.google.com/gke-nodepool", "l4-g2s240", ""),
        ("cloud.google.com/gke-nodepool", "g2s24-or-g2s48", ""),
        ("rack", "g2s24", ""),  # says nothing about machines
    ],
)
def test_which_type_the_name_of_a_group_of_nodes_shortens(key: str, value: str, machine: str) -> None:
    assert type_shortened(key, value, SHIPPED) == machine


@pytest.mark.parametrize(
    ("value", "count"),
    [("gpu-l4x2-g2s24", "2"), ("8xH100", "8"), ("gpu-l4", ""), ("l4x2-or-l4x4", ""), ("l4x2-2xl4", "2")],
)
def test_how_many_accelerators_a_value_names(value: str, count: str) -> None:
    assert count_named(value) == count


@pytest.mark.parametrize(
    ("value", "requirement", "machine"),
    [
        ("gpu-l4x2-g2s24-dws", "node.kubernetes.io/instance-type In [g2-standard-24]", "g2-standard-24"),
        ("gpu-l4x2", "cloud.google.com/gke-accelerator-count In [2]", "g2-standard-24"),
        ("gpu-l4x3", "foreslice.dev/accelerator In [nvidia-l4]", "g2-standard-4"),  # no machine has three
    ],
)
def test_the_name_of_a_node_pool_says_how_many_accelerators_it_has(value: str, requirement: str, machine: str) -> None:
    selector = FrozenMap({"cloud.google.com/gke-nodepool": value})
    catalog = shipped("g2-standard-4", "g2-standard-24", "g2-standard-48")
    given = snapshot([pod("p", "c", node_selector=selector)], [claim("c", gpus())])
    policy = Policy(considered=1000)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    (line,) = advice_lines(found)
    assert f"{requirement} in spec.requirements" in line
    assert ("accelerator-count" in line) is ("accelerator-count" in requirement)
    assert [ref.instance_type for ref, _ in found[0].result.launches] == [machine]
    assert line.endswith(
        f"; the machine is read from the name {value}; only that node pool says which one it has and how it is paid "
        "for, so check it"
    )


@pytest.mark.parametrize(("value", "guessed"), [("training", True), ("gpu-a100x1", False)])
def test_a_node_pool_of_gke_is_named_by_people(value: str, guessed: bool) -> None:
    selector = FrozenMap({"cloud.google.com/gke-nodepool": value})
    given, catalog = snapshot([pod("p", "c", node_selector=selector)], [claim("c", gpus())]), shipped("a2-ultragpu-1g")
    policy = Policy(considered=1000)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    assert f"{value} alone in spec.nodePools of a GCPNodeTemplate" in advice_lines(found)[0]
    assert "spec.labels" not in advice_lines(found)[0]
    assert ("only that node pool says which machines it has: put its" in advice_lines(found)[0]) is guessed
    assert ("is read from the name" in advice_lines(found)[0]) is not guessed
    assert [ref.instance_type for ref, _ in found[0].result.launches] == ["a2-ultragpu-1g"]


def _affinity(*terms: tuple[Requirement, ...]) -> NodeSelector:
    return NodeSelector(tuple(map(NodeSelectorTerm, terms)))


@pytest.mark.parametrize(
    ("affinity", "accelerators"),
    [
        pytest.param(
            _affinity(
                (Requirement(KEY, "In", ("Tesla-T4", "Tesla-A100-80G")), Requirement(KEY, "NotIn", ("Tesla-T4",)))
            ),
            [],
            id="some are excluded as well",
        ),
        pytest.param(_affinity((Requirement(KEY, "NotIn", ("Tesla-T4",)),)), [], id="only excluded"),
        pytest.param(
            _affinity((Requirement(KEY, "In", ("Tesla-A100-80G",)),), (Requirement(KEY, "In", ("Tesla-T4",)),)),
            [("nvidia-a100-80gb", "nvidia-t4")],
            id="each alternative keeps its own",
        ),
        pytest.param(
            _affinity((Requirement(KEY, "In", ("Tesla-A100-80G",)),), (Requirement(KEY, "In", ("H20",)),)),
            [],
            id="an alternative would be lost",
        ),
    ],
)
def test_nothing_that_the_affinity_says_is_lost(affinity: NodeSelector, accelerators: list[tuple[str, ...]]) -> None:
    given = snapshot([pod("p", "c", affinity=affinity)], [claim("c", gpus())])
    asked = Situation.of(given.pods[0], given, SOME, plan_for(given, SOME, Policy(considered=1000), NOW))
    found = list(renamed_models(asked)) if asked else []
    assert [change.detail["accelerators"] for change in found] == accelerators
    for change in found:
        after = change.edit(given).pods[0].affinity
        assert after is not None
        assert [[r.values for r in term.match_expressions] for term in after.terms] == [
            [("nvidia-a100-80gb",)],
            [("nvidia-t4",)],
        ]


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"accelerator": "gpu-l4", "team": "a"}, id="a label of one's own"),
        pytest.param({"x.example.com/gpu": "A100-80GB", "y.example.com/gpu": "T4"}, id="two models"),
    ],
)
def test_who_names_a_model_that_cannot_serve_gets_no_other(selector: dict[str, str]) -> None:
    """Sixteen L4 are on no machine: neither is the label dropped, nor what it says about the pool taken back."""
    catalog = shipped("g6.48xlarge", "g4dn.xlarge", "a2-megagpu-16g", "a2-ultragpu-8g")
    given = snapshot([pod("p", "c", node_selector=FrozenMap(selector))], [claim("c", gpus(16))])
    policy = Policy(considered=1000)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    machines = {ref.instance_type for entry in found for ref, _ in entry.result.launches}
    parts = [part.kind for entry in found for part in entry.change.steps]
    assert ChangeKind.DROP_REQUIREMENT not in parts
    assert machines <= ({"g6.48xlarge"} if "team" in selector else {"a2-megagpu-16g"})


@pytest.mark.parametrize("written", ["NVIDIA-H100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3-SHARED"])
def test_a_product_is_written_as_feature_discovery_writes_it(written: str) -> None:
    """People write the form factor, and the label has the memory; nodes of a plan share no GPU."""
    key = "nvidia.com/gpu.product"
    selecting = pod("p", "c", node_selector=FrozenMap({key: written}))
    given, policy = snapshot([selecting], [claim("c", gpus())]), Policy(considered=100)
    catalog = shipped("p5.4xlarge", "g6.xlarge")
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert f"write NVIDIA-H100-80GB-HBM3 instead of {written} for nvidia.com/gpu.product" in (advice_lines(found)[0])


@pytest.mark.parametrize(
    ("written", "machines", "differs"),
    [
        ("Tesla-V100-PCIE-32GB", ["p3.2xlarge", "p3dn.24xlarge"], "; the GPU has 16GB of memory instead of 32GB"),
        ("Tesla-V100-PCIE-16GB", ["p3.2xlarge"], ""),
        ("Tesla-V100-PCIE-24GB", ["p3.2xlarge", "p3dn.24xlarge"], "; the GPU has 16GB of memory instead of 24GB"),
    ],
)
def test_a_product_with_another_memory_is_shown_where_it_is_cheaper(
    written: str, machines: list[str], differs: str
) -> None:
    selecting = pod("p", "c", node_selector=FrozenMap({"nvidia.com/gpu.product": written}))
    given, policy = snapshot([selecting], [claim("c", gpus())]), Policy(considered=100)
    catalog = shipped("p3.2xlarge", "p3dn.24xlarge")
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    (line,) = advice_lines(found)
    assert re.findall(r"1 × (\S+)", line) == machines
    assert (differs or "/h") in line
    assert len(advice_document(found)) == len(machines)


def test_no_pool_of_ours_gets_the_label_of_another_cloud() -> None:
    """It would put the label on any machine; the GPU that the value names is selected, with the CPUs that such have."""
    term = NodeSelectorTerm((Requirement("node.coreweave.cloud/type", "In", ("gd-8xa100-i128",)),))
    wanting = pod("p", "c", cpu="112", affinity=NodeSelector((term,)))
    given = snapshot([wanting], [claim("c", gpus(8))])
    types = shipped("p4d.24xlarge", "g6e.48xlarge")
    policy = Policy(considered=1000)
    plan = plan_for(given, types, policy, NOW)
    asked = Situation.of(wanting, given, types, plan)
    assert asked is not None
    assert not list(node_labels(asked))
    (line,) = advice_lines(advise(wanting, given, types, plan, policy, NOW, most=1))
    assert "require foreslice.dev/accelerator In [nvidia-a100-40gb] instead of node.coreweave.cloud/type" in line
    assert "request cpu 112 → 95" in line
    assert "1 × p4d.24xlarge" in line
