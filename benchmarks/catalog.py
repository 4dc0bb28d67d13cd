"""`make bench`: loading the catalog and predicting slices, in CPU time, against their targets.

python -m benchmarks.catalog. Cold: a fresh process, its imports included. Overlays are those of the published samples.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks.processes import ROOT
from benchmarks.timing import best_median
from instance_catalog.drivers.facts import mig_tables
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.prediction import predict, variants
from instance_catalog.prediction.drivers import nvidia_mig
from instance_catalog.types.catalog import Catalog

OVERLAYS = ROOT / "tests" / "data" / "published" / "catalog"
# Resident memory from /proc: the high-water mark of getrusage is inherited from the process that forks.
_COLD = f"""
import os, pathlib, time
def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
before = resident()
from instance_catalog.files.loader import load_catalog
catalog = load_catalog(extra_dirs=[pathlib.Path({str(OVERLAYS)!r})])
print(time.process_time(), resident() - before)
"""


def cold() -> tuple[float, float]:
    """CPU seconds and MiB that a fresh process takes to have the catalog, libraries included: the best of five."""
    runs = [subprocess.run([sys.executable, "-c", _COLD], capture_output=True, text=True, check=True) for _ in range(5)]
    found = [tuple(map(float, run.stdout.split())) for run in runs]
    return min(seconds for seconds, _ in found), min(mib for _, mib in found)


def predict_everything(catalog: Catalog) -> None:
    """The slices of every type with the driver set that it is given by default, nothing remembered."""
    variants.implicit_driver_sets.cache_clear()
    predict._predicted.cache_clear()
    for instance_type in catalog:
        for driver_set in variants.implicit_driver_sets(instance_type, REFERENCE)[:1]:
            predict.predict(instance_type, driver_set, kubernetes=REFERENCE)


def place_everything() -> None:
    """All placements of an A100 and the instances of all its layouts, nothing remembered."""
    table = mig_tables()["a100-40gb"]
    for remembered in (nvidia_mig.every_placement, nvidia_mig.layouts, nvidia_mig.placements_in):
        remembered.cache_clear()
    nvidia_mig.every_placement(table)
    for layout in nvidia_mig.layouts(table):
        nvidia_mig.placements_in(table, layout)


def rows() -> Iterator[tuple[str, float, float, str]]:
    """(name, measured, target, unit)."""
    seconds, mib = cold()
    catalog = load_catalog(extra_dirs=[OVERLAYS])
    yield f"load {len(catalog)} types, cold", seconds, 1.0, "s"
    yield "memory of the loaded catalog and its libraries", mib, 60, "MiB"
    warm: list[tuple[str, Callable[[], object], float]] = [
        ("load, warm", lambda: load_catalog(extra_dirs=[OVERLAYS]), 0.25),
        ("predict every type x default profile", lambda: predict_everything(catalog), 0.5),
        ("place MIG instances on an A100", place_everything, 0.005),
    ]
    for name, run, target in warm:
        yield name, best_median(run) / 1e6, target, "s"


def main() -> None:
    """Measure and print."""
    for name, measured, target, unit in rows():
        mark = "" if measured <= target else "  above target"
        print(f"{name:<48} {measured:9.4f} {unit:<3} (target {target:g}){mark}", flush=True)


if __name__ == "__main__":
    main()
