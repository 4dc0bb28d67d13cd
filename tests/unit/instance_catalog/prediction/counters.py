"""Whether MIG instances fit together as the allocator decides it, to compare with what NVIDIA's driver says."""

from __future__ import annotations

from collections.abc import Iterable

from instance_catalog.drivers.facts import MigTable
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.drivers.nvidia_mig import Placed, counters_of, counters_of_gpu


def fits_counters(table: MigTable, chosen: Iterable[Placed]) -> bool:
    """Whether the instances can exist together, as the allocator decides it: no counter is overdrawn."""
    left = dict(counters_of_gpu(table))
    for placed in chosen:
        for name, value in counters_of(placed).items():
            left[name] = left[name] - value
    return all(value >= Quantity.of(0) for value in left.values())
