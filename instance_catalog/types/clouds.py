"""Facts of a cloud that belong to no instance type (data/clouds): its spelling of places and provider ids, labels of
its nodes, its network cards. A cloud without a file has any spelling and none of the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.package_data import contents

_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class HugePages:
    """The resource that a node reserves for the devices of a device plugin: huge pages, which are not part of its
    memory."""

    resource: str
    amount: Quantity


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A container that a webhook of the cloud adds to pods whose `annotation` is "true". Annotations with the prefix
    and cpu-request, cpu-limit and so on override its requests."""

    name: str
    annotation: str
    prefix: str
    requests: FrozenMap[str, Quantity]


@dataclass(frozen=True, slots=True)
class CloudFacts:
    """Patterns match whole names. The group of `in_region` is the region of a zone. `regular` matches usual names of
    regions. `first_zone` follows a region in the name of a zone. `provider_id` is the prefix of a node's
    spec.providerID before "://".

    `domains` are those of labels that only its nodes have; `machine_labels` choose the machine; `pool_labels` name a
    group of nodes, or its properties. Among these, `sharing_labels` are on nodes that offer parts of GPUs, and
    `reservation_labels` on nodes of a reservation. `resources` are prefixes of extended resources, and `registries`
    match images, that pods use on this cloud alone. `group_per_type`: nodes of one group are of one type, and the label
    names the group; "" elsewhere. Such a label comes from the cloud, and `group_field` of a node template lists the
    group, whose name matches `group_name`; `group_template` has its kind, and its spec as JSON for <GROUP> alone, with
    other values that people fill in. `queue_label` is on groups that another autoscaler sizes for requests
    that wait in a queue. `driver_labels` are on nodes that have devices of a driver, by its profile's name.
    `model_label` is the label by which pods select a model of accelerator, `count_label` the one with the number on
    a node. `chosen_labels` have values that users choose, so that their machines are unknown; the text names the
    source. `served_by` says by which object the cloud serves pods that select such a `{name}`. The cloud defines
    nodes with `built_in_values` and creates them itself (`built_in_text`: the warning for pods that select one, and the
    next step); on nodes with `own_driver_values` it installs the
    accelerators' driver, so that no CapacityPool has any of them. `accelerator_taints` are the taints of nodes with
    a vendor's accelerators, `architecture_taints` those of all nodes of an architecture.

    `cards` are the kinds of the primary and of the RDMA network card of listed types; () if the listing has none.
    `disk_drivers` make volumes that one of its machines at a time has attached, `file_drivers` volumes that any number
    of them mount; no machines elsewhere do. New volumes of `unplaced_drivers` select no nodes.
    People call its storage by `storage_names`. `zone_label` is the label with the zone by which volumes select nodes,
    `zone_id_label` that with the id of a zone; by its beginning, `zone_id_regions` has the region of an id, and the
    command `zone_names` lists the names. `sync` are the arguments of `foreslice catalog sync` for prices of a <REGION>.
    `huge_pages` are by extended resource. `topology_types`: the types whose
    nodes have labels of their position among the others, by the prefix of these. `root_disk` tells users where to set
    the size of root disks.
    `critical_pods_need_quota`: critical pods outside kube-system start only if a ResourceQuota selects their priority
    class. `sdk`: Python packages of the extra of foreslice with the cloud's name.
    """

    region: re.Pattern[str] = _NOTHING
    zone: re.Pattern[str] = _NOTHING
    in_region: re.Pattern[str] = _NOTHING
    regular: re.Pattern[str] = _NOTHING
    first_zone: str = ""
    provider_id: str = ""
    domains: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    registries: re.Pattern[str] = _NOTHING
    machine_labels: frozenset[str] = frozenset()
    pool_labels: frozenset[str] = frozenset()
    sharing_labels: frozenset[str] = frozenset()
    reservation_labels: frozenset[str] = frozenset()
    group_per_type: str = ""
    group_field: str = ""
    group_template: tuple[str, str] = ("", "")
    group_name: re.Pattern[str] = _NOTHING
    queue_label: str = ""
    driver_labels: FrozenMap[str, FrozenMap[str, str]] = field(default_factory=FrozenMap)
    cards: tuple[str, ...] = ()
    huge_pages: FrozenMap[str, HugePages] = field(default_factory=FrozenMap)
    disk_drivers: tuple[str, ...] = ()
    file_drivers: tuple[str, ...] = ()
    unplaced_drivers: tuple[str, ...] = ()
    storage_names: re.Pattern[str] = _NOTHING
    zone_label: str = ""
    zone_id_label: str = ""
    zone_id_regions: FrozenMap[str, str] = field(default_factory=FrozenMap)
    zone_names: str = ""
    sync: str = ""
    sidecars: tuple[Sidecar, ...] = ()
    root_disk: str = "in its node template"
    model_label: str = ""
    count_label: str = ""
    chosen_labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    served_by: FrozenMap[str, str] = field(default_factory=FrozenMap)
    built_in_values: FrozenMap[str, frozenset[str]] = field(default_factory=FrozenMap)
    built_in_text: tuple[str, str] = ("", "")
    own_driver_values: FrozenMap[str, frozenset[str]] = field(default_factory=FrozenMap)
    accelerator_taints: FrozenMap[str, Taint] = field(default_factory=FrozenMap)
    architecture_taints: FrozenMap[str, Taint] = field(default_factory=FrozenMap)
    topology_types: FrozenMap[str, tuple[str, ...]] = field(default_factory=FrozenMap)
    critical_pods_need_quota: bool = False
    sdk: tuple[str, ...] = ()


