"""StorageClasses that files name and do not contain: those of clouds wait for pods, of others the answer is open."""

from __future__ import annotations

import pytest

from autoscaler.model.reason import Code
from autoscaler.model.storage import VolumeBindingMode
from autoscaler.report.reasons import text_of
from tests.builders import plan
from tests.unit.manifests.texts import CLAIM, POD, changed, loaded

VOLUME = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], NAMED resources: {requests: {storage: 1Gi}}}
"""
OWN = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: own, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com
volumeBindingMode: MODE
"""
WITH_VOLUME = changed(
    POD, "  containers:", "  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n  containers:"
)


def naming(name: str | None) -> str:
    return VOLUME.replace("NAMED", "" if name is None else f'storageClassName: "{name}",')


def answer(*texts: str) -> tuple[str, frozenset[Code], str]:
    """Verdict ("fits" for a pod with a node), codes of the reasons and their text."""
    found = plan(loaded(WITH_VOLUME, CLAIM, *texts).snapshot)
    if not found.left_out:
        assert len(found.placements) == 1
        return "fits", frozenset(), ""
    (entry,) = found.left_out
    reasons = [*entry.reasons, *(miss.reason for miss in entry.near_misses)]
    return entry.verdict, frozenset(r.code for r in reasons), " ".join(map(text_of, reasons))


@pytest.mark.parametrize("name", ["gp2", "standard-rwo", "premium-rwo"])
def test_classes_of_eks_and_gke_wait_for_pods(name: str) -> None:
    assert loaded(naming(name)).snapshot.storage_classes[name].binding_mode == VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER
    assert answer(naming(name))[0] == "fits"


@pytest.mark.parametrize("name", ["gp3", "standard", None])
def test_of_other_classes_it_is_open(name: str | None) -> None:
    (missing,) = loaded(naming(name)).snapshot.storage_classes.values()
    assert missing.binding_mode == VolumeBindingMode.UNKNOWN
    verdict, codes, text = answer(naming(name))
    assert verdict == "unknown"
    assert Code.UNSUPPORTED in codes
    assert f"StorageClass {name or '(the cluster'}" in text
    assert "not in the files" in text


@pytest.mark.parametrize(("mode", "verdict"), [("Immediate", "unknown"), ("WaitForFirstConsumer", "fits")])
@pytest.mark.parametrize("name", ["own", None])
def test_what_the_files_contain_counts(mode: str, verdict: str, name: str | None) -> None:
    assert answer(OWN.replace("MODE", mode), naming(name))[0] == verdict


@pytest.mark.parametrize("name", ["gp2", "standard"])
def test_a_class_in_the_files_is_not_that_of_a_cloud(name: str) -> None:
    own = OWN.replace("MODE", "Immediate").replace("name: own", f"name: {name}")
    verdict, codes, text = answer(own, naming(name))
    assert (verdict, Code.UNSUPPORTED in codes) == ("unknown", True)
    assert "the PV controller binds it before the pod is scheduled, to a volume that example.com makes; give" in text


def test_no_class_is_added_for_static_volumes() -> None:
    found = loaded(naming("")).snapshot
    assert not found.storage_classes
    assert found.volume_claims["default/data"].storage_class == ""


PLACE = "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}]}}"


def of_class(name: str, volume: str = "v", size: str = "1Gi", fields: str = "") -> str:
    return f"""
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {volume}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: "{name}", capacity: {{storage: {size}}}, {fields}}}
"""


@pytest.mark.parametrize(
    ("texts", "volume"),
    [
        pytest.param((of_class("own"), OWN, naming("own")), "v", id="Immediate"),
        pytest.param((of_class("own"), of_class("own", "w", "2Gi"), OWN, naming("own")), "v", id="the smallest"),
        pytest.param((of_class(""), naming("")), "v", id="without class"),
        pytest.param((of_class("nfs"), naming("nfs")), "v", id="of an unknown class, for every node"),
        pytest.param((of_class("nfs", fields=PLACE), naming("nfs")), None, id="of an unknown class, for some nodes"),
        pytest.param((of_class("own"), of_class("own", "w"), OWN, naming("own")), "v", id="two of one size"),
        pytest.param(
            (of_class("own", fields=PLACE), of_class("own", "w"), OWN, naming("own")), None, id="two of one size apart"
        ),
        pytest.param(
            (
                of_class("own"),
                OWN,
                naming("own"),
                naming("own").replace("name: data", "name: e").replace("{acc", "{volumeName: v, acc"),
            ),
            None,
            id="another claim names it",
        ),
        pytest.param((of_class("own", size="500Mi"), OWN, naming("own")), None, id="too small"),
        pytest.param(
            (of_class("own"), OWN, naming("own"), naming("own").replace("name: data", "name: e")), None, id="two claims"
        ),
        pytest.param(
            (of_class("own"), OWN.replace("MODE", "WaitForFirstConsumer"), naming("own")),
            None,
            id="chosen when a pod is scheduled",
        ),
    ],
)
def test_what_needs_no_pod_is_bound_as_by_the_controller(texts: tuple[str, ...], volume: str | None) -> None:
    given = tuple(text.replace("MODE", "Immediate") for text in texts)
    assert loaded(*given).snapshot.volume_claims["default/data"].volume == volume


