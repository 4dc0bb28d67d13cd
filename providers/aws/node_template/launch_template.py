"""Launch templates: one for each node template of the cluster, a version for each distinct content, found by its hash.

A version's description holds two hashes: of the content, and of the source of its image. The first finds versions after
a restart. The second keeps the first value of an SSM parameter, because the image of an earlier version with the same
source is used again. So pinned images are stored in EC2, beside the machines that were launched with them.

Old ones are deleted: EC2 keeps 5,000 templates in a region and 10,000 versions of one. A repeated call needs the same
version as the first, so no version is deleted that a launch in progress might name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from providers.aws.describe import tags_of
from providers.aws.errors import translated
from providers.aws.node_template.images import ImageFacts, facts, resolve
from providers.aws.node_template.template import ROOT, Image, NodeTemplate, Volume
from providers.aws.session import Aws
from providers.contract import TAG_CLUSTER, Clock
from providers.errors import GoneError, ProviderError, TemplateError

NODE_TEMPLATE_TAG: Final = "foreslice.dev/node-template"
_ABSENT: Final = "InvalidLaunchTemplateName.NotFoundException"
_EXISTS: Final = "InvalidLaunchTemplateName.AlreadyExistsException"
# The newest versions of a template stay at any age: each pool, capacity type and block creates one of its own.
_KEPT: Final = 200
# Versions that are younger, or that were used within this time, are not deleted.
_YOUNG: Final = timedelta(days=1)
# After a restart, what is in use is not known before every launch of unknown outcome has been repeated; the longest
# back-off between two repetitions is an hour.
_SETTLED: Final = timedelta(hours=2)
_LONGEST_NAME: Final = 120  # EC2 takes 128; the rest is for what a check appends
_LONGEST_VALUE: Final = 256  # characters of a tag's value
# EC2 takes 200 versions in one call.
_CHUNK: Final = 200


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a launch template by name and number, and the image it starts."""

    template: str
    number: int
    content: str
    source: str
    image: str

    @property
    def specification(self) -> dict[str, str]:
        """As launches name it."""
        return {"LaunchTemplateName": self.template, "Version": str(self.number)}


