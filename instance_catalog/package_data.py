"""The YAML files in this package that are no catalog files: those of data/clouds, drivers, images and mig.

Constants of the package, read once per process; the only I/O besides loader.py and the probe. Does not interpret them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from instance_catalog.frozen_map import FrozenMap


@cache
def contents(folder: str) -> FrozenMap[str, dict[str, Any]]:
    """File name without .yaml → content, for every file of a data folder, sorted by name."""
    found = sorted(
        (f for f in files("instance_catalog").joinpath("data", folder).iterdir() if f.name.endswith(".yaml")),
        key=lambda f: f.name,
    )
    # The C parser is an order of magnitude faster; PyYAML has it wherever it found libyaml at build time.
    loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return FrozenMap({f.name.removesuffix(".yaml"): yaml.load(f.read_text("utf-8"), loader) for f in found})
