"""Several variants of a study, in this process or side by side in several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Final

from autoscaler.report.study.outcome import Outcome
from autoscaler.simulation.study.run import Run
from autoscaler.simulation.study.task import Study, Variant
from instance_catalog.types.catalog import Catalog

Told = Callable[[Variant, int, int], None]
"""Called with a variant, how many of its tasks have arrived, and of how many."""

_SHARED: Final[list[tuple[Study, Catalog]]] = []


def run_all(
    study: Study, variants: Sequence[Variant], catalog: Catalog, *, processes: int, told: Told
) -> tuple[Outcome, ...]:
    """The outcomes in the order of the variants, the same whatever the number of processes."""
    if processes <= 1 or len(variants) == 1:
        return tuple(_here(study, variants, catalog, told))
    with ProcessPoolExecutor(min(processes, len(variants)), initializer=_share, initargs=(study, catalog)) as pool:
        asked = {pool.submit(_outcome, variant): variant for variant in variants}
        for done in as_completed(asked):
            if done.exception() is None:
                told(asked[done], 1, 1)
        return tuple(future.result() for future in asked)


def _here(study: Study, variants: Sequence[Variant], catalog: Catalog, told: Told) -> Iterator[Outcome]:
    for variant in variants:

        def progress(arrived: int, total: int, *, variant: Variant = variant) -> None:
            told(variant, arrived, total)

        yield Run(study, variant, catalog).outcome(progress)


def _share(study: Study, catalog: Catalog) -> None:
    _SHARED[:] = [(study, catalog)]


def _outcome(variant: Variant) -> Outcome:
    study, catalog = _SHARED[0]
    return Run(study, variant, catalog).outcome()
