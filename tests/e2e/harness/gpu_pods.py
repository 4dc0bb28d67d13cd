"""A pool of KWOK's machines with GPUs, and pods that claim one: what most tests of the controller begin with."""

from __future__ import annotations

POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: KwokNodeTemplate
metadata: {name: default}
spec: {}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  nodeTemplateRef: {kind: KwokNodeTemplate, name: default}
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
  disruption: {after: 1s}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, SOURCE}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""


def pod(name: str, source: str = "resourceClaimTemplateName: gpu") -> str:
    """The manifest of a pod with a claim; `source` says where that comes from."""
    return POD.replace("NAME", name).replace("SOURCE", source)
