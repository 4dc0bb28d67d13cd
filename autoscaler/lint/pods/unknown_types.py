"""Instance types that pods select and that the catalog does not have: those of Amazon SageMaker (`ml.` before the name
of EC2), misspelt ones, and those of other families."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final

from autoscaler.kube.problem import left_by_template
from autoscaler.model.pod import Pod
from autoscaler.planning.demand.images import TYPE_KEYS
from instance_catalog.spelling import nearest
from instance_catalog.types.catalog import Catalog

_SAGEMAKER: Final = "ml."
_ALIKE_FAMILIES: Final = 0.75  # p5x and p5, trn3 and trn2, but not x2gd and g4dn
_SIZE: Final = re.compile(r"([0-9]*)xlarge$|-([0-9]+)[a-z]?$")


def ec2_name(name: str, catalog: Catalog) -> str:
    """EC2's name of an instance type of SageMaker; "" for other names, and for types that the catalog lacks."""
    own = name.removeprefix(_SAGEMAKER)
    return own if own != name and own in catalog.types else ""


def unknown_type(pod: Pod, catalog: Catalog) -> str:
    """An instance type that the pod selects, alone, and that nobody sells under this name; or nothing."""
    selected = list(pod.required_values(TYPE_KEYS))
    machines = {one.machine_type for one in catalog} | catalog.types.keys() if selected else set()
    return next((names[0] for names in selected if not machines & set(names)), "")


def of_family(name: str, catalog: Catalog, *, most: int = 3) -> list[str]:
    """The catalog's types of the family that the name has, those of the nearest size first."""
    return _nearest_sizes(name, _family(name), catalog, most)


def near_types(name: str, catalog: Catalog, *, most: int = 3) -> list[str]:
    """Those of its family, else of the family whose name is most similar; none if no name is similar."""
    known = {_family(one) for one in catalog.types}
    own = _family(name)
    families = [own] if own in known else nearest(own, known, equivalence_key=_ALIKE_FAMILIES)
    return [found for family in families for found in _nearest_sizes(name, family, catalog, most)]


def told_type(name: str, catalog: Catalog) -> tuple[tuple[str, ...], str, str]:
    """Field, message and next step about a type that the catalog lacks."""
    field = ("spec", "nodeSelector")
    if name.startswith(_SAGEMAKER):
        own = ec2_name(name, catalog)
        step = f"to plan the same machine of EC2, at its price, write {own}" if own else "name a type of EC2"
        return (
            field,
            f"selects {name}, an instance type of Amazon SageMaker: an instance group of a HyperPod cluster "
            "makes such nodes, a plan does not, and their prices are others",
            step,
        )
    if left := left_by_template(name):
        return field, f"selects instance type {name}", left
    near = near_types(name, catalog)
    hint = f"the nearest that it has: {', '.join(near)}; " if near else ""
    like = f"--like {near[0]} --vcpu N --memory SIZE" if near else "--vcpu N --memory SIZE --accelerator KEY --count N"
    return (
        field,
        f"selects instance type {name}, which is not in the catalog",
        f"{hint}if {name} is sold, add it: `foreslice catalog add {shlex.quote(name)} --into DIR {like}`, and plan "
        "with --catalog DIR",
    )


def _family(name: str) -> str:
    """p5 of p5.48xlarge, a3-highgpu of a3-highgpu-8g."""
    return name.partition(".")[0] if "." in name else name.rpartition("-")[0]


def _nearest_sizes(name: str, family: str, catalog: Catalog, most: int) -> list[str]:
    size = _size(name)

    def apart(other: str) -> tuple[float, int, str]:
        its = _size(other)
        return (max(size, its) / min(size, its) if size and its else 1000.0, len(other), other)

    own: Iterable[str] = (one for one in catalog.types if family and _family(one) == family)
    return sorted(own, key=apart)[:most]


def _size(name: str) -> int:
    """8 of g5.8xlarge and of a3-highgpu-8g, 1 of g5.xlarge; 0 if it has none."""
    found = _SIZE.search(name)
    return int(found[1] or found[2] or 1) if found else 0
