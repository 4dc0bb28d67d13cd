"""Imports the listings of clouds into the catalog while the controller runs. A listing takes minutes, so a separate
thread reads it and only notifies the loop that the catalog has changed. A sync that fails changes nothing: the last
file stays, and the log names what is missing. Knows no cloud.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from autoscaler.catalog_refresh.sync import Synced, synced
from autoscaler.errors import BadInputError
from instance_catalog.dataclass import dataclass
from instance_catalog.files.layers import Layer
from providers.contract import Clock
from providers.errors import ProviderError
from providers.listing import Listing

_LOG: Final = structlog.get_logger("foreslice.sync")
# So many conflicts are logged one by one; `foreslice catalog sync` shows all.
_MOST_LOGGED: Final = 20
Opened: TypeAlias = Callable[[Iterable[str]], Listing]
"""Makes a listing, given the names of the types that the catalog has."""


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """The result of one listing. `conflicts`: the number of facts that the catalog keeps although the cloud contradicts
    them."""

    cloud: str
    scope: str
    outcome: str  # changed, unchanged, failed
    conflicts: int | None = None


class PeriodicSync:
    """Reads every listing in turn and writes the result into `directory`.

    `layers` are what the catalog is made of now, `changed` is called when the directory has changed, `on_outcome`
    after every listing.
    """

    def __init__(
        self,
        listings: Sequence[Opened],
        clock: Clock,
        *,
        directory: Path,
        layers: Callable[[], Sequence[Layer]],
        changed: Callable[[], None],
        on_outcome: Callable[[SyncOutcome], None],
    ) -> None:
        self._listings = listings
        self._clock = clock
        self._directory = directory
        self._layers = layers
        self._changed = changed
        self._on_outcome = on_outcome
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless the last one is still under way."""
        if self._thread is None or not self._thread.is_alive():
            # Whatever it is doing when the process ends: files are replaced in one step, and pages are read again.
            self._thread = threading.Thread(target=self.run, name="catalog-sync", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Every listing once. Raises nothing that a cloud, a file or a disk can be blamed for."""
        for opened in self._listings:
            layers = self._layers()
            listing = opened(
                [entry["name"] for layer in layers if layer.file is not None for entry in layer.file.types]
            )
            try:
                found = synced(listing, self._clock, directory=self._directory, layers=layers)
                if found.changed:
                    found.write()
            except (ProviderError, BadInputError) as error:
                _LOG.warning("catalog_not_synced", cloud=listing.cloud, error=str(error), next_step=error.next_step)
                self._on_outcome(SyncOutcome(listing.cloud, listing.scope, "failed"))
                continue
            self._report(listing, found)

    def _report(self, listing: Listing, found: Synced) -> None:
        where = {"cloud": listing.cloud, "scope": listing.scope}
        for note in found.merged.notes:
            _LOG.info("catalog_sync_note", **where, note=note)
        for conflict in found.merged.conflicts[:_MOST_LOGGED]:
            _LOG.warning(
                "catalog_conflict",
                **where,
                type=conflict.type_name,
                field=conflict.field,
                cloud_says=conflict.theirs,
                in_force=conflict.ours,
            )
        _LOG.info(
            "catalog_synced",
            **where,
            changed=found.changed,
            conflicts=len(found.merged.conflicts),
            no_longer_listed=found.merged.gone,
        )
        outcome = "changed" if found.changed else "unchanged"
        self._on_outcome(SyncOutcome(listing.cloud, listing.scope, outcome, len(found.merged.conflicts)))
        if found.changed:
            self._changed()
