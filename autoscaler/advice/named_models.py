"""Labels of other clouds and systems whose value names an accelerator: the pod may select it by a label of Foreslice.

`machine.cluster.vke.volcengine.com/gpu-name In [Tesla-V100]` matches no node of AWS or Google Cloud, but says which GPU
its author wants; without the requirement the pod would get any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_pods
from autoscaler.advice.situation import Situation
from autoscaler.lint.other_systems import type_named
from autoscaler.lint.pods.card_names import (
    ABOUT,
    COUNT,
    COUNTED,
    OF_GROUPS,
    accelerators_named,
    lacking_model,
    memory_named,
    names_groups,
    nearest_accelerators,
    products_named,
    whole_cards,
)
from autoscaler.lint.pods.cloud_terms import OF_EVERY_NODE, cloud_named, cloud_of_machine
from autoscaler.lint.pods.compute_classes import machines_of_class
from autoscaler.lint.pods.gpu_shares import SHARED_PRODUCT
from autoscaler.lint.pods.mig_parts import product_of_parts
from autoscaler.lint.pods.unserved import machines_having
from autoscaler.model.capacity import NO_TEMPLATE, CapacityPool
from autoscaler.model.other_autoscalers import ComputeClass
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Fact
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import TYPE_KEYS, types_of_images
from autoscaler.planning.supply.drivers import FEATURE_DISCOVERY
from instance_catalog.dataclass import replace
from instance_catalog.drivers.device_plugins import network_card
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.prediction.device_plugins import is_plugin_resource
from instance_catalog.prediction.drivers.nvidia_labels import product_label
from instance_catalog.prediction.system_labels import type_labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts, clouds_of_labels, facts_of
from instance_catalog.types.instance_type import InstanceType

# Of the catalog's clouds: what such a label says is predicted, or names a group of nodes that somebody makes.
OWN_DOMAINS: Final = tuple(domain for facts in cloud_facts().values() for domain in facts.domains)
# Labels by which people choose a machine for its accelerator.
MACHINE_KEYS: Final = (TYPE_KEYS | labels.DISCOVERED_LABELS | {labels.ACCELERATOR}).union(
    *(facts.machine_labels for facts in cloud_facts().values())
)
_GENERATION: Final = re.compile(r"(?<=[a-z])(?=[0-9])")  # where the number of a family begins
_SHORTENED: Final = re.compile(r"([a-z0-9]+)-([a-z])[a-z]+-([0-9]+)[a-z]?")  # g2s24 is short for g2-standard-24
_MOST_VALUES: Final = 16  # more are no names of models

# What shows that a label names a group of machines: "p5" alone may be a rack.
_OF_GROUPS: Final = (*OF_GROUPS, "instance", "machine")


def families_named(key: str, value: str, catalog: Catalog) -> tuple[str, ...]:
    """The families of EC2's instance types, such as inf2, that the name of a group of nodes has in it as a word."""
    if not names_groups(key, _OF_GROUPS):
        return ()
    text = value.lower()
    return tuple(f for f in _families(catalog) if re.search(rf"(?<![a-z0-9]){_spelt(f)}(?![a-z0-9])", text))


def type_shortened(key: str, value: str, catalog: Catalog) -> str:
    """The instance type that the name of a group of nodes has in it as a word, with one letter for the middle part:
    g2s24 for g2-standard-24; nothing if none or several are."""
    words = set(re.split(r"[^a-z0-9]+", value.lower())) if names_groups(key, _OF_GROUPS) else set()
    short = ((name, _SHORTENED.fullmatch(name)) for name in catalog.types)
    found = [name for name, match in short if match is not None and "".join(match.groups()) in words]
    return found[0] if len(found) == 1 else ""


def types_of_series(key: str, value: str, catalog: Catalog) -> tuple[str, ...]:
    """The instance types whose name without its last part ("a4-highgpu" of a4-highgpu-8g) the name of a group of nodes
    has in it as words."""
    return _beginning(key, value, catalog, lambda name: name.rpartition("-")[0] if name.count("-") > 1 else "")


