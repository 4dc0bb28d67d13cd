"""Models of accelerators that the value of a node label has in it: "Tesla-V100", "8xH100", "gd-8xa100-i128"."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from autoscaler.lint.pods.cloud_terms import cloud_of_machine
from autoscaler.lint.pods.other_cards import card_of_machine, other_card, replacing
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.drivers.nvidia_labels import product_label
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import clouds_of_labels
from instance_catalog.types.instance_type import Accelerator

_WORDS: Final = re.compile(r"[a-z]+[0-9]+[a-z]*|[a-z]+|[0-9]+[a-z]*")
_MEMORY: Final = re.compile(r"([0-9]+)g(b|i|ib)?")
_OF_MEMORY: Final = re.compile(r"(?i)(?<=[-_ ])[0-9]+g(b|i|ib)?\b")
_INFINIBAND: Final = re.compile(r"(?<=[0-9])ib\b")  # of "8xh100ib", a machine of CoreWeave
COUNT: Final = re.compile(r"\b([0-9]+)x(?=[a-z])")  # "8xH100"
COUNTED: Final = re.compile(r"\b([a-z]+[0-9]+[a-z]?)x([0-9]{1,2})\b")  # "a100x2"
_MODEL: Final = re.compile(r"(?!gpu)[a-z]{1,3}[0-9]{2,4}[a-z]{0,2}")  # a40, gb200, mi300x; no pool1
# Workstation and desktop cards, whose number stands alone: Quadro_RTX_5000, GeForce_GTX_1070_Ti.
_DESKTOP: Final = frozenset({"rtx", "gtx", "quadro", "geforce"})
_TPU: Final = re.compile(r"\btpu[-_ ](?=[0-9])")  # "tpu-7x" for tpu7x
# Words of values that name no whole GPU, or one that a node must not have.
_OTHERWISE: Final = frozenset({"mig", "no", "non", "not", "shared", "without"})
# What shows that a label speaks of an accelerator: "l4" alone may be a rack.
ABOUT: Final = ("gpu", "tpu", "accelerator", "nvidia", "tesla", "cuda", "device", "card")


# What shows that a label names a group of nodes, which people call by their accelerators.
OF_GROUPS: Final = ("nodepool", "node-pool", "nodegroup", "node-group", "provisioner", "compute-class")


def names_groups(key: str, words: Collection[str] = OF_GROUPS) -> bool:
    return any(word in key.lower().replace("_", "-") for word in words)


def whole_cards(catalog: Catalog) -> set[Accelerator]:
    """The accelerators of the catalog without virtual ones."""
    return {one.accelerator for one in catalog if one.accelerator is not None and not one.accelerator.virtual}


def accelerators_named(key: str, value: str, catalog: Catalog) -> tuple[str, ...]:
    """The catalog's accelerators that the value of a node label names, by key: of one model, and of the memory that
    the value names. None for what names several models, a part of one, or what a node must not be. A group of nodes
    of one cloud has accelerators of that cloud."""
    value = card_of_machine(value)
    words = _words_of(value)
    if not (_about_a_card(key, value) or (names_groups(key) and not words & _OTHERWISE)):
        return ()
    found = {card for card in _offered(key, catalog) if _WORDS.findall(card.model.lower()) and _named(card, words)}
    sizes = _sizes(words)
    fitting = [card for card in found if not sizes or not _size_of(card) or _size_of(card) & sizes]
    one_model = len({card.model for card in found}) == 1
    return tuple(sorted(card.key for card in fitting)) if one_model else ()


def _offered(key: str, catalog: Catalog) -> set[Accelerator]:
    clouds = clouds_of_labels((key,)) if names_groups(key) else frozenset[str]()
    offered = (one for one in catalog if not clouds or one.cloud in clouds)
    return {one.accelerator for one in offered if one.accelerator is not None and not one.accelerator.virtual}


def products_named(value: str, catalog: Catalog) -> tuple[str, ...]:
    """The catalog's values of the label nvidia.com/gpu.product for the model that such a value names: first those of
    the memory that it names."""
    key, whole = labels.NVIDIA_GPU_PRODUCT, _OF_MEMORY.sub("", value)
    named = dict.fromkeys((*accelerators_named(key, value, catalog), *accelerators_named(key, whole, catalog)))
    products = {card.key: product_label(card) for card in whole_cards(catalog)}
    return tuple(dict.fromkeys(filter(None, (products[name] for name in named))))


def memory_named(value: str) -> int:
    """The memory in the name of a product, in GB; 0 if it names none."""
    found = _OF_MEMORY.search(value)
    return int(re.sub("[^0-9]", "", found[0])) if found else 0


def _words_of(value: str) -> frozenset[str]:
    """The words of a label's value without how many accelerators there are."""
    text = COUNTED.sub(r"\1", COUNT.sub("", value.lower()))
    return frozenset(_WORDS.findall(_INFINIBAND.sub("", _TPU.sub("tpu", text))))


def _about_a_card(key: str, value: str) -> bool:
    """True if the label speaks of an accelerator, and of a whole one that the node must have: other clouds have it in
    the names of their machines."""
    words = _words_of(value)
    about = any(word in f"{key} {value}".lower() for word in ABOUT) or bool(cloud_of_machine(value))
    return about and not words & _OTHERWISE


def nearest_accelerators(key: str, value: str, catalog: Catalog) -> tuple[str, ...]:
    """Where the catalog lacks the model that the value names: the one with a letter more, A10G for A10, or else those
    of the least memory that is as much, L40S for A40."""
    if not _about_a_card(key, value) or accelerators_named(key, value, catalog):
        return ()
    models = {card.model for card in whole_cards(catalog)}
    words = {word for word in _WORDS.findall(value.lower()) if word[-1:].isdigit() and not word.isdigit()}
    near = {model for model in models if model[-1:].isalpha() and model[:-1].lower() in words}
    if len(near) == 1:
        return accelerators_named(key, f"gpu {near.pop()}", catalog)
    other = other_card(_words_of(value))
    return tuple(sorted({card.key for card in replacing(other, whole_cards(catalog))})) if other else ()


def lacking_model(key: str, value: str, catalog: Catalog) -> bool:
    """True if the label names a model of GPU, such as A40, and the catalog has neither that nor one nearest to it."""
    words = _words_of(value)
    numbered = bool(words & _DESKTOP) and any(word[:4].isdigit() and len(word) >= 4 for word in words)
    named = _about_a_card(key, value) and (numbered or any(_MODEL.fullmatch(word) for word in words))
    return named and not (accelerators_named(key, value, catalog) or nearest_accelerators(key, value, catalog))


def _named(card: Accelerator, words: Collection[str]) -> bool:
    return all(word in words for word in _WORDS.findall(card.model.lower()))


def _size_of(card: Accelerator) -> set[str]:
    return _sizes(_WORDS.findall(card.key))


def _sizes(words: Collection[str]) -> set[str]:
    return {found[1] for word in words if (found := _MEMORY.fullmatch(word))}
