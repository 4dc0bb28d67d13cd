"""Changes of two workloads that contradict each other in one pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from autoscaler.advice.pod_changes import node_selectors
from autoscaler.advice.situation import Situation
from autoscaler.advice.together import like_before
from autoscaler.advice.trial import Budget, Replanner
from autoscaler.cli.main import foreslice
from autoscaler.model.capacity import CapacityPool
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.frozen_map import FrozenMap
from tests.builders import CATALOG, NOW, claim, pod, snapshot
from tests.one_line_advice import change_text

POOL = {
    "apiVersion": "foreslice.dev/v1alpha1",
    "kind": "CapacityPool",
    "metadata": {"name": "gpu"},
    "spec": {
        "limits": {"nodes": 10},
        "drivers": {"profiles": ["nvidia"]},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge"]}],
    },
}


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/a:1",
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    selector = {"matchLabels": {"app": name}}
    metadata = {"name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"selector": selector, "template": template},
    }


def told(tmp_path: Path, *objects: dict[str, Any]) -> str:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    output = CliRunner().invoke(foreslice, ["plan", "-f", str(path)], catch_exceptions=False).output
    return " ".join(output.partition("Smallest change")[2].split())


@pytest.mark.parametrize(("label", "contested"), [("team", True), ("disk", False)])
def test_a_label_that_both_need_is_given_in_a_copy_of_the_pool(label: str, contested: bool, tmp_path: Path) -> None:
    first, second = deployment("a", nodeSelector={"team": "a"}), deployment("b", nodeSelector={label: "b"})
    text = told(tmp_path, POOL, first, second)
    assert "default/a-0: pool gpu: add team=a to spec.labels → 1 × g6.xlarge" in text
    where = "a copy of pool gpu, which itself changes for default/a-0" if contested else "pool gpu"
    assert f"default/b-0: {where}: add {label}=b to spec.labels → 1 × g6.xlarge" in text


def test_workloads_that_name_a_node_each_lose_nothing_where_they_get_a_node_each(tmp_path: Path) -> None:
    machine = {"node.kubernetes.io/instance-type": "g6.xlarge"}  # one GPU: no two pods share it
    first, second = (
        deployment(name, nodeSelector={"kubernetes.io/hostname": f"host-{name}", **machine}) for name in ("a", "b")
    )
    text = told(tmp_path, first, second)
    assert "drop nodeSelector kubernetes.io/hostname=host-a or host-b" in text
    assert "→ 2 × g6.xlarge" in text
    assert "the pods named" not in text
    first["spec"]["replicas"] = 2
    assert "the pods named 2 nodes and get 3 here" in told(tmp_path, first, second)


def jobset(topology: str, pods: int = 1, *, exclusive: bool = True) -> dict[str, Any]:
    """Two child Jobs, each of which keeps the other out of its node pool."""
    chips = {"name": "main", "image": "registry.example/a:1", "resources": {"limits": {"google.com/tpu": 4}}}
    selector = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice",
        "cloud.google.com/gke-tpu-topology": topology,
        "cloud.google.com/gke-spot": "true",
    }
    template = {"spec": {"nodeSelector": selector, "containers": [chips]}}
    job = {"spec": {"parallelism": pods, "completions": pods, "template": template}}
    key = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "two", "annotations": key if exclusive else {}},
        "spec": {"replicatedJobs": [{"name": "slice", "replicas": 2, "template": job}]},
    }


def test_ignored_pods_that_each_need_a_node_pool_of_their_own_get_one_each(tmp_path: Path) -> None:
    text = told(tmp_path, jobset("2x2x1"))
    for name, node_pool in (("two-slice-0-0", "NAME"), ("two-slice-1-0", "NAME-2")):
        _, found, change = text.partition(f"default/{name}: create a CapacityPool with ")
        assert found
        change, _, result = change.partition(" → ")
        assert "spec.scope.pods All" in change
        assert "spec.capacityTypes [on-demand,spot]" in change
        assert f"{node_pool} alone in spec.nodePools of a GCPNodeTemplate" in change
        assert result.startswith("1 × ct5p-hightpu-4t (spot)")
        assert f"note: {node_pool} is a node pool of such machines that no other pool lists" in result
    assert "would have no place" not in text


def test_a_pool_that_is_there_is_one_node_pool_and_its_copy_another(tmp_path: Path) -> None:
    pool = {**POOL, "spec": {"limits": {"nodes": 4}, "scope": {"pods": "All"}}}
    text = told(tmp_path, pool, jobset("2x2x1"))
    assert "default/two-slice-0-0: pool gpu: add spot to spec.capacityTypes" in text
    assert "a copy of pool gpu, which itself changes for default/two-slice-0-0: add spot" in text
    assert text.count("list NAME alone in spec.nodePools") == 1
    assert text.count("list NAME-2 alone in spec.nodePools") == 1


@pytest.mark.parametrize(("topology", "pods", "exclusive"), [("2x2x2", 2, True), ("2x2x1", 1, False)])
def test_slices_of_several_hosts_and_pods_that_may_share_need_no_node_pool_by_name(
    topology: str, pods: int, exclusive: bool, tmp_path: Path
) -> None:
    """A TPU slice of several hosts is a node pool by itself."""
    text = told(tmp_path, jobset(topology, pods, exclusive=exclusive))
    assert f"→ {2 * pods} × ct5p-hightpu-4t (spot)" in text
    assert "NAME" not in text


@pytest.mark.parametrize("pools", [[], [POOL]])
def test_the_first_pool_ends_the_offer_of_the_whole_catalog(pools: list[dict[str, Any]], tmp_path: Path) -> None:
    text = told(tmp_path, *pools, deployment("a"), deployment("b", nodeSelector={"team": "b"}))
    assert ("the whole catalog is no longer on offer: give the pods that have a place now" in text) == (not pools)


POLICY = Policy(considered=10_000)


@pytest.mark.parametrize("key", ["team", "tier"])
def test_what_helped_one_workload_is_made_for_another_that_selects_another_value(key: str) -> None:
    first = pod("a", "c", node_selector=FrozenMap({"team": "mars"}))
    second = pod("b", "d", node_selector=FrozenMap({key: "venus"}))
    state = snapshot([first, second], [claim("c"), claim("d")], pools=[CapacityPool("gpu")])
    plan = plan_for(state, CATALOG, POLICY, NOW)
    asked, other = (Situation.of(one, state, CATALOG, plan) for one in (first, second))
    assert asked is not None
    assert other is not None
    earlier = next(node_selectors(asked))
    budget = Budget()
    found = like_before(earlier, Replanner(other, POLICY, NOW), budget)
    if key == "team":
        assert found is not None
        assert change_text(found.change) == "pod default/b: drop nodeSelector team=venus"
        assert budget.spent == 1
    else:
        assert found is None
        assert budget.spent == 0


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


@pytest.mark.parametrize(("affinity", "nodes"), [({}, 1), (APART, 4)])
def test_workloads_with_equal_needs_have_one_change_and_its_total(
    affinity: dict[str, Any], nodes: int, tmp_path: Path
) -> None:
    volumes = [{"name": "m", "persistentVolumeClaim": {"claimName": "m"}}]
    spec = {"nodeSelector": {"team": "a"}, "affinity": affinity, "volumes": volumes}
    text = told(tmp_path, *(deployment(name, **spec) for name in ("a", "b", "c", "d")))
    head, _, rest = text.partition("default/a-0 and 3 more: ")
    assert head == "that places it "
    assert f"create a CapacityPool with spec.limits.nodes {nodes} or more and team=a in spec.labels" in rest
    assert rest.count("create PersistentVolumeClaim default/m ") == 1
    assert f"→ {nodes} × n1-standard-" in rest
    assert "default/b-0" not in rest


def test_workloads_that_need_a_change_of_other_values_have_it_together(tmp_path: Path) -> None:
    hosts = (deployment(name, nodeSelector={"kubernetes.io/hostname": name}) for name in ("a", "b"))
    text = told(tmp_path, *hosts)
    assert (
        "default/a-0 and 1 more: pod default/a-0 and 1 more: drop nodeSelector kubernetes.io/hostname=a or b →" in text
    )
    assert text.count("→") == 1


def test_every_pod_without_a_place_is_counted(tmp_path: Path) -> None:
    """Three searches are made: pods with other needs are told that nothing was tried for them."""
    text = told(tmp_path, *(deployment(name, nodeSelector={f"team-{name}": "x"}) for name in "abcde"))
    assert text.count("→") == 3
    assert "default/d-0 and 1 more: no change was tried for them; `foreslice explain default/d-0` tries some" in text


def test_a_missing_volume_claim_hides_no_further_obstacle(tmp_path: Path) -> None:
    """Its claim and the root disk are two things that the pod lacks; neither alone places it."""
    found = deployment(
        "a",
        nodeSelector={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        volumes=[{"name": "m", "persistentVolumeClaim": {"claimName": "m"}}],
    )
    found["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "100Gi"
    text = told(tmp_path, found)
    assert "create PersistentVolumeClaim default/m (" in text
    assert "(2) give a2-ultragpu-1g a root disk of 210Gi or more" in text
    assert "→ 1 × a2-ultragpu-1g" in text


def test_missing_volume_claims_bring_no_change_that_is_not_needed(tmp_path: Path) -> None:
    """Two claims are missing and the GPU has another name: spot capacity has nothing to do with that."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("m", "o")]
    text = told(tmp_path, deployment("a", nodeSelector={"accelerator": "a30"}, volumes=volumes))
    assert "create PersistentVolumeClaim default/m, default/o (" in text
    assert "require foreslice.dev/accelerator In [nvidia-a10g, nvidia-l4], the nearest in the catalog" in text
    assert "spot" not in text


def test_a_node_pool_of_spot_machines_without_a_price_stays_one_of_spot(tmp_path: Path) -> None:
    """The price on demand is another one: what is missing is that of spot."""
    found = deployment("a", nodeSelector={"cloud.google.com/gke-nodepool": "np-tpu7x-spot"})
    found["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": 4}}
    text = told(tmp_path, found)
    assert "spec.capacityTypes [spot] and np-tpu7x-spot alone in spec.nodePools" in text
    assert "price.spot=DOLLARS" in text
    assert "→ 1 × tpu7x-standard-4t (spot), no price known" in text
