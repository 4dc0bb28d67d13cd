"""The catalog that a controller decides with, read again while it runs.

Of a file that is defective or half written the last good version counts; all others are taken over. What lies in the
cluster (InstanceTypeOverlays) comes on top in each reconcile and is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from autoscaler.errors import BadInputError
from instance_catalog.files.last_good import EffectiveCatalog, RefusedLayer, effective_catalog
from instance_catalog.files.layers import Layer
from instance_catalog.files.loader import directory_layers, shipped_layers
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice")


class ReloadingCatalog:
    """`directories` are those of people, each of which must exist; `synced` is written by the controller itself."""

    def __init__(self, directories: Sequence[Path], clock: Clock, *, synced: Path | None = None) -> None:
        """Reads for the first time. Raises BadInputError for a directory that does not exist."""
        for directory in directories:
            if not directory.is_dir():
                raise BadInputError(f"{directory}: no such directory", next_step="correct cluster.catalog, or mount it")
        self._directories = directories
        self._synced = synced
        self._clock = clock
        self._shipped = shipped_layers()
        self._logged: tuple[RefusedLayer, ...] = ()
        self._effective = self._read(None)

    @property
    def catalog(self) -> Catalog:
        """The catalog in use."""
        return self._effective.catalog

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of the catalog, without defective ones."""
        return self._effective.layers

    @property
    def whole(self) -> bool:
        """True if nothing was refused when it was last read."""
        return not self._effective.refused

    def changed(self) -> bool:
        """Read it again; whether it says something else now."""
        before = self.catalog.digest
        self._effective = self._read(self._effective)
        if before == self.catalog.digest:
            return False
        _LOG.info("catalog_changed", digest=self.catalog.digest, types=len(self.catalog.types))
        return True

    def _read(self, before: EffectiveCatalog | None) -> EffectiveCatalog:
        written = (self._synced,) if self._synced is not None and any(self._synced.glob("*.yaml")) else ()
        files = [
            layer for directory in (*written, *self._directories) for layer in directory_layers(directory, settled=True)
        ]
        found = effective_catalog((*self._shipped, *files), now=self._clock.now(), before=before)
        # Once for each defect: a file may stay broken for days.
        for refused in found.refused:
            if refused not in self._logged:
                problems = [str(problem) for problem in refused.problems]
                _LOG.warning(
                    "catalog_file_refused", file=refused.layer, last_good_counts=refused.kept, problems=problems
                )
        self._logged = found.refused
        return found