def several(*names: str, more: str = "") -> tuple[str, ...]:
    return tuple(naming("own").replace("name: data", f"name: {name}").replace("{acc", f"{{{more}acc") for name in names)


def bound(*texts: str) -> list[str | None]:
    """The volumes of all claims, in the order of their names."""
    given = loaded(OWN.replace("MODE", "Immediate"), *texts).snapshot.volume_claims
    return [given[key].volume for key in sorted(given)]


def test_as_many_volumes_that_are_alike_as_claims_of_a_stateful_set() -> None:
    volumes = [of_class("own", name, fields=f"csi: {{driver: d, volumeHandle: {name}}}") for name in ("v1", "v3", "v2")]
    assert bound(*volumes, *several("c", "a", "b")) == ["v1", "v2", "v3"]
    assert bound(*volumes[1:], *several("c", "a", "b")) == [None, None, None]
    assert bound(*volumes[1:], *several("c")) == ["v2"]


def test_claims_that_select_volumes_by_label_tell_them_apart() -> None:
    labelled = of_class("own", "v1").replace("name: v1}", "name: v1, labels: {a: b}}")
    volumes = (labelled, of_class("own", "v2"))
    assert bound(*volumes, *several("a", "b")) == ["v1", "v2"]
    assert bound(*volumes, *several("a"), *several("b", more="selector: {matchLabels: {a: b}}, ")) == [None, None]


def test_a_claim_that_the_controller_binds_keeps_no_pod_from_a_node() -> None:
    assert answer(OWN.replace("MODE", "Immediate"), of_class("own"), naming("own"))[0] == "fits"
    verdict, _, text = answer(of_class(""), of_class("", "w", fields=PLACE), naming(""))
    assert (verdict, "to one of several that suit it" in text) == ("unknown", True)


def test_a_claim_that_no_volume_suits_says_so() -> None:
    verdict, _, text = answer(naming(""))
    assert verdict == "does-not-fit"
    assert "no PersistentVolume in the files suits it" in text


def test_a_class_that_makes_no_volumes_needs_one_that_reaches_the_node() -> None:
    own = OWN.replace("MODE", "WaitForFirstConsumer").replace("example.com", "kubernetes.io/no-provisioner")
    assert answer(own, of_class("own"), naming("own"))[0] == "fits"
    verdict, _, text = answer(own, of_class("own", fields=PLACE), naming("own"))
    assert verdict == "does-not-fit"
    assert "StorageClass own makes no volumes, and no PersistentVolume that suits the claim reaches the node" in text


def test_a_volume_elsewhere_says_where() -> None:
    verdict, _, text = answer(of_class("", fields=PLACE), naming(""))
    assert verdict == "does-not-fit"
    assert "volume v: reaches only nodes with z Exists" in text
    topologies = "allowedTopologies: [{matchLabelExpressions: [{key: z, values: [a]}]}]"
    text = answer(OWN.replace("MODE", f"WaitForFirstConsumer\n{topologies}"), naming("own"))[2]
    assert "volume default/data: reaches only nodes with z In [a]" in text


def test_a_claim_that_goes_away_says_so() -> None:
    lost = f"{naming('own')}status: {{phase: Lost}}"
    assert "PersistentVolumeClaim default/data is lost: its PersistentVolume is gone" in answer(lost)[2]


@pytest.mark.parametrize(
    ("driver", "more", "verdict"),
    [
        ("efs.csi.aws.com", "", "fits"),
        ("filestore.csi.storage.gke.io", "", "fits"),
        ("efs.csi.aws.com", "allowedTopologies: [{matchLabelExpressions: [{key: z, values: [a]}]}]\n", "unknown"),
        ("fsx.csi.aws.com", "", "unknown"),
        ("ebs.csi.aws.com", "", "unknown"),
    ],
)
def test_file_systems_that_select_no_nodes_may_be_made_before_the_pod(driver: str, more: str, verdict: str) -> None:
    made = changed(OWN, "example.com", driver).replace("MODE", "Immediate") + more
    snapshot = loaded(WITH_VOLUME, CLAIM, naming("own"), made).snapshot
    bound = snapshot.volume_claims["default/data"].volume
    assert (bound is not None) is (verdict == "fits")
    if bound is not None:
        assert snapshot.volumes[bound].driver == driver
        assert snapshot.volumes[bound].node_affinity is None
    assert answer(naming("own"), made)[0] == verdict


def test_a_claim_that_waits_for_its_pod_gets_no_volume_before() -> None:
    made = changed(OWN, "example.com", "efs.csi.aws.com").replace("MODE", "WaitForFirstConsumer")
    assert loaded(naming("own"), made).snapshot.volume_claims["default/data"].volume is None
