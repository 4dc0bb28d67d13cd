"""The public traces that `benchmarks.trace` simulates, as studies. Their files are not in the project.

Both are of the Alibaba Cluster Trace Program. cluster-trace-gpu-v2023, openb_pod_list_gpuspec10.csv: 8,152 tasks in the
order of arrival. cluster-trace-gpu-v2025, disaggregated_DLRM_trace.csv: 156 inference services, in any order; its 7,386
instances with the role HN ask for one GPU each. docs/simulate.md describes what becomes of their GPUs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from autoscaler.simulation.simulation import TEMPLATE_KIND
from autoscaler.simulation.study.objects import product_names
from autoscaler.simulation.study.task import Study
from autoscaler.simulation.study.trace_file import TraceOptions, parse_columns, read_trace
from instance_catalog.types.catalog import Catalog

_TASKS: Final = (
    "arrival=creation_time,end=deletion_time,gpus=num_gpu,gpu-model=gpu_spec,cpu-milli=cpu_milli,memory-mib=memory_mib"
)
_INSTANCES: Final = (
    "name=instance_sn,arrival=creation_time,end=deletion_time,"
    "gpus=gpu_request,cpu=cpu_request,memory-gib=memory_request"
)
_APART: Final = 20.0  # seconds between arrivals of instances that were there before the trace
_MODELS: Final = {
    **dict.fromkeys(("P100", "V100M16", "V100M32"), ("V100",)),
    **dict.fromkeys(("A10", "G2", "G3"), ("A10G",)),
}
_POOL: Final = f"""
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {{name: gpu}}
spec:
  mode: Act
  scope: {{pods: All}}
  requirements:
    - {{key: foreslice.dev/cloud, operator: In, values: [aws]}}
    - {{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}}
    - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
    - {{key: foreslice.dev/accelerator, operator: In, values: [T4, A10G, L4, V100]}}
  nodeTemplateRef: {{kind: {TEMPLATE_KIND}, name: default}}
  drivers: {{profiles: [nvidia]}}
  limits: {{nodes: 5000}}
  disruption: {{after: 0s}}
"""


def study_of(file: Path, catalog: Catalog) -> Study:
    """The trace on one pool of on-demand machines."""
    lines = file.read_text().splitlines()
    of_services = "app_name" in lines[0].split(",")
    columns = parse_columns(_INSTANCES if of_services else _TASKS)
    tasks = read_trace(
        list(_gpu_instances(lines)) if of_services else lines,
        file.name,
        TraceOptions(columns, _MODELS, product_names(catalog)),
    )
    return Study(file.name, tasks, (yaml.safe_load(_POOL),))


def _gpu_instances(lines: list[str]) -> Iterator[str]:
    """The lines of the instances that ask for a GPU, in the order of arrival.

    Those without a creation time were there before the trace: they arrive one after the other before it begins. Those
    without a deletion time run to its end.
    """
    rows = [row for row in csv.DictReader(lines) if float(row["gpu_request"])]
    before = [row for row in rows if not row["creation_time"]]
    begins = _APART * len(before)
    end = max(float(row["deletion_time"] or 0) for row in rows)
    columns = [part.partition("=")[2] for part in _INSTANCES.split(",")]
    yield ",".join(columns)
    arrivals = [_APART * number for number in range(len(before))]
    after = sorted((row for row in rows if row["creation_time"]), key=lambda row: float(row["creation_time"]))
    arrivals += [begins + float(row["creation_time"]) for row in after]
    for row, arrival in zip((*before, *after), arrivals, strict=True):
        known = {
            **row,
            "creation_time": f"{arrival:.0f}",
            "deletion_time": f"{begins + float(row['deletion_time'] or end):.0f}",
        }
        yield ",".join(known[column] for column in columns)
