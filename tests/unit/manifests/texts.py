"""Manifests that several tests share, and the way to load them."""

from __future__ import annotations

import io

from autoscaler.manifests.load import Loaded, load

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
      - name: gpu
        exactly: {deviceClassName: gpu.nvidia.com}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly: {deviceClassName: gpu.nvidia.com}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: main}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: main, image: i}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template:
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers: [{name: main, image: i}]
"""


def loaded(*texts: str, strict: bool = False) -> Loaded:
    return load(["-"], stdin=io.StringIO("\n---\n".join(texts)), strict=strict)


def messages(found: Loaded) -> list[str]:
    return [problem.block for problem in found.problems]


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


POD_GROUP = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 2}
"""
SHARING_GROUP = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]}
"""
GANG_POD = POD.replace("{name: main}", "{name: main, labels: {scheduling.x-k8s.io/pod-group: g}}", 1)
WORKLOAD = """
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: w}
spec: {podGroups: [{name: g, policy: {gang: {minCount: 2}}}]}
"""
GATES = """
apiVersion: foreslice.dev/v1alpha1
kind: PlanContext
metadata: {name: c}
spec: {featureGates: {GenericWorkload: true, GangScheduling: true}}
"""
MEMBER = POD.replace("spec:", "spec:\n  workloadRef: {name: w, podGroup: g, podGroupReplicaKey: '1'}", 1)
