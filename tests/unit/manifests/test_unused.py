"""Templates that no pod uses: nothing is planned for them, and something may use them later."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import load
from tests.unit.manifests.texts import JOB, TEMPLATE, changed, loaded


def _unused(text: str) -> list[str]:
    found = load(["-"], stdin=io.StringIO(text), skip_unknown=True)
    return [problem.message for problem in found.problems if "no pod uses" in problem.message]


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(JOB, id="a pod"),
        pytest.param(changed(JOB, "spec:\n  parallelism", "spec:\n  suspend: true\n  parallelism"), id="suspended"),
        pytest.param(changed(JOB, "apiVersion: batch/v1", "apiVersion: example.com/v1"), id="of an unknown kind"),
    ],
)
def test_a_template_that_something_names_is_in_use(user: str) -> None:
    assert not _unused(f"{user}---{TEMPLATE}")
    other = changed(user, "resourceClaimTemplateName: gpu", "resourceClaimName: gpu")
    assert _unused(f"{other}---{TEMPLATE}")


def test_a_template_of_an_api_server_waits_for_pods() -> None:
    assert not loaded(changed(TEMPLATE, "{name: gpu}", "{name: gpu, uid: u-1}")).problems


def test_templates_alone_may_be_checked() -> None:
    assert not load(["-"], stdin=io.StringIO(TEMPLATE), planned=False).problems


POD_TEMPLATE = """
apiVersion: v1
kind: PodTemplate
metadata: {name: training}
template: {spec: {containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""
REQUEST = """
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: later}
spec: {provisioningClassName: other.example.com, podSets: [{count: 1, podTemplateRef: {name: training}}]}
"""


def test_a_pod_template_alone_says_that_its_pod_is_not_planned() -> None:
    (problem,) = loaded(POD_TEMPLATE).problems
    assert problem.message == (
        "no ProvisioningRequest or CapacityBuffer names this template, so nothing is planned for its pod; it asks for "
        "nvidia.com/gpu: 1 (template.spec.containers[0].resources)"
    )
    assert not [one for one in loaded(f"{REQUEST}---{POD_TEMPLATE}").problems if "names this template" in one.message]
    assert not loaded(changed(POD_TEMPLATE, "{name: training}", "{name: training, uid: u-1}")).problems
