"""Manifests of workloads in the data of a ConfigMap."""

from __future__ import annotations

import io
import json
from textwrap import indent

import pytest

from autoscaler.manifests.load import Loaded, load

JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: r.example/c:1,
  resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""
TEMPLATE = """apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {{ .Name }}
spec:
  replicatedJobs:
  - name: {{ .Job }}
    template: {spec: {template: {spec: {containers: [{name: c,
      resources: {requests: {cpu: 1}, limits: {cpu: 3, google.com/tpu: 4}}}]}}}}
"""
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"resourceClaims": []}}
WORKFLOW = """apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: train-}
spec: {templates: [{container: {image: i, resources: {limits: {"nvidia.com/gpu": 1}}}}]}
"""


def loaded(key: str, text: str) -> Loaded:
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: templates}}\ndata:\n  {key}: |\n"
    return load(["-"], stdin=io.StringIO(head + indent(text, "    ")))


@pytest.mark.parametrize(
    ("text", "names", "filled"),
    [
        (JOB, "Job train", ""),
        (json.dumps(POD), "Pod p", ""),
        (TEMPLATE, "a JobSet", ", with its variables filled in,"),
        (f"{WORKFLOW}---\n{JOB}", "Workflow train-, Job train", ""),
        (JOB.replace("batch/v1", "batch/v1beta1"), "Job train", ""),
    ],
)
def test_a_manifest_that_asks_for_devices_is_named_and_not_planned(text: str, names: str, filled: str) -> None:
    found = loaded("job.yaml", text)
    (problem,) = found.problems
    assert found.ok
    assert not found.snapshot.pods
    assert problem.block == (
        f"-:5: ConfigMap templates: data['job.yaml']: not planned: the text is the manifest of {names}, and whether a "
        f"program creates it is unknown\n  to plan for its pods, save the text{filled} as file job.yaml and run "
        "`foreslice plan -f job.yaml`"
    )


@pytest.mark.parametrize(
    "text",
    [
        JOB.replace("nvidia.com/gpu", "cpu"),  # the image has a domain and a port too
        JOB.replace("batch/v1", "example.com/v1"),
        "limits: {nvidia.com/gpu: 8}\n",
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {limits: {nvidia.com/gpu: 8}}\n",
        "#!/bin/sh\necho apiVersion kind: Pod\n",
    ],
)
def test_other_texts_have_no_influence(text: str) -> None:
    (problem,) = loaded("job.yaml", text).problems
    assert problem.message == "ignored: it has no influence on where pods fit"


def test_a_long_text_is_looked_through_fast() -> None:
    """Quadratic time would be hours for the largest ConfigMap that Kubernetes stores."""
    assert loaded("data", "apiVersion limits: " + "a-" * 100_000 + " limits: a.a" * 20_000 + "\n").ok


def test_each_key_has_a_line_of_its_own() -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: t}}\ndata:\n  a: |\n{indent(JOB, '    ')}  b: |\n"
    found = load(["-"], stdin=io.StringIO(text + indent(TEMPLATE, "    ")))
    assert [(one.line, one.path) for one in found.problems] == [(5, ("data", "a")), (11, ("data", "b"))]