def machine_family(key: str, value: str, catalog: Catalog) -> str:
    """The one family of Google Cloud ("a4" of a4-highgpu-8g) that the name of a group of nodes has in it as a word."""
    named = {catalog.types[one] for one in _beginning(key, value, catalog, lambda name: name.partition("-")[0])}
    families = {type_labels(one).get(labels.GKE_MACHINE_FAMILY, "") for one in named}
    return families.pop() if len(families) == 1 else ""


def _beginning(key: str, value: str, catalog: Catalog, part: Callable[[str], str]) -> tuple[str, ...]:
    text = f"-{re.sub('[^a-z0-9]+', '-', value.lower())}-" if names_groups(key, _OF_GROUPS) else ""
    return tuple(name for name in catalog.types if (begun := part(name)) and f"-{begun}-" in text)


def count_named(value: str) -> str:
    """The number of accelerators of a node in a label's value: 2 for "gpu-l4x2", 8 for "8xH100"; nothing if the value
    has no number or several."""
    text = value.lower()
    found = {match[1] for match in COUNT.finditer(text)} | {match[2] for match in COUNTED.finditer(text)}
    return found.pop() if len(found) == 1 else ""


def families_meant(labels_of: Mapping[str, str], catalog: Catalog) -> tuple[str, ...]:
    """The one family that the labels name, or all those of Trainium for "trn" in the name of a group of nodes and of
    Inferentia for "inf"; none where they name several, or where only nodes of another cloud have the labels."""
    families = _families(_there(labels_of, catalog))
    found = {family for key, value in labels_of.items() for family in families_named(key, value, catalog)}
    if found:
        return tuple(found.intersection(families)) if len(found) == 1 else ()
    groups = [value for key, value in labels_of.items() if any(word in key.lower() for word in _OF_GROUPS)]
    words = {word for value in groups for word in re.split(r"[^a-z0-9]+", value.lower()) if len(word) > 2}
    return tuple(family for family in families if _GENERATION.split(family)[0] in words)


def _families_meant(labels_of: Mapping[str, str], asked: Situation) -> tuple[str, ...]:
    """The same, of machines that have a device that the pod requests: "inf" may be short for inference as well."""
    families = families_meant(labels_of, asked.catalog)
    devices = [name for each in asked.pod.containers for name in each.requests if _device(name)]
    having = {type_name for name in devices for type_name in machines_having(name, asked.catalog)}
    there = _families(asked.catalog.types[name] for name in having)
    return tuple(family for family in families if family in there) if devices else families


def machine_meant(labels_of: Mapping[str, str], pool: CapacityPool, asked: Situation) -> Iterator[Requirement]:
    """The machine that the values of labels describe; the author of the labels has such machines. The instance type, or
    those on which the pod's images work, else the accelerator and how many, else the family; and the cloud whose key it
    is. A ComputeClass that is given says it itself."""
    there = {requirement.key for requirement in pool.requirements}
    given = class_given(labels_of, asked.snapshot)
    if given is not None and (asking := machines_of_class(given, asked.catalog)):
        found = {one.key: one.values for one in asking}
        found |= {labels.CLOUD: tuple(clouds_of_labels(labels_of))} if pool.node_template == NO_TEMPLATE else {}
    elif needed := _types_meant(labels_of, asked.catalog) or types_of_images(asked.pod) or _series(labels_of, asked):
        found = {labels.INSTANCE_TYPE: needed}
    else:
        cards = _cards_meant(labels_of, asked.catalog)
        families = _families_meant(labels_of, asked)
        clouds = tuple(clouds_of_labels(labels_of))
        found = {labels.KARPENTER_FAMILY: families} if families and not cards else {labels.ACCELERATOR: cards}
        if not (cards or families):
            found = {labels.GKE_MACHINE_FAMILY: _family(labels_of, asked)}
        if len(clouds) == 1:
            found |= _count_meant(labels_of, cards, clouds[0], asked.catalog)
            # A node template has a cloud.
            found |= {labels.CLOUD: clouds} if pool.node_template == NO_TEMPLATE else {}
    yield from (Requirement(key, "In", values) for key, values in found.items() if values and key not in there)


