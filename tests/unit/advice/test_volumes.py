"""Volumes that files lack are one obstacle of several: what stands before them does not hide the change."""

from __future__ import annotations

from autoscaler.advice.advise import advise
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import DELAYED, UNKNOWN_BINDING, PersistentVolumeClaim, StorageClass
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advice_text import advice_lines
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot

CATALOG = shipped("g4dn.xlarge")
CLASS = "give StorageClass gp3 with -f (tried with one that every zone serves)"
BOUGHT = "→ 1 × g4dn.xlarge (on-demand), 0.53 $/h"


def advice(given: Snapshot) -> list[str]:
    policy = Policy(considered=10_000)
    found = plan_for(given, CATALOG, policy, NOW)
    return advice_lines(advise(given.pods[0], given, CATALOG, found, policy, NOW, most=1))


def of_unknown_class(selector: dict[str, str]) -> Snapshot:
    """A pod whose PersistentVolumeClaim names a StorageClass that the files lack."""
    waiting = pod("p", "c", node_selector=FrozenMap(selector), volumes=("models",))
    given = snapshot([waiting], [claim("c", gpus())])
    models = PersistentVolumeClaim("default", "models", storage_class="gp3")
    return replace(
        given,
        volume_claims=FrozenMap({models.key: models}),
        storage_classes=FrozenMap({"gp3": StorageClass("gp3", UNKNOWN_BINDING)}),
    )


def test_a_class_that_the_files_lack_is_the_change() -> None:
    assert advice(of_unknown_class({})) == [f"{CLASS} {BOUGHT}"]


def test_a_class_behind_a_label_is_found_with_it() -> None:
    (line,) = advice(of_unknown_class({"accelerator": "nvidia"}))
    assert line.startswith(
        "(1) create a CapacityPool with spec.limits.nodes 1 or more and accelerator=nvidia in spec.labels; "
        f"(2) {CLASS} {BOUGHT}"
    )


def test_a_volume_behind_a_label_that_has_to_be_dropped_is_found_with_it() -> None:
    """A label of NVIDIA's domain is none that people give, so no pool can have it."""
    wanted = NodeSelector((NodeSelectorTerm((Requirement("gpu.nvidia.com/vram", "In", ("8",)),)),))
    given = snapshot([pod("p", "c", affinity=wanted, volumes=("models",))], [claim("c", gpus())])
    assert advice(given) == [
        "pod default/p: drop the node affinity on gpu.nvidia.com/vram and create PersistentVolumeClaim default/models "
        "(give it with its StorageClass, or bound with its PersistentVolume: `kubectl get pvc,pv,sc -o yaml`; "
        f"tried with one that every zone serves) {BOUGHT}"
    ]


def test_no_machine_helps_the_second_pod_of_a_volume_for_one() -> None:
    """A plan with a change leaves out the pod that has the volume, so every change would seem to help."""
    given = snapshot([pod(name, name, volumes=("models",)) for name in "pq"], [claim(name, gpus()) for name in "pq"])
    models = PersistentVolumeClaim("default", "models", storage_class="gp2", access_modes=("ReadWriteOncePod",))
    state = replace(
        given,
        volume_claims=FrozenMap({models.key: models}),
        storage_classes=FrozenMap({"gp2": StorageClass("gp2", DELAYED, provisioner="ebs.csi.aws.com")}),
    )
    policy = Policy(considered=10_000)
    found = plan_for(state, CATALOG, policy, NOW)
    (left,) = found.left_out
    assert "is for one pod (ReadWriteOncePod) and another has it: give each pod" in text_of(left.reasons[0])
    assert advise(state.pods[1], state, CATALOG, found, policy, NOW) == ()
