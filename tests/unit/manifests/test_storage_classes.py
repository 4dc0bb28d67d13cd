"""StorageClasses that files name and do not contain: those of clouds wait for pods, of others the answer is open."""

from __future__ import annotations

import pytest

from autoscaler.model.reason import Code
from autoscaler.model.storage import DELAYED, UNKNOWN_BINDING
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
    assert loaded(naming(name)).snapshot.storage_classes[name].binding_mode == DELAYED
    assert answer(naming(name))[0] == "fits"


@pytest.mark.parametrize("name", ["gp3", "standard", None])
def test_of_other_classes_it_is_open(name: str | None) -> None:
    (missing,) = loaded(naming(name)).snapshot.storage_classes.values()
    assert missing.binding_mode == UNKNOWN_BINDING
    verdict, codes, text = answer(naming(name))
    assert verdict == "unknown"
    assert Code.UNSUPPORTED in codes
    assert f"StorageClass {name or '(the cluster'}" in text
    assert "not in the files" in text


@pytest.mark.parametrize(("mode", "verdict"), [("Immediate", "does-not-fit"), (DELAYED, "fits")])
@pytest.mark.parametrize("name", ["own", None])
def test_what_the_files_contain_counts(mode: str, verdict: str, name: str | None) -> None:
    assert answer(OWN.replace("MODE", mode), naming(name))[0] == verdict


@pytest.mark.parametrize("name", ["gp2", "standard"])
def test_a_class_in_the_files_is_not_that_of_a_cloud(name: str) -> None:
    own = OWN.replace("MODE", "Immediate").replace("name: own", f"name: {name}")
    assert answer(own, naming(name))[0] == "does-not-fit"


def test_no_class_is_added_for_static_volumes() -> None:
    found = loaded(naming("")).snapshot
    assert not found.storage_classes
    assert found.volume_claims["default/data"].storage_class == ""
