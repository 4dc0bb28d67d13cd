"""What happens in the lives in which controllers die: pods come and end, a pool is deleted, a prepaid block is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.simulation.api_server import ApiServer

SMALL: Final = ("g6.xlarge", "g6e.xlarge")
BLOCK_BEGINS: Final = timedelta(minutes=10)
BLOCK_LASTS: Final = timedelta(hours=3)
_POOL: Final = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}]
  nodeTemplateRef: {kind: KIND, name: gpu}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 1}}]}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: work
  annotations: {simulation.foreslice.dev/copies: "2", simulation.foreslice.dev/runs-for: 10m}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
_RUNS_ON: Final = _POOL.replace(", simulation.foreslice.dev/runs-for: 10m", "")
_BLOCK: Final = """---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityBlock
metadata: {name: block}
spec:
  pool: gpu
  reservation: RESERVATION
  instanceType: p5.48xlarge
  zone: us-east-1a
  count: 2
  startsAt: "2026-01-05T09:10:00Z"
  endsAt: "2026-01-05T12:10:00Z"
  drain: {notice: 30m, budget: 15m}
"""


@dataclass(frozen=True)
class Plot:
    """A life of two nodes. `manifests` leave KIND and RESERVATION open, `acts` is what somebody does, and when.

    `pods_end`: the two pods end by themselves; otherwise they are evicted. `block`: the nodes are those of a block.
    """

    title: str
    manifests: str
    acts: tuple[tuple[timedelta, Callable[[ApiServer], None]], ...] = ()
    lasts: timedelta = timedelta(hours=1)
    types: tuple[str, ...] = SMALL
    pods_end: bool = False
    block: bool = False


def _delete_pool(api: ApiServer) -> None:
    api.delete(CAPACITY_POOLS, "gpu")


# The pods run for ten minutes, their nodes are empty for five, and then everything should be gone.
LAUNCH: Final = Plot("Launch and terminate", _POOL, pods_end=True)
# The pods would run on.
DRAIN: Final = Plot("Drain", _RUNS_ON, acts=((timedelta(minutes=20), _delete_pool),))
# Two nodes are held from the beginning of the block on, and emptied before its end.
HOLD: Final = Plot(
    "Hold",
    _RUNS_ON.replace("  drivers:", "  capacityTypes: [capacity-block]\n  drivers:")
    .replace("count: 1", "count: 8")
    .replace("spec:\n  resourceClaims", "spec:\n  tolerations: [{operator: Exists}]\n  resourceClaims")
    + _BLOCK,
    lasts=timedelta(hours=4),
    types=("p5.48xlarge",),
    block=True,
)