class LaunchTemplates:
    """Finds, creates and deletes the launch templates of one cluster. The newest `kept` versions of each stay."""

    def __init__(self, aws: Aws, clock: Clock, cluster: str, *, kept: int = _KEPT) -> None:
        self._aws = aws
        self._clock = clock
        self.cluster = cluster
        self._kept = kept
        self._known: dict[str, dict[str, Version]] = {}  # by template name, then by content
        self._used: dict[tuple[str, int], float] = {}  # the last request of a version, by the monotonic clock
        self._began = clock.monotonic()

    def version(self, template: NodeTemplate, data: Mapping[str, Any]) -> Version:
        """The version with this content (all but its image), created if there is none. Raises EC2's refusal."""
        name = self.name(template)
        image = Image(id=resolve(self._aws, template.image)) if template.image.follow else template.image
        source = _digest(image.id or image.parameter)
        content = _digest(data, source)
        if content not in self._known.get(name, {}):
            self._known[name] = self._read(name)
        found = self._known[name].get(content)
        if found is None:
            pinned = next((v.image for v in self._known[name].values() if v.source == source), "")
            ami = pinned or resolve(self._aws, image)
            found = self._make(template, Version(name, 0, content, source, ami), data)
            self._known[name][content] = found
        self._used[name, found.number] = self._clock.monotonic()
        return found

    def newest_with(self, template: NodeTemplate, interfaces: list[dict[str, Any]]) -> dict[str, str] | None:
        """The newest version that a launch made with such interfaces, as launches name it."""
        name, wanted = self.name(template), _layout(interfaces)
        found = [row for row in self._rows(name) if _layout(_data_of(row).get("NetworkInterfaces", ())) == wanted]
        newest = max(map(_number, found), default=None)
        return None if newest is None else {"LaunchTemplateName": name, "Version": str(newest)}

    def forget(self, template: NodeTemplate) -> None:
        """Makes the next call read EC2 again, after the launch template was deleted by another user."""
        self._known.pop(self.name(template), None)

    def pinned(self, template: NodeTemplate) -> str:
        """The image that its parameter named at its first launch; "" before that, and without a parameter to pin."""
        if not template.image.parameter or template.image.follow:
            return ""
        source = _digest(template.image.parameter)
        return next((v.image for v in self._read(self.name(template)).values() if v.source == source), "")

    def delete(self, template: NodeTemplate) -> None:
        name = self.name(template)
        self.forget(template)
        try:
            with translated(f"DeleteLaunchTemplate {name}"):
                self._aws.ec2.delete_launch_template(LaunchTemplateName=name)
        except GoneError:
            return

    def tidy(self, templates: Collection[str]) -> None:
        """Delete the launch templates of node templates other than these, and old versions of theirs."""
        if self._clock.monotonic() - self._began < _SETTLED.total_seconds():
            return
        own = [{"Name": f"tag:{TAG_CLUSTER}", "Values": [self.cluster]}]
        with translated("DescribeLaunchTemplates"):
            pages = list(self._aws.ec2.get_paginator("describe_launch_templates").paginate(Filters=own))
        for found in (found for page in pages for found in page["LaunchTemplates"]):
            name = found["LaunchTemplateName"]
            if tags_of(found).get(NODE_TEMPLATE_TAG) in templates:
                if found["LatestVersionNumber"] > self._kept:
                    self._delete_old_versions(name)
            elif found["CreateTime"] < self._clock.now() - _YOUNG:
                with translated(f"DeleteLaunchTemplate {name}"):
                    self._aws.ec2.delete_launch_template(LaunchTemplateName=name)
                self._known.pop(name, None)

    def _delete_old_versions(self, name: str) -> None:
        young = self._clock.now() - _YOUNG
        used_after = self._clock.monotonic() - _YOUNG.total_seconds()
        in_use = {number for (of, number), at in self._used.items() if of == name and at > used_after}
        old = [
            _number(version)
            for version in self._rows(name)[: -self._kept]
            if version["CreateTime"] < young and not version["DefaultVersion"] and _number(version) not in in_use
        ]
        for start in range(0, len(old), _CHUNK):
            numbers = [str(number) for number in old[start : start + _CHUNK]]
            with translated(f"DeleteLaunchTemplateVersions {name}"):
                self._aws.ec2.delete_launch_template_versions(LaunchTemplateName=name, Versions=numbers)
        if old:
            self._known.pop(name, None)

    def name(self, template: NodeTemplate) -> str:
        """The name of its launch template. EC2 allows 128 characters, so a long name ends in its hash."""
        whole = f"foreslice-{self.cluster}-{template.name}"
        return whole if len(whole) <= _LONGEST_NAME else f"{whole[: _LONGEST_NAME - 9]}-{_digest(template.name)[:8]}"

    def _read(self, name: str) -> dict[str, Version]:
        """All versions that Foreslice created; of equal ones the oldest, so that all processes choose the same."""
        found: dict[str, Version] = {}
        for version in self._rows(name):
            content, _, source = version.get("VersionDescription", "").partition(" ")
            image = version["LaunchTemplateData"].get("ImageId", "")
            found.setdefault(content, Version(name, _number(version), content, source, image))
        return found

    def _rows(self, name: str) -> list[Mapping[str, Any]]:
        """All versions as EC2 describes them, oldest first; none if there is no template."""
        try:
            with translated(f"DescribeLaunchTemplateVersions {name}"):
                pages = list(
                    self._aws.ec2.get_paginator("describe_launch_template_versions").paginate(LaunchTemplateName=name)
                )
        except GoneError as error:
            if error.code != _ABSENT:
                raise
            return []
        return sorted((v for page in pages for v in page["LaunchTemplateVersions"]), key=_number)

    def _with_root_device(self, data: Mapping[str, Any], image: str) -> Mapping[str, Any]:
        """The root volume under the name that the image gives it, which is read once for each version."""
        if not any(mapping["DeviceName"] == ROOT for mapping in data.get("BlockDeviceMappings", ())):
            return data
        return with_root_device(data, facts(self._aws, image))

    def _make(self, template: NodeTemplate, wanted: Version, data: Mapping[str, Any]) -> Version:
        about = {
            "LaunchTemplateName": wanted.template,
            "VersionDescription": f"{wanted.content} {wanted.source}",
            "LaunchTemplateData": {**self._with_root_device(data, wanted.image), "ImageId": wanted.image},
        }
        if not self._known[wanted.template]:
            tags = {TAG_CLUSTER: self.cluster, NODE_TEMPLATE_TAG: template.name}
            specification = [{"ResourceType": "launch-template", "Tags": tag_list(tags)}]
            try:
                with translated(f"CreateLaunchTemplate {wanted.template}"):
                    self._aws.ec2.create_launch_template(**about, TagSpecifications=specification)
                return Version(wanted.template, 1, wanted.content, wanted.source, wanted.image)
            except ProviderError as error:
                if error.code != _EXISTS:
                    raise
        with translated(f"CreateLaunchTemplateVersion {wanted.template}"):
            made = self._aws.ec2.create_launch_template_version(**about)["LaunchTemplateVersion"]
        return Version(wanted.template, _number(made), wanted.content, wanted.source, wanted.image)


