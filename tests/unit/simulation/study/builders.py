"""Small studies: a few tasks and one pool."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.task import Shape, Study, Task
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog

POOL: dict[str, Any] = {
    "apiVersion": "foreslice.dev/v1alpha1",
    "kind": "CapacityPool",
    "metadata": {"name": "gpu"},
    "spec": {
        "mode": "Act",
        "requirements": [
            {"key": "foreslice.dev/cloud", "operator": "In", "values": ["aws"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge", "g6.12xlarge"]},
        ],
        "nodeTemplateRef": {"kind": "SimulatedNodeTemplate", "name": "default"},
        "drivers": {"profiles": ["nvidia"]},
        "limits": {"nodes": 20},
        "disruption": {"after": "5m"},
    },
}


@cache
def catalog() -> Catalog:
    """The two types that the pool admits."""
    whole = load_catalog()
    return Catalog.of([whole.get("g6.xlarge"), whole.get("g6.12xlarge")], whole.accelerators.values())


def task(number: int, arrives: int, runs: int, *, gpus: int = 1, **others: Any) -> Task:
    """A task by its arrival and duration in seconds."""
    shape = Shape(gpus=gpus, cpu=1000, memory=1024)
    return Task(f"t{number}", timedelta(seconds=arrives), timedelta(seconds=runs), shape, place="here:1", **others)


def study(*tasks: Task) -> Study:
    """A study that ends when everything has."""
    return prepare(Study("small", tasks, (POOL,)), catalog(), skip=False).study