def class_given(labels_of: Mapping[str, str], snapshot: Snapshot) -> ComputeClass | None:
    """The ComputeClass that one of the labels names, if it is among the objects."""
    return snapshot.compute_classes.get(labels_of.get(labels.GKE_COMPUTE_CLASS, ""))


def is_read(key: str, value: str, asked: Situation) -> bool:
    """True if the machine that is advised is taken from the label alone."""
    named = {key: value}
    return bool(
        _types_meant(named, asked.catalog)
        or (
            not types_of_images(asked.pod)
            and (
                _series(named, asked)
                or _cards_meant(named, asked.catalog)
                or _families_meant(named, asked)
                or _family(named, asked)
            )
        )
    )


def _types_meant(labels_of: Mapping[str, str], catalog: Catalog) -> tuple[str, ...]:
    """The one instance type that they name, in full or shortened."""
    found = (type_named(value, catalog) or type_shortened(key, value, catalog) for key, value in labels_of.items())
    types = {name for name in found if name}
    return tuple(types) if len(types) == 1 else ()


def _series(labels_of: Mapping[str, str], asked: Situation) -> tuple[str, ...]:
    """The instance types of the series that they name: those with as many accelerators as the pod requests, if any."""
    found = [name for key, value in labels_of.items() for name in types_of_series(key, value, asked.catalog)]
    counts = {amount.value for each in asked.pod.containers for name, amount in each.requests.items() if _device(name)}
    equal = [name for name in found if {asked.catalog.types[name].device_count} == counts]
    return tuple(dict.fromkeys(equal or found))


def _device(resource: str) -> bool:
    return is_plugin_resource(resource) and not network_card(resource)


def _family(labels_of: Mapping[str, str], asked: Situation) -> tuple[str, ...]:
    """The one family of Google Cloud that they name."""
    found = {family for key, value in labels_of.items() if (family := machine_family(key, value, asked.catalog))}
    return tuple(found) if len(found) == 1 else ()


def _cards_meant(labels_of: Mapping[str, str], catalog: Catalog) -> tuple[str, ...]:
    """The accelerators that they name, by key; none where two labels name different models, or where no machine of the
    cloud whose nodes have the labels has one."""
    named = [set(found) for key, value in labels_of.items() if (found := accelerators_named(key, value, catalog))]
    there = {one.accelerator.key for one in _there(labels_of, catalog) if one.accelerator}
    return tuple(sorted(there.intersection(*named))) if named else ()


def _there(labels_of: Mapping[str, str], catalog: Catalog) -> list[InstanceType]:
    """The instance types of the clouds whose nodes alone have one of the labels; without any of these, all."""
    clouds = clouds_of_labels(labels_of)
    return [one for one in catalog if not clouds or one.cloud in clouds]


def _count_meant(
    labels_of: Mapping[str, str], cards: Collection[str], cloud: str, catalog: Catalog
) -> dict[str, tuple[str, ...]]:
    """The label with how many of these accelerators a node has, where a type has so many."""
    label = facts_of(cloud).count_label
    counts = {count for value in labels_of.values() if (count := count_named(value))}
    own = (one for one in catalog if one.accelerator is not None and one.accelerator.key in cards)
    found = counts & {type_labels(one).get(label) for one in own}
    return {label: tuple(found)} if len(found) == len(counts) == 1 else {}


def _families(types: Iterable[InstanceType]) -> list[str]:
    return sorted({family for one in types if (family := type_labels(one).get(labels.KARPENTER_FAMILY))})


def _spelt(family: str) -> str:
    """The family as people write it: trn2 or trn-2."""
    return _GENERATION.sub("-?", re.escape(family), count=1)