_ELSEWHERE = CloudFacts()


@cache
def cloud_facts() -> FrozenMap[str, CloudFacts]:
    """By name, those with a file."""
    return FrozenMap({cloud: _facts(row) for cloud, row in contents("clouds").items()})


def facts_of(cloud: str) -> CloudFacts:
    """Those of a cloud without a file are the defaults."""
    return cloud_facts().get(cloud, _ELSEWHERE)


def _facts(row: Mapping[str, Any]) -> CloudFacts:
    return CloudFacts(
        region=_whole(row["region"]),
        zone=_whole(row["zone"]),
        in_region=_whole(row["in_region"]),
        regular=_whole(row["regular"]),
        first_zone=row["first_zone"],
        provider_id=row["provider_id"],
        domains=tuple(row["domains"]),
        resources=tuple(row.get("resources", ())),
        registries=_pattern(row, "registries"),
        machine_labels=frozenset(row["machine_labels"]),
        pool_labels=frozenset(row["pool_labels"]),
        sharing_labels=frozenset(row.get("sharing_labels", ())),
        reservation_labels=frozenset(row.get("reservation_labels", ())),
        group_per_type=row.get("group_per_type", ""),
        group_field=row.get("group_field", ""),
        group_template=_group_template(row),
        group_name=_pattern(row, "group_name"),
        queue_label=row.get("queue_label", ""),
        driver_labels=FrozenMap({name: FrozenMap(found) for name, found in row.get("driver_labels", {}).items()}),
        cards=tuple(row.get("cards", ())),
        huge_pages=_huge_pages(row.get("huge_pages", {})),
        disk_drivers=tuple(row.get("disk_drivers", ())),
        file_drivers=tuple(row.get("file_drivers", ())),
        unplaced_drivers=tuple(row.get("unplaced_drivers", ())),
        storage_names=_pattern(row, "storage_names"),
        zone_label=row.get("zone_label", ""),
        zone_id_label=row.get("zone_id_label", ""),
        zone_id_regions=FrozenMap(row.get("zone_id_regions", {})),
        zone_names=row.get("zone_names", ""),
        sync=row["sync"],
        sidecars=tuple(map(_sidecar, row.get("sidecars", ()))),
        root_disk=row["root_disk"],
        model_label=row["model_label"],
        count_label=row["count_label"],
        chosen_labels=FrozenMap(row["chosen_labels"]),
        served_by=FrozenMap(row.get("served_by", {})),
        built_in_values=_values(row, "built_in_values"),
        built_in_text=(row["built_in_text"]["message"], row["built_in_text"]["step"]),
        own_driver_values=_values(row, "own_driver_values"),
        accelerator_taints=_taints(row, "accelerator_taints"),
        architecture_taints=_taints(row, "architecture_taints"),
        topology_types=FrozenMap({key: tuple(found) for key, found in row.get("topology_types", {}).items()}),
        critical_pods_need_quota=row.get("critical_pods_need_quota", False),
        sdk=tuple(row["sdk"]),
    )


