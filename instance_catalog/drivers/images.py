"""Node images and NVIDIA's driver branches as data: the driver of an image and the types that it supports
(data/images).

Constants of the package. Must not know what follows from them; that is prediction/runnable.py.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import contents

_BRANCHES: Final = "nvidia_branches"


@dataclass(frozen=True, slots=True)
class NodeImage:
    """A node image with accelerator drivers. `types` and `missing` are patterns over the names of instance types: those
    it supports, and those it is known not to support.

    `drivers` are the branches of NVIDIA's driver that it ships, of which a node loads the one for its type (none: not
    known); `architecture` "" is any.
    """

    name: str
    cloud: str
    vendor: str
    architecture: str
    types: tuple[str, ...]
    missing: tuple[str, ...]
    drivers: tuple[int, ...]
    source: str

    def lists(self, instance_type: str) -> bool | None:
        """True if the image supports the type; None if unknown, as for types that are newer than the facts."""
        if any(fnmatchcase(instance_type, pattern) for pattern in self.types):
            return True
        return False if any(fnmatchcase(instance_type, pattern) for pattern in self.missing) else None


@dataclass(frozen=True, slots=True)
class Superseded:
    """Types that node images serve and the vendor's current software does not: why, and what to do `instead`.

    `images` are parts of the names of container images that do not run on them, but on the `accelerators` (by key), and
    `old_images` those that run on nothing newer; `resources` are beginnings of what pods ask for.
    """

    types: tuple[str, ...]
    images: tuple[str, ...]
    old_images: tuple[str, ...]
    resources: tuple[str, ...]
    accelerators: tuple[str, ...]
    problem: str
    instead: str
    source: str


@dataclass(frozen=True, slots=True)
class Branches:
    """The oldest and the last branch of NVIDIA's driver that support something, with the source. None: no bound."""

    oldest: int | None = None
    last: int | None = None
    source: str = ""


@cache
def node_images() -> tuple[NodeImage, ...]:
    return tuple(
        NodeImage(
            name=row["name"],
            cloud=row["cloud"],
            vendor=row["vendor"],
            architecture=row.get("architecture", ""),
            types=tuple(row["types"]),
            missing=tuple(row.get("missing", ())),
            drivers=tuple(row.get("drivers", ())),
            source=f"{content['source']} {content['date']}",
        )
        for name, content in contents("images").items()
        if name != _BRANCHES
        for row in content["images"]
    )


@cache
def vendors_without_image() -> FrozenMap[tuple[str, str], str]:
    """Clouds and vendors of accelerators for which no image has a driver, with the source of that."""
    return FrozenMap(
        {
            (content["images"][0]["cloud"], vendor): f"{content['source']} {content['date']}"
            for name, content in contents("images").items()
            if name != _BRANCHES
            for vendor in content.get("without_image", ())
        }
    )


@cache
def superseded_types() -> tuple[Superseded, ...]:
    return tuple(
        Superseded(
            types=tuple(row["types"]),
            images=tuple(row["images"]),
            old_images=tuple(row["old_images"]),
            resources=tuple(row["resources"]),
            accelerators=tuple(row["accelerators"]),
            problem=row["problem"],
            instead=row["instead"],
            source=row["source"],
        )
        for content in contents("images").values()
        for row in content.get("superseded", ())
    )


@cache
def architecture_branches() -> FrozenMap[str, Branches]:
    """By GPU architecture as NVML names it; those without a known bound are absent."""
    rows = contents("images")[_BRANCHES]["architectures"]
    return FrozenMap(
        {
            name: Branches(row.get("oldest"), row.get("last"), f"{row['source']} {row['date']}")
            for name, row in rows.items()
        }
    )


@cache
def dra_driver_branches() -> Branches:
    """The driver branches that the DRA driver gpu.nvidia.com needs."""
    row = contents("images")[_BRANCHES]["dra_driver"]
    return Branches(row["oldest"], None, f"{row['source']} {row['date']}")


@cache
def passthrough_source() -> str:
    """The source of the rule that passthrough needs an IOMMU."""
    row = contents("images")[_BRANCHES]["passthrough"]
    return f"{row['source']} {row['date']}"
