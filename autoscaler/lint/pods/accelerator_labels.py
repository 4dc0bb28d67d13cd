"""Labels by which pods select a model of accelerator, with values that no type of the catalog has."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from autoscaler.lint.pods.card_names import accelerators_named, products_named, whole_cards
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.drivers.nvidia_labels import product_label
from instance_catalog.prediction.system_labels import ACCELERATOR_KEYS, accelerator_names
from instance_catalog.spelling import completed, nearest
from instance_catalog.types.catalog import Catalog

MODEL_KEYS: Final = (*ACCELERATOR_KEYS, labels.ACCELERATOR, labels.NVIDIA_GPU_PRODUCT)
# Of nodes that hand out parts of GPUs, in what GPU feature discovery writes: not another model.
_OF_PARTS: Final = re.compile("-SHARED$|-MIG-")
# How much alike names of products have to be: all begin with NVIDIA.
_LIKE: Final = 0.85


def unknown_accelerator(pod: Pod, key: str, catalog: Catalog, snapshot: Snapshot) -> str:
    """An accelerator that the pod selects by one of MODEL_KEYS, and that no type of the catalog, pool or node has; or
    nothing."""
    selected = list(pod.required_values({key}))
    if not selected:
        return ""
    had = (*(pool.labels for pool in snapshot.pools), *(node.labels for node in snapshot.nodes))
    known = _names(key, catalog) | {given[key] for given in had if key in given}
    return next((names[0] for names in selected if not known & set(names) and not _OF_PARTS.search(names[0])), "")


def accelerator_told(name: str, key: str, catalog: Catalog, *, parts: bool = False) -> tuple[tuple[str, ...], str, str]:
    """Field, message and next step about such an accelerator; the step has the values that the label may have.
    `parts`: pods ask for MIG parts of it, and no node that a plan buys for these has the label of the product."""
    known = _names(key, catalog)
    of_products = key == labels.NVIDIA_GPU_PRODUCT
    written = re.sub(r"[\s_]+", "-", name) if of_products else name
    if of_products:
        near = list(products_named(name, catalog)) or nearest(written, known, equivalence_key=_LIKE)
    else:
        near = nearest_value(name, key, catalog)
    hint = f"did you mean {' or '.join(near)}? If not, " if near else ""
    values = "`foreslice catalog list -o wide`" if key == labels.ACCELERATOR else ", ".join(sorted(known))
    spelling = f", which GPU feature discovery would write {written}," if written != name else ""
    place, message = ("spec", "nodeSelector", key), f"selects {key}={name}, and {name}{spelling} is not in the catalog"
    if parts and of_products and (cards := accelerators_named(key, name, catalog)):
        here = (
            f"select it by {labels.ACCELERATOR} ({' or '.join(cards)}), which nodes with claimed MIG parts have as well"
        )
        return place, f"{message} by that name", here
    return (
        place,
        f"{message}: it may be sold, but no plan has it",
        f"{hint}select one that it has ({values}), or add a type with yours by `foreslice catalog add`",
    )


def nearest_value(name: str, key: str, catalog: Catalog) -> list[str]:
    """The value of the catalog that the name abbreviates or nearly spells; none if there is no such one."""
    return completed(name, _names(key, catalog), most=1)


def _names(key: str, catalog: Catalog) -> Set[str]:
    """The values of the label that nodes of the catalog's types have."""
    if key == labels.ACCELERATOR:
        return {one.accelerator.key for one in catalog if one.accelerator is not None}
    if key != labels.NVIDIA_GPU_PRODUCT:
        return accelerator_names(key, catalog)
    return {product_label(card) for card in whole_cards(catalog) if card.vendor == "NVIDIA"} - {""}