def template_data(
    template: NodeTemplate,
    *,
    cluster: str,
    user_data: str,
    interfaces: list[dict[str, Any]],
    open_reservations: bool,
    ipv6: bool = False,
) -> dict[str, Any]:
    """The content of a version, without its image. Instance metadata only by IMDSv2; volumes are deleted with the
    machine.

    `cluster` is the uid that owns the machines. Network interfaces get their tags here, since a fleet cannot set them.
    """
    tags = {**launch_tags(template, template.cluster.name), TAG_CLUSTER: cluster}
    data: dict[str, Any] = {
        "TagSpecifications": [{"ResourceType": "network-interface", "Tags": tag_list(tags)}],
        "IamInstanceProfile": profile_of(template),
        "UserData": user_data,
        "NetworkInterfaces": interfaces,
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": template.hop_limit,
            **({"HttpProtocolIpv6": "enabled"} if ipv6 else {}),
        },
        "Monitoring": {"Enabled": template.monitoring},
    }
    volumes = (*((template.root,) if template.root else ()), *template.volumes)
    if volumes:
        data["BlockDeviceMappings"] = [{"DeviceName": v.device, "Ebs": _ebs(v)} for v in volumes]
    if template.placement_group:
        data["Placement"] = {"GroupName": template.placement_group}
    if not open_reservations:
        data["CapacityReservationSpecification"] = {"CapacityReservationPreference": "none"}
    return data


def with_root_device(data: Mapping[str, Any], image: ImageFacts) -> dict[str, Any]:
    """The content with the device name of the image's root volume. Raises TemplateError if it is unknown or set
    twice."""
    mappings = data.get("BlockDeviceMappings", ())
    if not any(mapping["DeviceName"] == ROOT for mapping in mappings):
        return dict(data)
    if not image.root_device or any(mapping["DeviceName"] == image.root_device for mapping in mappings):
        step = "describe the root volume in spec.rootVolume or in spec.blockDevices, not in both"
        if not image.root_device:
            step = "describe the root volume in spec.blockDevices: EC2 does not say what this image calls it"
        raise TemplateError(f"the root volume of {image.id} ({image.root_device or '?'}) is not clear", next_step=step)
    named = [{**m, "DeviceName": image.root_device} if m["DeviceName"] == ROOT else m for m in mappings]
    return {**data, "BlockDeviceMappings": named}


def profile_of(template: NodeTemplate) -> dict[str, str]:
    """The instance profile as EC2 takes it."""
    profile = template.instance_profile
    return {"Arn": profile} if profile.startswith("arn:") else {"Name": profile}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def launch_tags(template: NodeTemplate, cluster_name: str) -> dict[str, str]:
    """Tags of everything a template launches, beside the ownership tags; the cloud controller needs the second."""
    own = {"Name": f"{cluster_name}/{template.name}"[:_LONGEST_VALUE], NODE_TEMPLATE_TAG: template.name}
    return {**own, f"kubernetes.io/cluster/{cluster_name}": "owned", **template.tags}


def _ebs(volume: Volume) -> dict[str, Any]:
    return {
        "DeleteOnTermination": True,
        "Encrypted": volume.encrypted,
        "VolumeType": volume.kind,
        **({"VolumeSize": volume.gibibytes} if volume.gibibytes is not None else {}),
        **({"Iops": volume.iops} if volume.iops is not None else {}),
        **({"Throughput": volume.throughput} if volume.throughput is not None else {}),
        **({"SnapshotId": volume.snapshot} if volume.snapshot else {}),
        **({"KmsKeyId": volume.key} if volume.key else {}),
    }


def _data_of(version: Mapping[str, Any]) -> Mapping[str, Any]:
    return version.get("LaunchTemplateData") or {}


def _layout(interfaces: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The pairs of card and interface, in a fixed order."""
    return sorted(
        (one.get("NetworkCardIndex", 0), one.get("DeviceIndex", 0), one.get("InterfaceType", "interface"))
        for one in interfaces
    )


def _number(version: Mapping[str, Any]) -> int:
    return int(version["VersionNumber"])


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
