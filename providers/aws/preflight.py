"""`foreslice aws check`: checks everything that a launch needs, without launching; each finding has its correction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from providers.aws.dry_runs import DryRuns, no_types
from providers.aws.errors import translated
from providers.aws.launch import Launcher
from providers.aws.node_groups.groups import Groups
from providers.aws.node_template.status import TAKE_NEW_IMAGE, image_of, role_of, strategy_of
from providers.aws.node_template.template import GroupTemplates, Interfaces, NodeTemplate, Templates
from providers.aws.queue_check import queue_findings
from providers.contract import TAG_CLUSTER, ReservationState, TemplateRef
from providers.errors import ProviderError
from providers.finding import Finding, FindingTopic, missing, note, ok

# Below so many free addresses a subnet soon refuses launches.
_FEW_ADDRESSES: Final = 16
# Names of the vCPU quotas that machines with accelerators count against (Service Quotas, service ec2).
_QUOTA_FAMILIES: Final = (" P ", " G and VT ", " Trn ", " Inf ", " DL ")
_QUOTA_PREFIXES: Final = ("Running On-Demand", "All ")


@dataclass(frozen=True, slots=True)
class Check:
    """The checks of one cluster's launches. `types` returns the types that the pools of a node template start."""

    launcher: Launcher
    templates: Templates
    cluster: str
    queue: str = ""
    types: Callable[[str], Sequence[str]] = no_types

    def findings(self) -> tuple[Finding, ...]:
        """All findings. Without credentials only that."""
        identity = _found("account", self._identity)
        if not identity[0].passed:
            return identity
        found = [*identity, *_found("AWSNodeTemplates", self._any_template)]
        zones: set[str] = set()
        for reference in self._references():
            found += _found(f"AWSNodeTemplate {reference.name}", partial(self._template, reference, zones))
        found += _found("quotas", self._quotas)
        found += _found("reservations", lambda: self._reservations(zones))
        return (*found, *self._notices())

    def _identity(self) -> Iterator[Finding]:
        with translated("GetCallerIdentity"):
            identity = self.launcher.aws.sts.get_caller_identity()
        yield ok("account", f"{identity['Account']} as {identity['Arn']} in {self.launcher.aws.region}")

    def _any_template(self) -> Iterator[Finding]:
        if not self.templates.references():
            step, topic = "create one: docs/aws.md shows a small one", FindingTopic.NO_NODE_TEMPLATES
            yield missing("AWSNodeTemplates", "there is none", step, topic=topic)

    def _references(self) -> tuple[TemplateRef, ...]:
        try:
            return self.templates.references()
        except ProviderError:
            return ()

    def _template(self, reference: TemplateRef, zones: set[str]) -> Iterator[Finding]:
        template = self.templates.template(reference)
        subject = f"AWSNodeTemplate {reference.name}"
        parts: tuple[tuple[str, Callable[[], Iterable[Finding]]], ...] = (
            ("cluster", lambda: self._cluster(template)),
            ("subnets", lambda: self._subnets(template, zones)),
            ("security groups", lambda: self._groups(template)),
            ("image", lambda: self._image(template)),
            ("instance profile", lambda: self._profile(template)),
            ("placement group", lambda: self._placement(template)),
            ("permissions", lambda: DryRuns(self.launcher, self.cluster, self.types).findings(template)),
        )
        for part, look in parts:
            yield from _found(f"{subject}: {part}", look)

    def _cluster(self, template: NodeTemplate) -> Iterator[Finding]:
        joined = self.launcher.clusters.joined(template.cluster)
        yield ok(_of(template, "cluster"), f"{joined.name} at {joined.endpoint}")

    def _subnets(self, template: NodeTemplate, zones: set[str]) -> Iterator[Finding]:
        subnets = self.launcher.network.subnets(template)
        zones.update(subnet.zone for subnet in subnets)
        yield ok(_of(template, "subnets"), ", ".join(f"{s.id} ({s.zone}, {s.free} free)" for s in subnets))
        for subnet in subnets:
            if subnet.free < _FEW_ADDRESSES:
                step = "select more subnets of this zone, or enlarge it"
                yield note(_of(template, subnet.id), f"{subnet.free} addresses left", step)
        private = {subnet.zone for subnet in subnets if not subnet.public}
        for subnet in subnets if template.interfaces is Interfaces.EFA else ():
            if subnet.public and subnet.zone not in private:
                message = f"the subnets in {subnet.zone} are public: a machine with several interfaces gets no address"
                step = (
                    "select private subnets, which usually have the tag kubernetes.io/role/internal-elb; otherwise the "
                    "machine reaches the API server and registries only through endpoints in the VPC"
                )
                yield note(_of(template, subnet.id), message, step)

    def _groups(self, template: NodeTemplate) -> Iterator[Finding]:
        groups = self.launcher.network.security_groups(template)
        yield ok(_of(template, "security groups"), ", ".join(groups))
        if template.interfaces is not Interfaces.EFA:
            return
        with translated("DescribeSecurityGroups"):
            found = self.launcher.aws.ec2.describe_security_groups(GroupIds=list(groups))["SecurityGroups"]
        if not any(_open_to_itself(group) for group in found):
            step = "add rules for all traffic from and to the group itself to one of them"
            message = "no group admits all traffic of its own members, which EFA needs"
            yield note(_of(template, "EFA"), message, step)
        else:
            yield ok(_of(template, "EFA"), "a group admits all traffic of its own members")

    def _image(self, template: NodeTemplate) -> Iterator[Finding]:
        image, drift = image_of(self.launcher, template)
        yield ok(_of(template, "image"), f"{image.id} {image.name} ({image.architecture})")
        if drift:
            yield note(_of(template, "image drift"), drift, TAKE_NEW_IMAGE)

    def _profile(self, template: NodeTemplate) -> Iterator[Finding]:
        role = role_of(self.launcher.aws, template)
        yield ok(_of(template, "instance profile"), f"{template.instance_profile} with role {role}")

    def _placement(self, template: NodeTemplate) -> Iterator[Finding]:
        if template.placement_group:
            strategy = strategy_of(self.launcher.aws, template)
            message = f"{template.placement_group}, strategy {strategy}"
            yield ok(_of(template, "placement group"), message)

    def _notices(self) -> Iterator[Finding]:
        """The findings about the queue, if there is one; its faults only delay the reaction to notices."""
        if self.queue:
            aws = self.launcher.aws
            yield from (
                replace(found, required=False) for found in _found("queue", lambda: queue_findings(aws, self.queue))
            )

    def _quotas(self) -> Iterator[Finding]:
        with translated("ListServiceQuotas"):
            pages = list(self.launcher.aws.quotas.get_paginator("list_service_quotas").paginate(ServiceCode="ec2"))
        for quota in (quota for page in pages for quota in page["Quotas"]):
            name = quota["QuotaName"]
            if name.startswith(_QUOTA_PREFIXES) and any(family in f"{name} " for family in _QUOTA_FAMILIES):
                step = "ask for more in Service Quotas; Capacity Blocks do not count against it"
                value, subject = quota["Value"], f"quota {name}"
                yield Finding(subject, passed=value > 0, message=f"{value:g} vCPUs", next_step=step, required=False)

    def _reservations(self, zones: set[str]) -> Iterator[Finding]:
        for found in self.launcher.reservations.all():
            subject = f"reservation {found.id}"
            what = f"{found.count} × {found.instance_type} in {found.zone}, {found.state.value}, {found.available} free"
            if found.state is ReservationState.ENDED:
                continue
            if zones and found.zone not in zones:
                step = f"create a subnet in {found.zone} that a template selects; until then nothing can use it"
                yield missing(subject, f"{what}; no template has a subnet there", step)
            else:
                step = "wait, or see the note" if found.note else ""
                message = f"{what}; {found.note}" if found.note else what
                yield Finding(subject, passed=not found.note, message=message, next_step=step, required=False)


