"""NodeSet of Slinky becomes the pods that are nodes of a Slurm cluster."""

from __future__ import annotations

import json
from typing import Any

from autoscaler.manifests.load import Loaded
from tests.unit.manifests.texts import POD, loaded, messages

GPU = "nvidia.com/gpu"
SLURMD = {"image": "slurmd", "resources": {"limits": {GPU: 8}}}


def node_set(**spec: Any) -> Loaded:
    value = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "n"}}
    return loaded(json.dumps({**value, "spec": {"controllerRef": {"name": "c"}, "slurmd": SLURMD, **spec}}))


def names(found: Loaded) -> list[str]:
    assert found.ok, messages(found)
    return [pod.name for pod in found.snapshot.pods]


def test_replicas_are_pods_with_the_fields_of_the_template() -> None:
    side = {"name": "side", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"x": "y"}, "containers": [side]}}
    found = node_set(replicas=2, template=template, partition={"enabled": True})
    assert names(found) == ["n-0", "n-1"]
    pod = found.snapshot.pods[0]
    assert [one.name for one in pod.containers] == ["slurmd", "side"]
    assert (str(pod.containers[0].requests[GPU]), pod.labels["a"], pod.node_selector["x"]) == ("8", "b", "y")
    assert messages(found) == []


def test_the_template_may_say_more_of_slurmd() -> None:
    more = {"name": "slurmd", "resources": {"limits": {GPU: 4}}}
    (container,) = node_set(template={"spec": {"containers": [more]}}).snapshot.pods[0].containers
    assert str(container.requests[GPU]) == "4"


def test_claims_are_made_for_each_pod() -> None:
    claim = {"metadata": {"name": "v"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    found = node_set(volumeClaimTemplates=[claim])
    assert found.snapshot.pods[0].volumes == ("v-n-0",)
    assert "default/v-n-0" in found.snapshot.volume_claims


def test_sets_without_pods_of_their_own_are_said_to_be() -> None:
    assert names(node_set(scalingMode="DaemonSet", replicas=2)) == []
    assert "it has a pod on each node" in messages(node_set(scalingMode="DaemonSet"))[0]
    assert "0: it has no pods now" in messages(node_set(replicas=0))[0]


def test_the_daemons_of_slurm_need_no_accelerator() -> None:
    controller = "apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: c}\n"
    said = "\n".join(messages(loaded(controller, POD)))
    assert "ignored: Slinky makes the pods of a daemon of Slurm of it" in said
