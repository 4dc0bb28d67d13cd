"""DeviceClasses that manifests name and the files lack."""

from __future__ import annotations

from autoscaler.dra.claims.extended_resources import extended_resource_classes
from instance_catalog.diagnostic import Severity
from tests.unit.manifests.texts import CLAIM, POD, changed, loaded, messages


def test_a_class_that_nobody_knows_forbids_no_plan() -> None:
    """Nothing shows that the name is wrong, and the plan tells what else stands in the way."""
    found = loaded(POD + "---" + changed(CLAIM, "gpu.nvidia.com", "npu.acme.org"))
    assert found.ok
    told = "\n".join(messages(found))
    assert (
        "there is no DeviceClass 'npu.acme.org' in the files\n  add the DeviceClass to the files (`kubectl get" in told
    )
    assert "unless its driver is predicted, give also a Node that runs it, with its ResourceSlices" in told


def test_a_class_that_a_cloud_installs_and_nobody_predicts_forbids_no_plan() -> None:
    told = list(loaded(POD, changed(CLAIM, "gpu.nvidia.com", "mrdma.google.com")).problems)
    assert [one.severity for one in told] == [Severity.WARNING]
    assert "there is no DeviceClass 'mrdma.google.com' in the files" in told[0].message
    assert "GKE 1.34.1-gke.1829001 and later installs the class" in told[0].next_step
    assert "unless its driver is predicted" not in told[0].next_step
    assert not loaded(POD, changed(CLAIM, "gpu.nvidia.com", "imex.nvidia.com")).ok


def test_classes_of_one_object_that_nobody_knows_are_one_warning() -> None:
    both = "firstAvailable: [{name: a, deviceClassName: one.acme.org}, {name: b, deviceClassName: two.acme.org}]"
    text = changed(CLAIM, "exactly: {deviceClassName: gpu.nvidia.com}", both)
    (told,) = [problem for problem in loaded(text, POD).problems if "DeviceClass" in problem.message]
    assert told.severity is Severity.WARNING
    assert told.message == "there are no DeviceClasses 'one.acme.org' and 'two.acme.org' in the files"
    assert told.next_step.startswith(
        "add the DeviceClasses to the files (`kubectl get deviceclass one.acme.org two.acme.org -o yaml`), or correct "
        "the names; unless"
    )


def test_a_given_class_serves_an_extended_resource_before_that_of_a_chart() -> None:
    """The chart was installed before: of several classes with one extended resource, the API picks the newest."""
    class_ = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig.example.com}
spec: {extendedResourceName: nvidia.com/gpu}
"""
    classes = loaded(POD, CLAIM, class_).snapshot.classes
    assert extended_resource_classes(classes)["nvidia.com/gpu"].name == "mig.example.com"