def group_findings(groups: Groups, templates: GroupTemplates, cluster: str) -> tuple[Finding, ...]:
    """Checks the groups of a cluster's AWSGroupNodeTemplates, and whether the controller's policy allows resizing
    them."""
    found: list[Finding] = []
    for reference in templates.references():
        subject = f"AWSGroupNodeTemplate {reference.name}"
        found += _found(subject, partial(_groups_of, groups, templates, reference, cluster))
    return tuple(replace(finding, topic=FindingTopic.NODE_GROUPS) for finding in found)


def _groups_of(groups: Groups, templates: GroupTemplates, reference: TemplateRef, cluster: str) -> Iterator[Finding]:
    for group in groups.of(templates.template(reference)):
        subject = f"AWSGroupNodeTemplate {reference.name}: group {group.name}"
        what = f"{'/'.join(group.types)} in {'/'.join(group.zones)}, {group.desired} of at most {group.largest}"
        if group.propagated:
            what = (
                f"{what}; its tags {', '.join(sorted(group.propagated))} propagate to machines that others launch in it"
            )
            step = 'tag the group again with PropagateAtLaunch=false: the console ticks "Tag new instances" by itself'
            yield missing(subject, what, step)
        elif group.tags.get(TAG_CLUSTER) == cluster:
            yield ok(subject, what)
        else:
            step = f"tag the group {TAG_CLUSTER}={cluster}: deploy/aws/groups-policy.json asks for it"
            yield missing(subject, f"{what}; it lacks the tag of this cluster", step)


def _found(subject: str, look: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """The findings of `look`; a ProviderError becomes a finding, too."""
    findings: list[Finding] = []
    try:
        findings.extend(look())
    except ProviderError as error:
        findings.append(missing(subject, error.message, error.next_step))
    return tuple(findings)


def _open_to_itself(group: dict[str, Any]) -> bool:
    def open_to_itself(rules: Iterable[dict[str, Any]]) -> bool:
        return any(
            rule.get("IpProtocol") == "-1"
            and any(pair.get("GroupId") == group["GroupId"] for pair in rule.get("UserIdGroupPairs", ()))
            for rule in rules
        )

    return open_to_itself(group.get("IpPermissions", ())) and open_to_itself(group.get("IpPermissionsEgress", ()))


def _of(template: NodeTemplate, part: str) -> str:
    return f"AWSNodeTemplate {template.name}: {part}"
