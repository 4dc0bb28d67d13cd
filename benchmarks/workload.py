"""Plan a workload's document and print one JSON line, as the peers do.

    python -m benchmarks.workload distinct 400            a workload of this project (documents.py)
    python -m benchmarks.workload distinct 400 --write    its document, for others to read
    python -m benchmarks.workload < FILE                  any document

`seconds` is wall time and `cpu_seconds` CPU time of the plan alone, after another document has loaded parser, numpy and
HiGHS; `cold_cpu_seconds` is the first plan of a process. The catalog is loaded and objects are made beforehand.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml

from autoscaler.model.capacity import CapacityPool, Limits, Mode
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from benchmarks.documents import KINDS, Document, warming
from benchmarks.processes import ROOT
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType

NOW: Final = datetime(2026, 11, 22, tzinfo=UTC)


def catalog_of(document: Document) -> Catalog:
    """The shipped catalog with the document's types."""
    if "types" not in document:
        return load_catalog()
    models = sorted({entry["model"] for entry in document["types"] if entry["model"]})
    data = {
        "cloud": "aws",
        "accelerators": [_accelerator(model) for model in models],
        "types": [_type(entry) for entry in document["types"] if entry["gpus"]],
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "workload.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        return load_catalog(extra_dirs=[Path(folder)])


def _accelerator(model: str) -> Document:
    facts = {"vendor": "NVIDIA", "architecture": "Hopper", "cudaComputeCapability": "9.0.0", "brand": "Nvidia"}
    return {"key": _key(model), "model": model, "productName": model, "memory": "80Gi", **facts}


def _key(model: str) -> str:
    return f"workload-{model.lower()}"


def _type(entry: Document) -> Document:
    price = {"usdPerHour": entry["usd_per_hour"], "region": "us-east-1", "date": "2026-11-01"}
    return {
        "name": entry["name"],
        "architecture": "amd64",
        "vcpu": 192,
        "memory": "2000Gi",
        "accelerator": {"model": _key(entry["model"]), "count": entry["gpus"]},
        "capacityTypes": ["on-demand"],
        "prices": {"on-demand": price},
    }


def snapshot_of(document: Document) -> Snapshot:
    """The document's pods, pending; with a pool of its types where it has some."""
    pods, claims = [], {}
    for entry in document["pods"]:
        name, wanted = entry["name"], _requests(entry)
        if wanted:
            claim = ResourceClaim("default", name, wanted, uid=f"claim-{name}")
            claims[claim.key] = claim
        amounts = {key: Quantity.parse(str(entry[key])) for key in ("cpu", "memory") if key in entry}
        refs = (PodClaim("gpu", name),) if wanted else ()
        pods.append(
            Pod("default", name, uid=name, containers=(Container("main", FrozenMap(amounts)),), claims=refs),
        )
    facts = builtin_device_classes(REFERENCE)
    classes = tuple(DeviceClass(f.name, tuple(Selector(text) for text in f.selectors)) for f in facts)
    return Snapshot(pods=tuple(pods), claims=FrozenMap(claims), classes=classes, pools=_pools(document))


def _requests(entry: Document) -> tuple[DeviceRequest, ...]:
    return tuple(
        DeviceRequest(
            f"r{number}",
            "gpu.nvidia.com",
            (Selector(request["selector"]),) if request["selector"] else (),
            count=request["count"],
        )
        for number, request in enumerate(entry["requests"])
    )


def _pools(document: Document) -> tuple[CapacityPool, ...]:
    names = tuple(entry["name"] for entry in document.get("types", ()) if entry["gpus"])
    if not names:
        return ()
    only = (Requirement(labels.INSTANCE_TYPE, "In", names),)
    pool = CapacityPool(
        name="workload",
        mode=Mode.ACT,
        uid="workload",
        drivers=("nvidia",),
        limits=Limits(nodes=100_000),
        requirements=only,
        capacity_types=(CapacityType.ON_DEMAND,),
    )
    return (pool,)


@dataclass(frozen=True, slots=True)
class Measured:
    """A plan, with wall and CPU seconds that it took."""

    plan: Plan
    seconds: float
    cpu_seconds: float


def measured(document: Document) -> Measured:
    """The plan for the document: garbage collection is off, as in every command but `run`."""
    catalog, state = catalog_of(document), snapshot_of(document)
    began, cpu = time.perf_counter(), time.process_time()
    plan = plan_for(state, catalog, Policy(), NOW)
    return Measured(plan, time.perf_counter() - began, time.process_time() - cpu)


def cold_seconds(document: Document) -> float:
    """CPU seconds of the same as the first plan of a process."""
    command = [sys.executable, "-m", "benchmarks.workload", "--cold"]
    text = json.dumps(document)
    found = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True)
    return float(json.loads(found.stdout)["cpu_seconds"])


def line(found: Measured) -> dict[str, Any]:
    """What the peers print, and CPU time."""
    plan = found.plan
    usd = float(sum((node.usd_per_hour or Decimal(0) for node in plan.launches), Decimal(0)))
    return {
        "peer": "foreslice",
        "seconds": round(found.seconds, 4),
        "cpu_seconds": round(found.cpu_seconds, 4),
        "nodes": len(plan.launches),
        "scheduled": len(plan.placements),
        "unscheduled": len(plan.left_out),
        "usd_per_hour": round(usd, 4),
    }


def main() -> None:
    """Read or make the document, plan, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS), help="a workload of this project")
    parser.add_argument("size", nargs="?", type=int, default=100, help="its pods (blowup: GPUs)")
    parser.add_argument("--write", action="store_true", help="print its document, plan nothing")
    parser.add_argument("--cold", action="store_true", help="only the first plan of this process")
    options = parser.parse_args()
    document = KINDS[options.kind](options.size) if options.kind else json.load(sys.stdin)
    if options.write:
        print(json.dumps(document))
        return
    gc.disable()
    if options.cold:
        print(json.dumps(line(measured(document))))
        return
    measured(warming())
    print(json.dumps({**line(measured(document)), "cold_cpu_seconds": round(cold_seconds(document), 4)}))


if __name__ == "__main__":
    main()
