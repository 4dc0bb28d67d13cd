"""Google Cloud composed: the provider of a cluster, and its GCPNodeTemplates as the provider takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    GCP_NODE_TEMPLATES,
    LAUNCH_BATCHES,
    PROVISIONED_NODES,
)
from autoscaler.composition.templates import ReadTemplates
from autoscaler.kube.custom.capacity_block import parse_capacity_block
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool
from autoscaler.kube.custom.gcp_node_template import parse_gcp_node_template
from autoscaler.kube.custom.schema import duration
from autoscaler.kube.problem import Problems
from autoscaler.settings.settings import GcpSettings
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType
from providers.abilities import KubernetesObjects
from providers.contract import Provider, TemplateRef
from providers.gcp.node_template.template import Batch, BlockNodes, GroupRef, GroupTemplate, PoolNodes
from providers.gcp.provider import GcpProvider, Project
from providers.gcp.reserved.calendar import Advice, advice, bounded
from providers.gcp.session import Gcp
from providers.gcp.trial import Trial, chosen_group, cluster_of_trials
from providers.market import CapacityQuery
from providers.plugins import Surroundings
from providers.trials import Outcome

_POOLS = (CAPACITY_POOLS.api_version, CAPACITY_POOLS.plural)
_BLOCKS = (CAPACITY_BLOCKS.api_version, CAPACITY_BLOCKS.plural)
_BATCHES = (LAUNCH_BATCHES.api_version, LAUNCH_BATCHES.plural)
_NODES = (PROVISIONED_NODES.api_version, PROVISIONED_NODES.plural)


def gcp_providers(surroundings: Surroundings, settings: GcpSettings) -> Mapping[str, Provider]:
    """The provider of a cluster by the kind of its node templates."""
    project = Project(Gcp(settings.project), surroundings.clock, surroundings.cluster)
    objects = surroundings.objects
    machines = GcpProvider(
        project,
        group_templates(objects),
        written=lambda: written_batches(objects),
        expected=lambda: expected_nodes(objects),
    )
    return {GCP_NODE_TEMPLATES.kind: machines}


def gcp_trial(
    surroundings: Surroundings,
    settings: GcpSettings,
    template: str,
    *,
    instance_type: str,
    resize_requests: bool = False,
    on_outcome: Callable[[Outcome], None],
) -> Trial:
    """A trial in a group of a GCPNodeTemplate that starts such machines. Raises ProviderErrors."""
    gcp, clock = Gcp(settings.project), surroundings.clock
    project = Project(gcp, clock, cluster_of_trials(surroundings.cluster))
    templates = group_templates(surroundings.objects)
    written = templates.template(TemplateRef(GCP_NODE_TEMPLATES.kind, template))
    found = replace(written, on_trial=resize_requests, resize_requests=resize_requests)
    launcher = GcpProvider(project, templates).launcher
    chosen = chosen_group(launcher.groups, found, instance_type, queued=resize_requests)
    known = surroundings.catalog.types.get(chosen.instance_type)
    kind = CapacityType(chosen.capacity_type)
    price = known.price_in(chosen.ref.zone, kind, region=region_of(chosen.ref.zone)) if known else None
    # Only this group: another one of the template may start the same.
    pools, alone = ((chosen.pool,), ()) if chosen.pool else ((), (chosen.ref,))
    only = replace(found, node_pools=pools, groups=alone)
    return Trial(launcher, only, chosen, price.usd_per_hour if price else None, on_outcome, queued=resize_requests)


def calendar_advice(query: CapacityQuery, *, region: str, now: datetime) -> Advice:
    """Google's recommendation, for a person at a terminal; it needs no cluster."""
    return advice(Gcp(""), region, bounded(query, now))


def written_batches(objects: KubernetesObjects) -> Iterator[Batch]:
    """The launches that are written down, and after them those whose LaunchBatch was deleted, as their nodes name
    them."""
    for item in objects.list(_BATCHES, labels={}):
        yield Batch(item["metadata"]["name"], str((item.get("spec") or {}).get("pool", "")))
    for spec in (item.get("spec") or {} for item in objects.list(_NODES, labels={})):
        if batch := spec.get("batch"):
            yield Batch(str(batch), str(spec.get("pool", "")))


def expected_nodes(objects: KubernetesObjects) -> tuple[PoolNodes, ...]:
    """The nodes that plans for the CapacityPools with a GCPNodeTemplate assume. One that cannot be read has no
    plans."""
    blocks = [block for item in objects.list(_BLOCKS, labels={}) if (block := parse_capacity_block(item)) is not None]
    pools = (parse_capacity_pool(item) for item in objects.list(_POOLS, labels={}))
    return tuple(
        PoolNodes(
            pool.name,
            pool.node_template.name,
            pool.labels,
            pool.taints,
            pool.startup_taints,
            tuple(BlockNodes(b.name, b.reservation, b.taint) for b in blocks if b.pool in ("", pool.name)),
        )
        for pool in pools
        if pool is not None and pool.node_template.kind == GCP_NODE_TEMPLATES.kind
    )


def tried_groups(template: Mapping[str, Any]) -> frozenset[GroupRef]:
    """The groups in which a trial has started machines by a resize request, as ZONE/NAME in an annotation."""
    text = str((template["metadata"].get("annotations") or {}).get(labels.RESIZE_TRIED, ""))
    pairs = (one.partition("/") for one in text.split(",") if one)
    return frozenset(GroupRef(zone, name) for zone, _, name in pairs)


def note_tried(api: KubernetesApi, template: str, group: GroupRef) -> None:
    """Write down that resize requests work in a group, beside the groups that are noted already."""
    known = tried_groups(api.get(GCP_NODE_TEMPLATES, template)) | {group}
    noted = {"annotations": {labels.RESIZE_TRIED: ",".join(sorted(map(str, known)))}}
    api.patch(GCP_NODE_TEMPLATES, template, {"metadata": noted})


def group_templates(objects: KubernetesObjects) -> ReadTemplates[GroupTemplate]:
    return ReadTemplates(objects, GCP_NODE_TEMPLATES, _template)


def _template(name: str, raw: Mapping[str, Any], problems: Problems) -> GroupTemplate | None:
    spec = parse_gcp_node_template(raw, problems)
    if spec is None:
        return None
    return GroupTemplate(
        name=name,
        cluster=spec.cluster.name if spec.cluster else "",
        location=spec.cluster.location if spec.cluster else "",
        node_pools=spec.node_pools,
        groups=tuple(GroupRef(group.zone, group.name) for group in spec.instance_groups),
        resize_requests=spec.gangs == "ResizeRequest",
        flex_start=duration(spec.flex_start.run_duration) if spec.flex_start else None,
        tried=tried_groups(raw),
    )