def renamed_products(asked: Situation) -> Iterator[Change]:
    """The product's name as GPU feature discovery writes it, where the pod selects it with another spelling; and those
    of the same model with another memory, those with less last."""
    key = labels.NVIDIA_GPU_PRODUCT
    values = _selected(asked.pod).get(key, ())
    if Code.NODE_SELECTOR_MISMATCH not in asked.codes or len(values) != 1 or key not in asked.pod.node_selector:
        return
    (was,) = values
    products = products_named(was.removesuffix(SHARED_PRODUCT), asked.catalog)
    wanted = memory_named(was)
    for value in sorted(products, key=lambda name: memory_named(name) < wanted) if was not in products else ():
        edit, size = on_pods(asked.keys, partial(_of_product, product=value)), memory_named(value)
        facts = {"memory": f"{size}GB of memory instead of {wanted}GB"} if 0 < size != wanted > 0 else {}
        yield Change.of(ChangeKind.REWRITE_TYPE, asked.subject, edit, key=key, was=was, value=value, **facts)


def _of_product(pod: Pod, product: str) -> Pod:
    return replace(pod, node_selector=pod.node_selector.with_items({labels.NVIDIA_GPU_PRODUCT: product}))


def of_other_memory(change: Change, asked: Situation) -> Iterator[Change]:
    """The change with the products of the same model that have another memory in the place of the one that it names."""
    parts, products = change.steps, tuple(renamed_products(asked))
    if any(part in products for part in parts):
        for other in (one for one in products if one not in parts):
            yield Change.together(*(other if part in products else part for part in parts))


def lacking_label(key: str, value: str, catalog: Catalog) -> bool:
    """The same of a label whose key, too, speaks of an accelerator: names of groups of nodes have numbers as well."""
    return any(word in key.lower() for word in ABOUT) and lacking_model(key, value, catalog)


def has_nearest(key: str, value: str, catalog: Catalog) -> bool:
    """True if `nearest_models` has another model for such a label."""
    return not key.startswith(OWN_DOMAINS) and bool(nearest_accelerators(key, value, catalog))


def nearest_models(asked: Situation) -> Iterator[Change]:
    """For a label that names a model which no type has: the model that comes nearest by its name."""
    yield from _renamed(asked, nearest_accelerators, ChangeKind.NEAREST_MODEL)


def renamed_models(asked: Situation) -> Iterator[Change]:
    """For each label by which the pod selects such an accelerator: foreslice.dev/accelerator instead."""
    yield from _renamed(asked, accelerators_named, ChangeKind.REWRITE_LABEL)


def models_of_parts(asked: Situation) -> Iterator[Change]:
    """For the product of MIG parts that the pod selects: foreslice.dev/accelerator, which nodes with claimed parts have
    as well."""
    yield from _renamed(asked, _of_parts, ChangeKind.REWRITE_LABEL)


def _of_parts(key: str, value: str, catalog: Catalog) -> tuple[str, ...]:
    product = product_of_parts(value) if key == labels.NVIDIA_GPU_PRODUCT else ""
    return accelerators_named(key, product, catalog) if product else ()


def _renamed(
    asked: Situation, named_by: Callable[[str, str, Catalog], tuple[str, ...]], kind: ChangeKind
) -> Iterator[Change]:
    if not asked.codes & {Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH}:
        return
    for key, values in _selected(asked.pod).items():
        if key == labels.ACCELERATOR or key.startswith(OWN_DOMAINS) or len(values) > _MOST_VALUES:
            continue
        named = {value: named_by(key, value, asked.catalog) for value in values}
        wanted = Requirement(labels.ACCELERATOR, "In", _keys(values, named))
        pod = _selecting(asked.pod, key, named)
        if pod is not None and wanted.values:
            beside = labels_of_flavor(key, asked.pod)
            edit = on_pods(asked.keys, partial(_selecting_all, key=key, named=named, beside=beside))
            facts: dict[str, Fact] = {"label": wanted.key, "accelerators": wanted.values}
            if key in labels.DISCOVERED_LABELS and discovered_values(asked.catalog) >= {*values}:
                facts["profile"] = ":".join(FEATURE_DISCOVERY)
            if beside:
                facts |= {"flavor": asked.pod.flavor_labels[key], "given": _shown_labels(asked.pod, (key, *beside))}
            yield Change.of(kind, asked.subject, edit, key=key, was=values, **facts)


