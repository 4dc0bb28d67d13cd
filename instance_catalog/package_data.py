"""The YAML files in this package that are no catalog files: those of data/clouds, drivers, images and mig.

Constants of the package, read once per process; the only I/O besides loader.py and the probe. Does not interpret them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from instance_catalog.frozen_map import FrozenMap

# File name without .yaml → content, sorted by name.
Folder: TypeAlias = FrozenMap[str, dict[str, Any]]
Folders: TypeAlias = FrozenMap[str, Folder]

_FOLDERS: Final = ("clouds", "drivers", "images", "mig")
_keep: Callable[[Callable[[], Folders]], Folders] | None = None


def keep_contents(keep: Callable[[Callable[[], Folders]], Folders] | None) -> None:
    """Have all folders read at once, by way of `keep`: it may know from an earlier process what its argument reads."""
    global _keep
    _keep = keep
    contents.cache_clear()
    _every.cache_clear()


@cache
def contents(folder: str) -> Folder:
    """File name without .yaml → content, for every file of a data folder, sorted by name."""
    return _read(folder) if _keep is None else _every()[folder]


@cache
def _every() -> Folders:
    def read() -> Folders:
        return FrozenMap({folder: _read(folder) for folder in _FOLDERS})

    return read() if _keep is None else _keep(read)


def _read(folder: str) -> Folder:
    # Here, because a process that finds the contents in a cache needs neither.
    from importlib.resources import files

    import yaml

    found = sorted(
        (f for f in files("instance_catalog").joinpath("data", folder).iterdir() if f.name.endswith(".yaml")),
        key=lambda f: f.name,
    )
    # The C parser is an order of magnitude faster; PyYAML has it wherever it found libyaml at build time.
    loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return FrozenMap({f.name.removesuffix(".yaml"): yaml.load(f.read_text("utf-8"), loader) for f in found})
