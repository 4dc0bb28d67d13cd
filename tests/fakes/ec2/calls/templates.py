"""Launch templates: create, add versions, describe, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.calls.orders import template_of
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import filtered, paged, tag_set, tags_for
from tests.fakes.ec2.templates import LaunchTemplate

_CREATOR: Final = "arn:aws:sts::123456789012:assumed-role/foreslice/test"


def create_launch_template(account: Account, params: Params) -> Answer:
    """A template with version 1. A name can be used once, whatever the token."""
    name = params["LaunchTemplateName"]
    if any(template.name == name for template in account.templates.values()):
        raise ApiError("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
    template = LaunchTemplate(account.new_id("lt"), name, account.now)
    template.tags.update(tags_for("launch-template", params.get("TagSpecifications", ())))
    template.versions[1] = (params["LaunchTemplateData"], params.get("VersionDescription", ""), account.now)
    account.templates[template.id] = template
    return {"LaunchTemplate": _shown(template)}


def create_launch_template_version(account: Account, params: Params) -> Answer:
    """Another version, on top of a source version's data where one is named."""
    template = template_of(account, params)
    source = template.data(params["SourceVersion"]) if "SourceVersion" in params else {}
    number = max(template.versions) + 1
    data = dict(source) | params["LaunchTemplateData"]
    template.versions[number] = (data, params.get("VersionDescription", ""), account.now)
    return {"LaunchTemplateVersion": _version(template, number)}


def describe_launch_templates(account: Account, params: Params) -> Answer:
    """By id, by name, or all. An unknown id or name is an error."""
    ids, names = params.get("LaunchTemplateIds", ()), params.get("LaunchTemplateNames", ())
    asked = [template_of(account, {"LaunchTemplateId": name}) for name in ids]
    asked += [template_of(account, {"LaunchTemplateName": name}) for name in names]
    known = asked if ids or names else list(account.templates.values())
    found = filtered(known, params.get("Filters", ()), _FIELDS, lambda template: template.tags)
    page, token = paged(sorted(found, key=lambda t: t.id), params, key=lambda template: template.id, limit=200)
    return {"LaunchTemplates": [_shown(template) for template in page], "NextToken": token}


def describe_launch_template_versions(account: Account, params: Params) -> Answer:
    """Versions of one template, newest first as AWS lists them."""
    template = template_of(account, params)
    numbers = [template.version(asked) for asked in params.get("Versions", ())] or sorted(template.versions)
    versions = [_version(template, number) for number in sorted(numbers, reverse=True)]
    return {"LaunchTemplateVersions": versions}


def modify_launch_template(account: Account, params: Params) -> Answer:
    """Another default version."""
    template = template_of(account, params)
    template.default = template.version(params["DefaultVersion"])
    return {"LaunchTemplate": _shown(template)}


def delete_launch_template(account: Account, params: Params) -> Answer:
    """With all of its versions."""
    template = account.templates.pop(template_of(account, params).id)
    return {"LaunchTemplate": _shown(template)}


def delete_launch_template_versions(account: Account, params: Params) -> Answer:
    """All but the default version."""
    template = template_of(account, params)
    done, failed = [], []
    for asked in params["Versions"]:
        row = {"LaunchTemplateId": template.id, "LaunchTemplateName": template.name, "VersionNumber": int(asked)}
        if int(asked) not in template.versions or int(asked) == template.default:
            failed.append(row | {"ResponseError": {"Code": "launchTemplateVersionDoesNotExist", "Message": asked}})
            continue
        del template.versions[int(asked)]
        done.append(row)
    return {
        "SuccessfullyDeletedLaunchTemplateVersions": done,
        "UnsuccessfullyDeletedLaunchTemplateVersions": failed,
    }


def _shown(template: LaunchTemplate) -> dict[str, Any]:
    return {
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "CreateTime": template.created_at,
        "CreatedBy": _CREATOR,
        "DefaultVersionNumber": template.default,
        "LatestVersionNumber": max(template.versions),
        "Tags": tag_set(template.tags),
    }


def _version(template: LaunchTemplate, number: int) -> dict[str, Any]:
    data, description, created = template.versions[number]
    return {
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "VersionNumber": number,
        "VersionDescription": description or None,
        "CreateTime": created,
        "CreatedBy": _CREATOR,
        "DefaultVersion": number == template.default,
        "LaunchTemplateData": data,
    }


_FIELDS: Final[Mapping[str, Callable[[LaunchTemplate], list[str]]]] = {
    "launch-template-name": lambda template: [template.name],
}
_ONE: Final = "LaunchTemplateId LaunchTemplateName"
OPERATIONS: Final[Mapping[str, Operation]] = {
    "CreateLaunchTemplate": Operation(
        create_launch_template,
        "LaunchTemplateName LaunchTemplateData VersionDescription TagSpecifications ClientToken",
    ),
    "CreateLaunchTemplateVersion": Operation(
        create_launch_template_version, f"{_ONE} LaunchTemplateData VersionDescription SourceVersion ClientToken"
    ),
    "DescribeLaunchTemplates": Operation(
        describe_launch_templates, "LaunchTemplateIds LaunchTemplateNames Filters MaxResults NextToken"
    ),
    "DescribeLaunchTemplateVersions": Operation(describe_launch_template_versions, f"{_ONE} Versions"),
    "ModifyLaunchTemplate": Operation(modify_launch_template, f"{_ONE} DefaultVersion ClientToken"),
    "DeleteLaunchTemplate": Operation(delete_launch_template, _ONE),
    "DeleteLaunchTemplateVersions": Operation(delete_launch_template_versions, f"{_ONE} Versions"),
}
