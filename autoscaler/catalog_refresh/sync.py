"""A cloud's listing into a directory of catalog files: for `foreslice catalog sync`, and for the controller's timer.

The file that is written belongs to the sync alone. A file that a person changed is not overwritten; that is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from autoscaler.catalog_refresh.atomic_write import replace_file
from autoscaler.errors import BadInputError
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.layers import Layer, text_layer
from instance_catalog.files.loader import directory_layers, shipped_layers
from instance_catalog.files.merging import catalog_of
from instance_catalog.files.yaml_text import YamlTextError, read
from instance_catalog.sources.sync import PRIORITY, Merged, ShrunkListingError, merge_listing, overruled
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock
from providers.errors import GoneError, PermissionDeniedError, RefusedError, UnclassifiedError
from providers.listing import Listing, Progress, fetch

_MARK: Final = "# Written by `foreslice catalog sync`; corrections go into files of their own. Content: "


@dataclass(frozen=True, slots=True)
class Synced:
    """A sync that is not written yet: `text` is what `path` would hold, `before` and `after` the catalogs."""

    path: Path
    text: str
    merged: Merged
    before: Catalog
    after: Catalog

    @property
    def changed(self) -> bool:
        """True if writing it changes a fact."""
        return self.before.digest != self.after.digest

    def write(self) -> None:
        """Replace the file in one step. Raises BadInputError."""
        replace_file(self.path, self.text)


def synced(
    listing: Listing,
    clock: Clock,
    *,
    directory: Path,
    layers: Iterable[Layer],
    accept_removals: bool = False,
    on_page: Callable[[str, Progress], None] = lambda step, progress: None,
) -> Synced:
    """Read the whole listing and merge it with `layers`, what the catalog is made of; the result is for `directory`.

    What was read is kept in a hidden state file of the directory until the end, so that an interrupted sync continues
    from there; a listing that is not believed is read anew the next time. `on_page` is called after every page. Raises
    ProviderErrors, and BadInputError for files or a listing that cannot be used.
    """
    path = directory / f"synced-{listing.cloud}-{listing.scope}.yaml"
    last = _last(path)
    others = [layer for layer in layers if layer.name != str(path)]
    state = directory / f".{path.stem}.json"

    progress = _read_whole(listing, clock, state, on_page)
    found = listing.interpreted(progress.rows, date=clock.now().date().isoformat())
    if not found.types:
        state.unlink(missing_ok=True)
        raise BadInputError(
            f"{listing.cloud} lists no type with accelerators in {listing.scope}", next_step="check region or project"
        )
    try:
        giving_way = catalog_of([layer for layer in others if layer.shipped or layer.priority < PRIORITY])
        merged = merge_listing(
            found, giving_way, last=last, accept_removals=accept_removals, spoken_of=_spoken_of(others)
        )
        text = _marked(merged.content)
        before = catalog_of([*others, *([text_layer(str(path), str(directory), _marked(last))] if last else [])])
        after = catalog_of([*others, text_layer(str(path), str(directory), text)])
    except ShrunkListingError as error:
        state.unlink(missing_ok=True)
        raise BadInputError(str(error), next_step="give --accept-removals if that is right") from error
    except CatalogError as error:
        raise BadInputError(str(error), next_step="`foreslice catalog validate` checks your files") from error
    state.unlink(missing_ok=True)
    conflicts = (*merged.conflicts, *overruled(merged.content, after))
    return Synced(path, text, replace(merged, conflicts=conflicts), before, after)


def _read_whole(listing: Listing, clock: Clock, state: Path, on_page: Callable[[str, Progress], None]) -> Progress:
    """Every page of the listing, from the one on at which an interrupted sync stopped."""

    def page_read(step: str, progress: Progress) -> None:
        _keep(state, progress)
        on_page(step, progress)

    resumed = _resumed(state)
    try:
        return fetch(listing, clock, progress=resumed, on_page=page_read)
    except (RefusedError, GoneError, UnclassifiedError) as error:
        # The cloud may no longer know the page from which a resumed listing continues.
        if resumed is not None and not isinstance(error, PermissionDeniedError):
            state.unlink(missing_ok=True)
        raise


def layers_of(directories: Iterable[Path]) -> list[Layer]:
    """The shipped layers and those of the directories, which need not have files yet."""
    given = [layer for directory in directories if _has_files(directory) for layer in directory_layers(directory)]
    return [*shipped_layers(), *given]


def _has_files(directory: Path) -> bool:
    return any(not path.name.startswith(".") for path in directory.rglob("*.y*ml"))


def _spoken_of(layers: Iterable[Layer]) -> frozenset[str]:
    """Types and accelerators about which people or nodes have said something."""
    entries = (
        entry.get(key)
        for layer in layers
        if layer.file is not None and layer.priority > PRIORITY and not layer.shipped
        for found, key in ((layer.file.types, "name"), (layer.file.accelerators, "key"))
        for entry in found
    )
    return frozenset(name for name in entries if isinstance(name, str))


def _last(path: Path) -> dict[str, Any] | None:
    """The content that the last sync wrote. Raises BadInputError when it was changed since."""
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    mark, _, body = text.partition("\n")
    step = "move what you wrote into a file of its own (`foreslice catalog set`), and delete this one"
    if mark != f"{_MARK}{_digest(body)}":
        raise BadInputError(f"{path} was changed by hand; it is not overwritten", next_step=step)
    try:
        found: dict[str, Any] = read(body)
    except YamlTextError as error:
        raise BadInputError(f"{path}:{error.line + 1}: {error}", next_step=step) from error
    return found


def _marked(content: dict[str, Any]) -> str:
    import yaml

    body = str(yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120))
    return f"{_MARK}{_digest(body)}\n{body}"


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _resumed(state: Path) -> Progress | None:
    try:
        return Progress.of_json(json.loads(state.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # nothing to go on from, so from the beginning


def _keep(state: Path, progress: Progress) -> None:
    replace_file(state, json.dumps(progress.as_json()))
