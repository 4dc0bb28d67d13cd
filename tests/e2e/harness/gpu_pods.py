"""A pool of KWOK's machines with GPUs, and pods that claim one: what most tests of the controller begin with."""

from __future__ import annotations

from typing import Any

import yaml

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


def pool(*types: str, **spec: Any) -> str:
    """The manifests of a node template of KWOK and of a CapacityPool `gpu` for it, of these instance types or of all;
    `spec` adds to the fields of the pool, replaces them, or by None removes them."""
    among = {"topology.kubernetes.io/zone": ["us-east-1a"], "node.kubernetes.io/instance-type": list(types)}
    fields = {
        "nodeTemplateRef": {"kind": "KwokNodeTemplate", "name": "default"},
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in among.items() if values],
        "drivers": {"profiles": ["nvidia"]},
        "limits": {"nodes": 4},
        "disruption": {"after": "1s"},
    }
    written = {name: value for name, value in (fields | spec).items() if value is not None}
    found = (("KwokNodeTemplate", "default", {}), ("CapacityPool", "gpu", written))
    return yaml.safe_dump_all(
        {"apiVersion": "foreslice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": values}
        for kind, name, values in found
    )


POOL = pool()
