"""AWS composed: the providers of a cluster, and its AWSNodeTemplates as the providers take them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from autoscaler.cluster.resources import AWS_GROUP_NODE_TEMPLATES, AWS_NODE_TEMPLATES, CAPACITY_POOLS
from autoscaler.composition.templates import ReadTemplates
from autoscaler.errors import ConfigurationError
from autoscaler.kube.custom.aws_node_template import (
    AWSNodeTemplateSpec,
    AwsRootVolume,
    AwsSelector,
    AwsVolume,
    parse_aws_group_node_template,
    parse_aws_node_template,
)
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool
from autoscaler.kube.custom.schema import duration
from autoscaler.kube.problem import Problems
from autoscaler.planning.supply.candidates import admits_type
from autoscaler.settings.settings import AwsSettings
from instance_catalog.frozen_map import FrozenMap
from providers.abilities import Announcer, KubernetesObjects
from providers.aws.capacity import Reservations
from providers.aws.interruptions import Interruptions
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import (
    ROOT,
    Cluster,
    GroupTemplate,
    Image,
    Interfaces,
    NodeTemplate,
    Selector,
    UserData,
    Volume,
)
from providers.aws.provider import WINDOW, Account, AwsProvider
from providers.aws.sales.market import BlockMarket
from providers.aws.sales.prices import Override, load_overrides
from providers.aws.session import Aws
from providers.contract import Clock, Provider
from providers.errors import TemplateError
from providers.plugins import Surroundings


def aws_providers(surroundings: Surroundings, settings: AwsSettings) -> Mapping[str, Provider]:
    """The providers of a cluster by the kinds of their node templates. Raises ConfigurationError for bad prices."""
    account = Account(
        Aws(settings.region, profile=settings.profile), surroundings.clock, surroundings.catalog, surroundings.cluster
    )
    groups = AwsNodeGroups(account, group_templates(surroundings.objects))
    machines = AwsProvider(
        account,
        machine_templates(surroundings.objects),
        overrides=_overrides(settings.prices),
        queue=settings.queue,
        held=groups.held,
        tried=partial(_types_of_pools, surroundings),
    )
    return {AWS_NODE_TEMPLATES.kind: machines, AWS_GROUP_NODE_TEMPLATES.kind: groups}


def _types_of_pools(surroundings: Surroundings, template: str) -> tuple[str, ...]:
    """Of each pool with this node template the type that is hardest to start: the one with the most EFA cards."""
    found: list[str] = []
    for raw in surroundings.objects.list((CAPACITY_POOLS.api_version, CAPACITY_POOLS.plural), labels={}):
        pool = parse_capacity_pool(raw)
        if pool is not None and pool.node_template == (AWS_NODE_TEMPLATES.kind, template):
            types = [t for t in surroundings.catalog.types.values() if t.cloud == "aws" and admits_type(pool, t)]
            found += [t.name for t in sorted(types, key=lambda t: (-len(t.cards("efa")), t.name))[:1]]
    return tuple(found)


def _overrides(path: str) -> tuple[Override, ...]:
    try:
        return load_overrides(Path(path)) if path else ()
    except TemplateError as error:
        raise ConfigurationError(f"aws.prices: {error.message}", next_step=error.next_step) from error


def aws_announcer(settings: AwsSettings) -> Announcer | None:
    """The reader of EC2's notices; None without a queue. Its clients are its own, since another thread uses them."""
    if not settings.queue:
        return None
    return Interruptions(Aws(settings.region, profile=settings.profile), settings.queue)


def aws_market(region: str, profile: str, clock: Clock) -> BlockMarket:
    """The market for capacity blocks; it needs no cluster."""
    aws = Aws(region, profile=profile)
    return BlockMarket(aws, Reservations(aws, clock, window=WINDOW))


def machine_templates(objects: KubernetesObjects) -> ReadTemplates[NodeTemplate]:
    return ReadTemplates(objects, AWS_NODE_TEMPLATES, _machine_template)


def group_templates(objects: KubernetesObjects) -> ReadTemplates[GroupTemplate]:
    return ReadTemplates(objects, AWS_GROUP_NODE_TEMPLATES, _group_template)


def _machine_template(name: str, raw: Mapping[str, Any], problems: Problems) -> NodeTemplate | None:
    spec = parse_aws_node_template(raw, problems)
    return None if spec is None else node_template(name, spec)


def _group_template(name: str, raw: Mapping[str, Any], problems: Problems) -> GroupTemplate | None:
    spec = parse_aws_group_node_template(raw, problems)
    if spec is None:
        return None
    return GroupTemplate(
        name=name,
        groups=spec.auto_scaling_groups,
        cluster=spec.cluster_name,
        node_groups=spec.node_groups,
        by_instances=spec.launch == "Instances",
        boot_timeout=duration(spec.boot_timeout) if spec.boot_timeout else None,
    )


def node_template(name: str, spec: AWSNodeTemplateSpec) -> NodeTemplate:
    own = spec.cluster
    return NodeTemplate(
        name=name,
        cluster=Cluster(own.name, own.endpoint, own.certificate_authority, own.service_cidr),
        subnets=tuple(map(_selector, spec.subnets)),
        security_groups=tuple(map(_selector, spec.security_groups)),
        image=Image(spec.ami.id, spec.ami.ssm_parameter, spec.ami.follow),
        instance_profile=spec.instance_profile,
        user_data=UserData(spec.user_data.kind),
        user_data_text=spec.user_data.text,
        labels=FrozenMap(spec.labels),
        tags=FrozenMap(spec.tags),
        root=_volume(spec.root_volume, ROOT) if spec.root_volume else None,
        volumes=tuple(_volume(one, one.device_name, snapshot=one.snapshot_id) for one in spec.block_devices),
        interfaces=Interfaces(spec.network_interfaces),
        placement_group=spec.placement_group,
        hop_limit=spec.metadata_hop_limit,
        monitoring=spec.detailed_monitoring,
        use_open_reservations=spec.open_reservations == "Use",
        boot_timeout=duration(spec.boot_timeout) if spec.boot_timeout else None,
    )


def _selector(spec: AwsSelector) -> Selector:
    return Selector(spec.id, FrozenMap(spec.tags))


def _volume(spec: AwsRootVolume | AwsVolume, device: str, *, snapshot: str = "") -> Volume:
    return Volume(
        device=device,
        gibibytes=spec.size_gi_b,
        kind=spec.type,
        iops=spec.iops,
        throughput=spec.throughput,
        snapshot=snapshot,
        encrypted=spec.encrypted,
        key=spec.kms_key_id,
    )
