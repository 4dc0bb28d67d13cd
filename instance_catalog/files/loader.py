"""Catalog files → layers → Catalog. The only module of the catalog that reads files.

Layers, later ones override: the data shipped with the package, then each directory given, in order, then `corrections`
from other sources; overlays among them by their priority. If anything is wrong, CatalogError lists every defect; a
half-read catalog is never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from instance_catalog.files.layers import SHIPPED, Corrections, Layer, content_layer, text_layer, unreadable
from instance_catalog.files.merging import ValueOrigin, catalog_of, origins_of
from instance_catalog.types.catalog import Catalog

DATA: Final = Path(__file__).parents[1] / "data"
# The other files in data/ (drivers, MIG tables) have other shapes and other readers.
_SHIPPED: Final = ("accelerators.yaml", "nodes.yaml", "aws/*.yaml", "gcp/*.yaml")
_SUFFIXES: Final = (".yaml", ".yml")


def load_catalog(
    *,
    extra_dirs: Sequence[Path] = (),
    corrections: Sequence[Corrections] = (),
    now: datetime | None = None,
) -> Catalog:
    """The shipped catalog with the files below `extra_dirs` (YAML, recursively, in the order of their names) over it.

    `corrections` come last. Overlays that have expired at `now` do not count (None: expiry is ignored). Raises
    CatalogError with every defect of every file.
    """
    return catalog_of(_layers(extra_dirs, corrections), now=now)


def value_origins(
    name: str, *, extra_dirs: Sequence[Path] = (), now: datetime | None = None
) -> tuple[ValueOrigin, ...]:
    """The file of each value of a type and of its accelerator model; () for a name that is not in the catalog.

    Raises CatalogError as `load_catalog` does.
    """
    return origins_of(name, _layers(extra_dirs, ()), now=now)


def shipped_layers() -> tuple[Layer, ...]:
    files = sorted(path for pattern in _SHIPPED for path in DATA.glob(pattern))
    return tuple(_file_layer(path, str(path.relative_to(DATA.parent)), SHIPPED) for path in files)


def directory_layers(directory: Path, *, settled: bool = False) -> tuple[Layer, ...]:
    """The YAML files below a directory, without hidden ones. Never raises: `problems` has the error of a file that
    cannot be read.

    `settled`: files may be written while they are read, so one that does not end with a line break counts as incomplete
    (a price of 55 cut off after its first digit is still YAML).
    """
    files = sorted(
        p for p in directory.rglob("*") if p.suffix in _SUFFIXES and p.is_file() and not _is_hidden(p, directory)
    )
    if not files:
        found = "no such directory" if not directory.exists() else "no YAML file" if directory.is_dir() else "a file"
        return (unreadable(str(directory), found=found, allowed="a directory with catalog files (*.yaml)"),)
    layers = (_file_layer(path, str(path), str(directory)) for path in files)
    return tuple(_complete(layer) for layer in layers) if settled else tuple(layers)


def edited_layers(path: Path, text: str, *, directory: Path, below: Sequence[Path] = ()) -> list[Layer]:
    """The layers as they would be with `text` in the file `path` of `directory`, over the directories `below`."""
    given = [layer for other in below if other != directory for layer in directory_layers(other)]
    there = directory_layers(directory) if any(directory.rglob("*")) else ()
    kept = [layer for layer in there if layer.name not in (str(path), str(directory))]
    mine = sorted([*kept, text_layer(str(path), str(directory), text)], key=lambda layer: layer.name)
    return [*shipped_layers(), *given, *mine]


def _layers(directories: Sequence[Path], corrections: Sequence[Corrections]) -> list[Layer]:
    given = (layer for directory in directories for layer in directory_layers(directory))
    return [*shipped_layers(), *given, *map(content_layer, corrections)]


def _is_hidden(path: Path, directory: Path) -> bool:
    """Temporary files of editors, and the links behind a mounted ConfigMap, begin with a point."""
    return any(part.startswith(".") for part in path.relative_to(directory).parts)


def _file_layer(path: Path, name: str, group: str) -> Layer:
    try:
        return text_layer(name, group, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        found = f"a file that cannot be read ({error})"
        return unreadable(name, group=group, found=found, allowed="readable UTF-8 text")


def _complete(layer: Layer) -> Layer:
    if layer.problems or not layer.text or layer.text.endswith("\n"):
        return layer
    allowed = "a complete file, whose last line ends with a line break"
    return unreadable(layer.name, group=layer.group, found="a file that ends within a line", allowed=allowed)
