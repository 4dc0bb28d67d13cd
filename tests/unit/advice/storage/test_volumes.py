"""Volumes that files lack are one obstacle of several: what stands before them does not hide the change."""

from __future__ import annotations

import re

import pytest
import yaml

from autoscaler.advice.advise import advise
from autoscaler.kube.problem import Problems
from autoscaler.kube.storage import parse_storage_class
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import PodAffinityTerm
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import CLUSTER_DEFAULT, PersistentVolumeClaim, StorageClass, VolumeBindingMode
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

ANYWHERE = Where()
CATALOG = shipped("g4dn.xlarge")
CLASS = (
    "give StorageClass gp3 with -f (`kubectl get sc -o yaml`; tried with a volume that every zone of aws serves, "
    "because the name gp3 means its storage: the real one decides zone and so the price)"
)
EXAMPLE = (
    "; without a cluster to read it from, one such as {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: "
    "{name: gp3}, provisioner: ebs.csi.aws.com, volumeBindingMode: WaitForFirstConsumer}"
)
BOUGHT = "→ 1 × g4dn.xlarge (on-demand), 0.53 $/h"


def advice(given: Snapshot, catalog: Catalog = CATALOG, where: Where = ANYWHERE) -> list[str]:
    policy = Policy(considered=10_000, where=where)
    found = plan_for(given, catalog, policy, NOW)
    lines = advice_lines(advise(given.pods[0], given, catalog, found, policy, NOW, most=1))
    return [re.split("; (?:without it, )?the pod names no GPU", line)[0] for line in lines]


def of_class(found: StorageClass, selector: dict[str, str] | None = None, *modes: str) -> Snapshot:
    """A pod whose PersistentVolumeClaim names the StorageClass."""
    waiting = pod("p", "c", node_selector=FrozenMap(selector or {}), volumes=("models",))
    given = snapshot([waiting], [claim("c", gpus())])
    models = PersistentVolumeClaim("default", "models", storage_class=found.name, access_modes=modes)
    classes = FrozenMap({found.name: found})
    return replace(given, volume_claims=FrozenMap({models.key: models}), storage_classes=classes)


def of_unknown_class(selector: dict[str, str], *modes: str, name: str = "gp3") -> Snapshot:
    """The same with a StorageClass that the files lack."""
    return of_class(StorageClass(name, VolumeBindingMode.UNKNOWN), selector, *modes)


def test_a_class_that_the_files_lack_is_the_change() -> None:
    assert advice(of_unknown_class({})) == [f"{CLASS} {BOUGHT}{EXAMPLE}"]


def test_a_class_behind_a_label_is_found_with_it() -> None:
    (line,) = advice(of_unknown_class({"accelerator": "nvidia"}))
    assert line.startswith(
        "(1) create a CapacityPool with spec.limits.nodes 1 or more, foreslice.dev/cloud In [aws] in "
        f"spec.requirements and accelerator=nvidia in spec.labels; (2) {CLASS} {BOUGHT}"
    )


def test_a_volume_behind_a_label_that_has_to_be_dropped_is_found_with_it() -> None:
    """A label of NVIDIA's domain is none that people give, so no pool can have it."""
    wanted = NodeSelector((NodeSelectorTerm((Requirement("gpu.nvidia.com/vram", "In", ("8",)),)),))
    given = snapshot([pod("p", "c", affinity=wanted, volumes=("models",))], [claim("c", gpus())])
    assert advice(given) == [
        "pod default/p: drop the node affinity on gpu.nvidia.com/vram and create PersistentVolumeClaim default/models "
        "(give it with its StorageClass of volumeBindingMode WaitForFirstConsumer, or bound with its PersistentVolume: "
        "`kubectl get pvc,pv,sc -o yaml`; "
        f"tried with a volume that every zone serves: the real one decides cloud, zone and so the price) {BOUGHT}"
    ]


def test_no_machine_helps_the_second_pod_of_a_volume_for_one() -> None:
    """A plan with a change leaves out the pod that has the volume, so every change would seem to help."""
    given = snapshot([pod(name, name, volumes=("models",)) for name in "pq"], [claim(name, gpus()) for name in "pq"])
    models = PersistentVolumeClaim("default", "models", storage_class="gp2", access_modes=("ReadWriteOncePod",))
    state = replace(
        given,
        volume_claims=FrozenMap({models.key: models}),
        storage_classes=FrozenMap(
            {"gp2": StorageClass("gp2", VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, provisioner="ebs.csi.aws.com")}
        ),
    )
    policy = Policy(considered=10_000)
    found = plan_for(state, CATALOG, policy, NOW)
    (left,) = found.left_out
    assert "is for one pod (ReadWriteOncePod) and another has it: give each pod" in text_of(left.reasons[0])
    assert advise(state.pods[1], state, CATALOG, found, policy, NOW) == ()


BOTH = shipped("g4dn.xlarge", "n1-standard-2+1xnvidia-tesla-t4")