def _whole(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{text})\Z", re.ASCII)


def _pattern(row: Mapping[str, Any], name: str) -> re.Pattern[str]:
    return re.compile(row[name]) if name in row else _NOTHING


def _group_template(row: Mapping[str, Any]) -> tuple[str, str]:
    found = row.get("group_template")
    return (found["kind"], json.dumps(found["spec"])) if found else ("", "")


def _huge_pages(rows: Mapping[str, Any]) -> FrozenMap[str, HugePages]:
    return FrozenMap({key: HugePages(row["resource"], Quantity.parse(row["amount"])) for key, row in rows.items()})


def _values(row: Mapping[str, Any], name: str) -> FrozenMap[str, frozenset[str]]:
    return FrozenMap({key: frozenset(found) for key, found in row.get(name, {}).items()})


def _taints(row: Mapping[str, Any], name: str) -> FrozenMap[str, Taint]:
    return FrozenMap({key: Taint(**found) for key, found in row.get(name, {}).items()})


def _sidecar(row: Mapping[str, Any]) -> Sidecar:
    requests = FrozenMap({name: Quantity.parse(amount) for name, amount in row["requests"].items()})
    return Sidecar(row["name"], row["annotation"], row["prefix"], requests)


def clouds_of_labels(keys: Iterable[str]) -> frozenset[str]:
    """The clouds whose nodes alone have a label of these keys."""
    return frozenset(cloud for key in keys for cloud, facts in cloud_facts().items() if key.startswith(facts.domains))


@lru_cache(maxsize=4096)
def cloud_of_name(name: str) -> str:
    """The cloud that an extended resource or an image of a pod means; "" for all others."""
    found = (c for c, f in cloud_facts().items() if name.startswith(f.resources or ("/",)) or f.registries.match(name))
    return next(found, "")


@cache
def queue_labels() -> frozenset[str]:
    """The labels of groups of nodes in which no plan buys: another autoscaler sizes them for requests in a queue."""
    return frozenset(facts.queue_label for facts in cloud_facts().values()) - {""}


def made_by_cloud(key: str, value: str) -> bool:
    """True if a cloud creates the nodes with this value of the label itself, or installs the driver on them, so that no
    other group has it."""
    found = cloud_facts().values()
    return any(value in given.get(key, ()) for one in found for given in (one.built_in_values, one.own_driver_values))


def of_no_group(key: str, value: str) -> bool:
    """True if the label names a group of nodes, and its cloud gives no group such a name: an example's placeholder."""
    return any(key == one.group_per_type and not one.group_name.match(value) for one in cloud_facts().values())


@cache
def zone_labels() -> frozenset[str]:
    """The labels with a node's zone that CSI drivers of clouds put on it."""
    return frozenset(facts.zone_label for facts in cloud_facts().values()) - {""}


@cache
def zone_id_labels() -> FrozenMap[str, CloudFacts]:
    """The labels with the id of a node's zone, which its cloud writes, with the facts of that cloud."""
    return FrozenMap({facts.zone_id_label: facts for facts in cloud_facts().values() if facts.zone_id_label})


def region_of_zone_id(zone_id: str) -> str:
    """us-east-2 of use2-az3; "" where the id does not say it."""
    found = (facts.zone_id_regions.get(zone_id.partition("-az")[0], "") for facts in zone_id_labels().values())
    return next(filter(None, found), "")


def is_regular_region(name: str) -> bool:
    """True if a cloud may have a region of this name, so that it is no misspelling of another one."""
    return any(facts.regular.match(name) for facts in cloud_facts().values())


def clouds_of_region(name: str) -> tuple[str, ...]:
    """The clouds that spell their regions like this."""
    return tuple(cloud for cloud, facts in cloud_facts().items() if facts.region.match(name))


@cache
def region_of(zone: str) -> str:
    """us-east-1 of us-east-1a, us-central1 of us-central1-a; a name of another form is its own region."""
    found = (facts.in_region.match(zone) for facts in cloud_facts().values())
    return next((match[1] for match in found if match), zone)
