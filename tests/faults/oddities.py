"""Objects that are legal and hard to handle: names as long as they may be, letters of other alphabets, odd neighbours.

Whoever cannot handle one of them leaves it out; the others' pods must run all the same.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from autoscaler.cluster.api import Object

# The longest names that the API server accepts, RFC 1123 subdomains and labels.
POD_NAME: Final = "p" * 253
NAMESPACE: Final = "n" * 63
POOL_NAME: Final = "l" * 63
FOREIGN_MACHINE: Final = "aws:///us-east-1a/i-0someoneelse0000"
_TEMPLATE: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpu, namespace: {namespace}}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com{selector}}}}}]}}}}}}
---
"""
_POD: Final = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
  annotations: {{simulation.foreslice.dev/runs-for: 2m, "example.org/note": "{note}"}}
spec:
  nodeSelector: {{{selects}}}
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpu}}], requests: {{cpu: "1"}}}}}}]
"""
_NAMESPACE: Final = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n---\n"
_POOL: Final = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {{name: {name}}}
spec:
  mode: Act
  weight: 1
  requirements: [{{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}}]
  nodeTemplateRef: {{kind: KIND, name: gpu}}
  drivers: {{profiles: [nvidia]}}
  limits: {{nodes: 2}}
---
"""
_LETTERS: Final = "Größe 漢字 \\u202e \\U0001F600"
_SELECTOR: Final = (
    ", selectors: [{cel: {expression: \"device.attributes['gpu.nvidia.com'].productName != '漢字 Größe'\"}}]"
)


class Oddity(Enum):
    """What comes. The value is its manifest, with KIND for that of the node template."""

    LONG_POD = _POD.format(name=POD_NAME, namespace="default", note="", selects="")
    LONG_KEY = (
        _NAMESPACE
        + _TEMPLATE.format(namespace=NAMESPACE, selector="")
        + _POD.format(name=POD_NAME, namespace=NAMESPACE, note="", selects="")
    )
    LONG_POOL = _POOL.format(name=POOL_NAME) + _POD.format(
        name="of-the-long-pool", namespace="default", note="", selects=f"foreslice.dev/pool: {POOL_NAME}"
    )
    LETTERS = (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: letters}\n---\n"
        + _TEMPLATE.format(namespace="letters", selector=_SELECTOR)
        + _POD.format(name="letters", namespace="letters", note=_LETTERS, selects="")
    )


# Their pods, by namespace/name.
ODD_PODS: Final = frozenset(
    {f"default/{POD_NAME}", f"{NAMESPACE}/{POD_NAME}", "default/of-the-long-pool", "letters/letters"}
)


def foreign_node(name: str) -> Object:
    """A Node of somebody else's machine that has got this name, as addresses are used again."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": FOREIGN_MACHINE},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def foreign_pod(node: str) -> Object:
    """What runs there."""
    return {
        "metadata": {"name": "stranger", "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]},
    }
