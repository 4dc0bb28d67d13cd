"""Images that work on some machines only: a plan that chooses from the whole catalog buys one of these."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.lint.other_systems import foreign_advice
from autoscaler.model.capacity import CapacityPool, GroupNodes, Mode, NodeTemplateRef, PodScope, Scope
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.demand.images import accelerators_of_images
from autoscaler.planning.demand.implied_machines import with_implied_selectors
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.unprepared import not_working
from autoscaler.report.tables.plan_summary import summary_of
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21"
CATALOG = shipped("a3-highgpu-8g", "a3-megagpu-8g")
POOL = CapacityPool("any", Mode.ACT, drivers=("nvidia",))


def using(image: str, **fields: object) -> Pod:
    asked = pod("p", "c", **fields)
    return replace(asked, containers=(*asked.containers, Container("daemon", image=image)))


@pytest.mark.parametrize(("image", "type_"), [(IMAGE, "a3-megagpu-8g"), ("registry.example/a:1", "a3-highgpu-8g")])
def test_the_cheapest_on_which_it_works(image: str, type_: str) -> None:
    given = with_implied_selectors(snapshot([using(image)], [claim("c", gpus(count=8))]))
    (node,) = plan_for(given, CATALOG, Policy(), NOW).launches
    assert node.offering.instance_type == type_


def test_who_says_which_machines_there_are_decides() -> None:
    """kube-scheduler takes any of their nodes, so the plan says that the pod does not work there."""
    pooled = snapshot([using(IMAGE)], [claim("c", gpus(count=8))], pools=(POOL,))
    assert with_implied_selectors(pooled) is pooled
    found = plan_for(pooled, CATALOG, Policy(), NOW)
    (warning,) = not_working(pooled, found, CATALOG)
    first = summary_of(replace(found, warnings=(warning,)))[0]
    assert "1 pod placed (1 of them where they do not work: see the warnings), 0 cannot" in first.text
    assert first.level == "warning"
    assert not [one for one in foreign_advice(pooled, CATALOG, found) if "GPUDirect" in one.message]
    assert [one for one in foreign_advice(pooled, CATALOG) if "GPUDirect" in one.message]


@pytest.mark.parametrize("key", [labels.INSTANCE_TYPE, labels.GKE_ACCELERATOR])
def test_a_pod_that_selects_a_machine_keeps_it(key: str) -> None:
    given = snapshot([using(IMAGE, node_selector=FrozenMap({key: "x"}))], [claim("c", gpus(count=8))])
    assert with_implied_selectors(given).pods == given.pods


NEURON = FrozenMap({"aws.amazon.com/neuron": Quantity.of(1)})
NEURONX = "public.ecr.aws/neuron/pytorch-inference-neuronx:2.9.0"


def on_neuron(image: str, **fields: object) -> Pod:
    return replace(pod("p", **fields), containers=(Container("c", NEURON, image=image),))


def proposed(asked: Pod) -> str:
    """The advice for a pod that no pool serves."""
    state, catalog = with_implied_selectors(snapshot([asked])), shipped("inf1.xlarge", "inf2.xlarge")
    plan = plan_for(state, catalog, Policy(), NOW)
    (line,) = advice_lines(advise(state.pods[0], state, catalog, plan, Policy(), NOW, most=1))
    return line


OLD = "public.ecr.aws/neuron/pytorch-inference-neuron:1.13"


@pytest.mark.parametrize("image", [NEURONX, "registry.example/serve:1"])
def test_software_of_today_gets_accelerators_on_which_it_runs(image: str) -> None:
    """The pool that people create keeps to them: the pod itself does not say so."""
    text = proposed(on_neuron(image))
    assert "foreslice.dev/accelerator In [aws-inferentia2, aws-trainium, aws-trainium2] in spec.requirements" in text
    assert text.endswith("→ 1 × inf2.xlarge (on-demand), 0.76 $/h")


def test_software_of_the_time_of_the_accelerator_gets_the_old_one() -> None:
    text = proposed(on_neuron(OLD))
    assert "1 × inf1.xlarge (on-demand), 0.23 $/h; inf1.xlarge needs more: its NeuronCores are of the first" in text
    assert "spec.requirements" not in text


def test_a_group_of_nodes_that_is_named_after_the_old_machines_has_them() -> None:
    text = proposed(on_neuron("registry.example/serve:1", node_selector=FrozenMap({"karpenter.sh/nodepool": "inf1"})))
    assert "1 × inf1.xlarge" in text


@pytest.mark.parametrize(("image", "told"), [(NEURONX, True), (OLD, False), ("registry.example/serve:1", False)])
def test_what_a_pool_gives_and_does_not_run_the_image_is_told(image: str, told: bool) -> None:
    """Also where a node template says what its nodes have: no driver helps the image."""
    template = NodeTemplateRef("AWSNodeTemplate", "neuron")
    pool = CapacityPool("team", Mode.ACT, scope=Scope(pods=PodScope.ALL), node_template=template)
    state = replace(snapshot([on_neuron(image)], pools=(pool,)), from_files=True)
    found = plan_for(state, shipped("inf1.xlarge", "inf2.xlarge"), Policy(), NOW)
    assert [node.offering.instance_type for node in found.launches] == ["inf1.xlarge"]
    warnings = [str(one.detail["problem"]) for one in not_working(state, found, CATALOG)]
    said = f"{NEURONX} does not run on inf1.xlarge, which the pod gets: it needs one of aws-inferentia2, aws-trainium"
    assert [said in text for text in warnings] == [True] * told


def test_a_pod_that_selects_the_old_accelerator_keeps_it() -> None:
    asked = on_neuron(NEURONX, node_selector=FrozenMap({labels.INSTANCE_TYPE: "inf1.xlarge"}))
    text = proposed(asked)
    assert "1 × inf1.xlarge" in text
    assert "spec.requirements" not in text.partition("→")[0]
    assert f"; default/p: spec.containers.image: {NEURONX} does not run on inf1.xlarge" in text


def test_images_name_accelerators_of_the_catalog() -> None:
    keys = {one.accelerator.key for one in load_catalog() if one.accelerator}
    assert set(accelerators_of_images(on_neuron(NEURONX))) < keys
    assert not accelerators_of_images(on_neuron(OLD))
    assert not accelerators_of_images(pod("p"))


@pytest.mark.parametrize(("name", "told"), [("training", True), ("known", False), ("listed", False)])
def test_a_node_pool_of_which_nothing_is_known_is_named(name: str, told: bool) -> None:
    """kube-scheduler takes no node of another one, and nothing is bought in it."""
    key = "cloud.google.com/gke-nodepool"
    listed = GroupNodes(None, FrozenMap({key: "listed"}))
    pools = (replace(POOL, labels=FrozenMap({key: "known"})), replace(POOL, name="other", registers=(listed,)))
    given = snapshot([using(IMAGE, node_selector=FrozenMap({key: name}))], [claim("c", gpus(count=8))], pools=pools)
    found = [one.message for one in foreign_advice(given, CATALOG) if "GPUDirect" in one.message]
    said = f"and selects {key}={name}: no CapacityPool has this label, so a plan buys nothing for it"
    assert [said in text for text in found] == [True] * told


def test_cards_that_are_there_are_on_no_new_machine() -> None:
    """HAMi places a pod that names GPUs by UUID on their node alone; the plan counts it as not working elsewhere."""
    pinned = pod("p", "c", annotations=FrozenMap({labels.HAMI_USE_DEVICE: "GPU-5f0c"}))
    state = snapshot([pinned], [claim("c", gpus())])
    found = plan_for(state, shipped("g4dn.xlarge"), Policy(), NOW)
    (warning,) = not_working(state, found, CATALOG)
    assert "no new machine has them" in str(warning.detail["problem"])
    first = summary_of(replace(found, warnings=(warning,)))[0]
    assert "1 pod placed (1 of them where they do not work: see the warnings)" in first.text
    assert not [one for one in foreign_advice(state, CATALOG, found) if "UUID" in one.message]
