"""Checks whether a type works with its drivers on the existing node images, with the source if it does not.

The facts are data/images and the bounds in the entries of types. A pool whose drivers name the branch of NVIDIA's
driver (nvidia:driver=595.71.05) has an image of its own: then only the bounds count. Pure.
"""

from __future__ import annotations

from functools import lru_cache

from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.images import (
    Branches,
    NodeImage,
    architecture_branches,
    dra_driver_branches,
    node_images,
    passthrough_source,
    superseded_types,
    vendors_without_image,
)
from instance_catalog.drivers.profile import DriverProfile, DriverSet, StaticMig
from instance_catalog.types.instance_type import InstanceType, provenance_of

_NVIDIA = "NVIDIA"


@dataclass(frozen=True, slots=True)
class NotRunnable:
    """The reason why nothing would run: `problem` as text, and the `source` of the fact."""

    problem: str
    source: str


@dataclass(frozen=True, slots=True)
class NeedsMore:
    """A step that users must take before the accelerators of a type work: `next_step`, because of `problem`."""

    problem: str
    next_step: str
    source: str


def what_else_it_needs(instance_type: InstanceType) -> NeedsMore | None:
    """The requirement that a node of the type does not meet without preparation, with DRA or a device plugin: a driver
    that no node image of the cloud has, or programs for superseded accelerators. None if no requirement is known."""
    card = instance_type.accelerator
    key = (instance_type.cloud, card.vendor if card else "")
    if card is not None and key in vendors_without_image():
        size = card.memory or card.api_memory
        name = f"{card.model} with {size}" if size else card.model
        return NeedsMore(
            f"the node images of {instance_type.cloud} have no driver for {card.vendor} accelerators",
            "name an image of your own with that driver in the pool's node template, or run an operator that installs "
            f"it, and check that the driver and your software support the {name}",
            vendors_without_image()[key],
        )
    for found in superseded_types():
        if instance_type.name in found.types:
            return NeedsMore(found.problem, found.instead, found.source)
    return None


@lru_cache(maxsize=4096)
def why_not_runnable(instance_type: InstanceType, drivers: DriverSet) -> NotRunnable | None:
    """The reason why the type's accelerators would not work on its node. None if they would, or if it is unknown."""
    accelerator = instance_type.accelerator
    if accelerator is None:
        return None
    if accelerator.vendor != _NVIDIA:
        return _not_listed(instance_type, _images(instance_type, accelerator.vendor))
    profile = drivers.profile("nvidia")
    return (
        _out_of_branches(instance_type, profile)
        or _no_passthrough(instance_type, profile)
        or (None if profile is not None and profile.option("driver") else _no_image(instance_type))
    )


def branch_bounds(instance_type: InstanceType) -> tuple[Branches, Branches]:
    """The bound of the oldest branch and that of the last one, each with its source."""
    accelerator = instance_type.accelerator
    of_architecture = architecture_branches().get(accelerator.architecture or "" if accelerator else "", Branches())
    own = provenance_of(instance_type.provenance, "driver") or provenance_of(instance_type.provenance, "accelerator")
    source = f"{own.source} {own.date}" if own else instance_type.origin
    of_type = Branches(_branch(instance_type.min_driver), _branch(instance_type.max_driver), source)
    needed = dra_driver_branches()
    oldest = max((of_type, of_architecture, needed), key=lambda bound: bound.oldest or 0)
    last = min((of_type, of_architecture), key=lambda bound: bound.last or 10**9)
    return oldest, last


def _out_of_branches(instance_type: InstanceType, profile: DriverProfile | None) -> NotRunnable | None:
    oldest, last = branch_bounds(instance_type)
    if oldest.oldest is not None and last.last is not None and last.last < oldest.oldest:
        model = instance_type.accelerator.model if instance_type.accelerator else instance_type.name
        problem = f"branch {last.last} of NVIDIA's driver is the last for {model}; the DRA driver needs {oldest.oldest}"
        return NotRunnable(problem, last.source)
    image = profile.option("driver") if profile is not None else None
    branch = _branch(image)
    if branch is None:
        return None
    if oldest.oldest is not None and branch < oldest.oldest:
        return NotRunnable(
            f"needs branch {oldest.oldest} of NVIDIA's driver or newer, the image has {image}", oldest.source
        )
    if last.last is not None and branch > last.last:
        return NotRunnable(f"branch {last.last} of NVIDIA's driver is its last, the image has {image}", last.source)
    return None


def _no_passthrough(instance_type: InstanceType, profile: DriverProfile | None) -> NotRunnable | None:
    if profile is None or not profile.gates.get("PassthroughSupport") or isinstance(profile.mig, StaticMig):
        return None
    if instance_type.bare_metal:
        return None
    problem = "is a virtual machine without an IOMMU, and PassthroughSupport needs one: choose a metal type"
    return NotRunnable(problem, passthrough_source())


@lru_cache(maxsize=1024)  # a type is offered with several sets of drivers
def _no_image(instance_type: InstanceType) -> NotRunnable | None:
    """No image has the type and a branch that runs it. Where images that ship a known branch have the wrong one, those
    whose branch is not known are no reason to hope."""
    images = _images(instance_type, _NVIDIA)
    oldest, last = branch_bounds(instance_type)
    possible = [image for image in images if image.lists(instance_type.name) is not False]
    known = [image for image in possible or images if image.drivers]
    if known and not any(_runs(branch, oldest, last) for image in known for branch in image.drivers):
        return _wrong_branch(known[0], oldest, last)
    return _not_listed(instance_type, images)


def _wrong_branch(image: NodeImage, oldest: Branches, last: Branches) -> NotRunnable:
    old = oldest.oldest is not None and max(image.drivers) < oldest.oldest
    bound, wanted = (oldest, f"{oldest.oldest} or newer") if old else (last, f"{last.last} or older")
    has = " and ".join(map(str, image.drivers))
    problem = (
        f"needs branch {wanted} of NVIDIA's driver, and image {image.name} has {has}: build an image with it "
        "and name its driver in the pool's drivers, as in nvidia:driver=595.71.05"
    )
    return NotRunnable(problem, bound.source)


def _not_listed(instance_type: InstanceType, images: list[NodeImage]) -> NotRunnable | None:
    if not images or any(image.lists(instance_type.name) is not False for image in images):
        return None
    names = " and ".join(image.name for image in images)
    return NotRunnable(f"{names} do{'es' if len(images) == 1 else ''} not support it", images[0].source)


def _images(instance_type: InstanceType, vendor: str) -> list[NodeImage]:
    """The node images of the type's cloud for its architecture and this vendor's accelerators."""
    cloud, architectures = instance_type.cloud, ("", instance_type.architecture)
    of_vendor = (image for image in node_images() if (image.cloud, image.vendor) == (cloud, vendor))
    return [image for image in of_vendor if image.architecture in architectures]


def _runs(branch: int, oldest: Branches, last: Branches) -> bool:
    return (oldest.oldest or 0) <= branch <= (last.last or branch)


def _branch(driver: str | None) -> int | None:
    """580.126.09 → 580."""
    return int(driver.partition(".")[0]) if driver else None