def discovered_values(catalog: Catalog) -> set[str]:
    """The products that GPU feature discovery writes on nodes of the catalog's types."""
    return {product_label(card) for card in whole_cards(catalog)} - {""}


def labels_of_flavor(key: str, pod: Pod) -> tuple[str, ...]:
    """The keys of the other labels that the pod gets from a ResourceFlavor which names a machine of another cloud by
    this one: its nodes are all there. None for a label of nodes here, and for one that no flavor adds."""
    elsewhere = cloud_named(key) or cloud_of_machine(pod.node_selector.get(key, ""))
    flavor = pod.flavor_labels.get(key) if elsewhere else None
    named = (k for k, name in pod.flavor_labels.items() if name == flavor and k != key and k in pod.node_selector)
    return tuple(sorted(k for k in named if k not in OF_EVERY_NODE))


def _shown_labels(pod: Pod, keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{key}={pod.node_selector[key]}" for key in keys)


def keys_of_models(pod: Pod, catalog: Catalog) -> set[str]:
    """The keys of labels of others whose values, all of them, name accelerators, also those that the catalog lacks."""
    return {
        key
        for key, values in _selected(pod).items()
        if not key.startswith(OWN_DOMAINS) and 0 < len(values) <= _MOST_VALUES
        if all(
            accelerators_named(key, value, catalog)
            or nearest_accelerators(key, value, catalog)
            or lacking_model(key, value, catalog)
            for value in values
        )
    }


def _selected(pod: Pod) -> dict[str, tuple[str, ...]]:
    """The values that the pod wants of labels, by key."""
    found: dict[str, dict[str, None]] = {key: {value: None} for key, value in pod.node_selector.items()}
    for term in pod.affinity.terms if pod.affinity else ():
        for requirement in term.match_expressions:
            found.setdefault(requirement.key, {}).update(dict.fromkeys(requirement.values))
    return {key: tuple(values) for key, values in found.items()}


def _keys(values: Iterable[str], named: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({card for value in values for card in named.get(value, ())}))


def _selecting(pod: Pod, key: str, named: Mapping[str, tuple[str, ...]]) -> Pod | None:
    """The pod with the accelerators in the place of all that it says about the key; None where it says more than
    which values it wants, or where an alternative of its affinity would be lost."""
    terms = list(pod.affinity.terms) if pod.affinity else [NodeSelectorTerm(())]
    for index, term in enumerate(terms):
        said = [r for r in term.match_expressions if r.key == key]
        if any(r.operator != "In" or not _keys(r.values, named) for r in said):
            return None
        replaced = [_wanted(r.values, named) if r.key == key else r for r in term.match_expressions]
        if key in pod.node_selector:
            replaced.append(_wanted((pod.node_selector[key],), named))
        terms[index] = replace(term, match_expressions=tuple(replaced))
    selector = {name: value for name, value in pod.node_selector.items() if name != key}
    return replace(pod, node_selector=FrozenMap(selector), affinity=NodeSelector(tuple(terms)))


def _selecting_all(pod: Pod, key: str, named: Mapping[str, tuple[str, ...]], beside: Collection[str]) -> Pod:
    found = _selecting(pod, key, named) or pod
    return replace(found, node_selector=FrozenMap({k: v for k, v in found.node_selector.items() if k not in beside}))


def _wanted(values: Iterable[str], named: Mapping[str, tuple[str, ...]]) -> Requirement:
    return Requirement(labels.ACCELERATOR, "In", _keys(values, named))
