"""AWSNodeTemplates reach the provider as they are written, and what is wrong with one is said."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import AWS_GROUP_NODE_TEMPLATES, AWS_NODE_TEMPLATES
from autoscaler.composition.aws import aws_providers, group_templates, machine_templates
from autoscaler.errors import ConfigurationError
from autoscaler.settings.settings import AwsSettings
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from providers.aws.node_template.template import GroupTemplate, Interfaces, Selector, UserData, Volume
from providers.contract import TemplateRef
from providers.errors import TemplateError
from providers.plugins import Surroundings

SPEC: dict[str, Any] = {
    "cluster": {"name": "test"},
    "subnets": [{"tags": {"kubernetes.io/cluster/test": "owned"}}, {"id": "subnet-1"}],
    "securityGroups": [{"id": "sg-1"}],
    "ami": {"ssmParameter": "/aws/service/ami"},
    "instanceProfile": "nodes",
    "userData": {"kind": "Bottlerocket"},
    "blockDevices": [{"sizeGiB": 200, "snapshotId": "snap-1"}],
    "networkInterfaces": "Single",
    "openReservations": "Avoid",
    "bootTimeout": "25m",
}


def written(resource: Any, spec: dict[str, Any]) -> ProviderObjects:
    api = ApiServer(VirtualClock())
    api.create(resource, {"metadata": {"name": "gpu"}, "spec": spec})
    return ProviderObjects(api)


def test_a_template_as_it_is_written() -> None:
    templates = machine_templates(written(AWS_NODE_TEMPLATES, SPEC))
    found = templates.template(TemplateRef("AWSNodeTemplate", "gpu"))
    assert templates.references() == (TemplateRef("AWSNodeTemplate", "gpu", 1),)
    assert found.subnets == (Selector(tags=FrozenMap({"kubernetes.io/cluster/test": "owned"})), Selector("subnet-1"))
    assert (found.image.parameter, found.image.follow) == ("/aws/service/ami", False)
    assert found.user_data is UserData.BOTTLEROCKET
    assert found.volumes == (Volume("/dev/xvda", 200, snapshot="snap-1"),)
    assert found.interfaces is Interfaces.SINGLE
    assert found.use_open_reservations is False
    assert found.boot_timeout == timedelta(minutes=25)


def test_a_group_template_as_it_is_written() -> None:
    spec = {"clusterName": "test", "nodeGroups": ["blocks"], "launch": "DesiredCapacity"}
    templates = group_templates(written(AWS_GROUP_NODE_TEMPLATES, spec))
    found = templates.template(TemplateRef("AWSGroupNodeTemplate", "gpu"))
    assert found == GroupTemplate("gpu", (), "test", ("blocks",), by_instances=False)
    assert templates.references() == (TemplateRef("AWSGroupNodeTemplate", "gpu", 1),)


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        pytest.param("other", SPEC, "there is no AWSNodeTemplate 'other'", id="absent"),
        pytest.param("", SPEC, "there is no AWSNodeTemplate ''", id="not named by the pool"),
        pytest.param("gpu", {**SPEC, "ami": {}}, "exactly one of them", id="no image"),
        pytest.param("gpu", {**SPEC, "subnets": []}, "subnets", id="no subnet"),
    ],
)
def test_what_is_wrong_is_said(name: str, spec: dict[str, Any], message: str) -> None:
    templates = machine_templates(written(AWS_NODE_TEMPLATES, spec))
    with pytest.raises(TemplateError, match=message):
        templates.template(TemplateRef("AWSNodeTemplate", name))


def test_both_kinds_of_templates_have_a_provider() -> None:
    objects = written(AWS_NODE_TEMPLATES, SPEC)
    surroundings = Surroundings("uid", VirtualClock(), objects, load_catalog())
    found = aws_providers(surroundings, AwsSettings(region="us-east-1"))
    assert {kind: provider.name for kind, provider in found.items()} == {
        "AWSNodeTemplate": "aws",
        "AWSGroupNodeTemplate": "aws-groups",
    }


def test_a_bad_price_file_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("prices: [{instanceType: p5.48xlarge, capacityType: cheap, factor: 1}]")
    surroundings = Surroundings("uid", VirtualClock(), written(AWS_NODE_TEMPLATES, SPEC), load_catalog())
    with pytest.raises(ConfigurationError, match=r"aws\.prices: .*cheap"):
        aws_providers(surroundings, AwsSettings(region="us-east-1", prices=str(tmp_path / "prices.yaml")))