@pytest.mark.parametrize(
    ("name", "where", "machine", "said"),
    [
        ("gp3", ANYWHERE, "g4dn.xlarge", "every zone of aws serves, because the name gp3 means its storage"),
        ("efs-sc", ANYWHERE, "g4dn.xlarge", "every zone of aws serves, because the name efs-sc means its storage"),
        ("fast", ANYWHERE, "n1-standard-2", "every zone serves: the real one decides cloud, zone and so the price"),
        ("fast", Where(clouds=("aws",)), "g4dn.xlarge", "every zone of aws serves: the real one decides zone and so"),
        # What the command line says counts: the class may be copied from elsewhere.
        ("gp3", Where(clouds=("gcp",)), "n1-standard-2", "every zone of gcp serves: the real one decides zone and so"),
    ],
)
def test_the_cloud_that_the_name_of_a_class_means(name: str, where: Where, machine: str, said: str) -> None:
    (line,) = advice(of_unknown_class({}, name=name), BOTH, where)
    assert f"tried with a volume that {said}" in line
    assert f"→ 1 × {machine}" in line


def test_the_cloud_that_the_name_of_a_claim_means() -> None:
    given = snapshot([pod("p", "c", volumes=("efs-claim-2",))], [claim("c", gpus())])
    (line,) = advice(given, BOTH)
    assert "of aws serves, because the name efs-claim-2 means its storage" in line
    assert "→ 1 × g4dn.xlarge" in line


def test_names_of_two_clouds_say_nothing() -> None:
    given = snapshot([pod("p", "c", volumes=("efs-claim", "filestore"))], [claim("c", gpus())])
    assert "every zone serves: the real one decides cloud" in advice(given, BOTH)[0]


@pytest.mark.parametrize(
    ("name", "mode"), [("gp3", "ReadWriteOnce"), ("efs-sc", "ReadWriteMany"), (CLUSTER_DEFAULT, "ReadWriteOnce")]
)
def test_the_class_that_is_shown_gives_the_plan(name: str, mode: str) -> None:
    given = of_unknown_class({}, mode, name=name)
    (line,) = advice(given)
    shown = yaml.safe_load(line[line.index("{apiVersion") :])
    problems = Problems()
    written = parse_storage_class(shown, problems)
    assert not list(problems)
    assert written.default == (name == CLUSTER_DEFAULT)
    assert written.provisioner == ("efs.csi.aws.com" if mode == "ReadWriteMany" else "ebs.csi.aws.com")
    found = plan_for(replace(given, storage_classes=FrozenMap({name: written})), CATALOG, Policy(), NOW)
    assert [node.offering.instance_type for node in found.launches] == ["g4dn.xlarge"]


def test_a_class_that_binds_at_once_is_told_to_wait() -> None:
    given = replace(of_class(StorageClass("fast", provisioner="ebs.csi.aws.com")), from_files=True)
    assert advice(given) == [
        "use a StorageClass with volumeBindingMode: WaitForFirstConsumer instead of fast (one that exists cannot be "
        f"changed), or give the bound claim with its PersistentVolume (`kubectl get pvc,pv -o yaml`) {BOUGHT}"
    ]


def test_a_class_that_makes_no_volumes_does_not_help_by_waiting() -> None:
    given = replace(of_class(StorageClass("own", provisioner="kubernetes.io/no-provisioner")), from_files=True)
    assert advice(given) == []


def test_a_volume_behind_two_conditions_is_found_with_both() -> None:
    terms = [Requirement(key, "In", ("8",)) for key in ("gpu.nvidia.com/vram", "gpu.nvidia.com/count")]
    wanted = NodeSelector((NodeSelectorTerm(tuple(terms)),))
    given = snapshot([pod("p", "c", affinity=wanted, volumes=("models",))], [claim("c", gpus())])
    (line,) = advice(given)
    assert line.startswith("pod default/p: create PersistentVolumeClaim default/models (")
    assert all(f"drop the node affinity on {term.key}" in line for term in terms)


@pytest.mark.parametrize("volumes", [(), ("models",)])
def test_pods_that_affinity_wants_and_the_files_lack_are_part_of_the_change(volumes: tuple[str, ...]) -> None:
    term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("server",)),)), labels.HOSTNAME, ("default",))
    waiting = pod("p", "c", pod_affinity=(term,), volumes=volumes)
    given = replace(snapshot([waiting], [claim("c", gpus())]), from_files=True)
    (line,) = advice(given)
    assert line.endswith(
        "give the pod with app=server in namespace default with -f, which required pod affinity over "
        f"kubernetes.io/hostname wants and no file has, or drop that term (tried without it) {BOUGHT}"
    )
    assert ("create PersistentVolumeClaim default/models" in line) is bool(volumes)
    there = pod("other", labels=FrozenMap({"app": "server"}), node_name="elsewhere", phase="Running")
    assert "give the pod" not in "".join(advice(replace(given, pods=(waiting, there))))


@pytest.mark.parametrize(
    ("pci_class", "written"), [("0300", "where an NVIDIA GPU is a display controller"), ("0302", "a 3D controller")]
)
def test_a_missing_claim_behind_a_label_of_people_and_one_that_no_node_has(pci_class: str, written: str) -> None:
    """None of the three changes helps alone, and no two of them."""
    key = f"feature.node.kubernetes.io/pci-{pci_class}_10de.present"
    selector = FrozenMap({key: "true", "gpu-worker": "true"})
    waiting = pod("p", "c", node_selector=selector, volumes=("models",))
    (line,) = advice(replace(snapshot([waiting], [claim("c", gpus())]), from_files=True))
    assert "create PersistentVolumeClaim default/models" in line
    assert f"and drop nodeSelector {key}=true" in line
    assert "create a CapacityPool with spec.limits.nodes 1 or more and gpu-worker=true in spec.labels" in line
    assert f"Node Feature Discovery writes {key} " in line
    assert written in line
