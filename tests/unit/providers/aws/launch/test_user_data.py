"""A fresh machine learns its cluster, labels, taints and reservations from its user data."""

from __future__ import annotations

import base64
import json
import tomllib
from email import message_from_string
from typing import Any

import pytest

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from providers.aws.node_template.template import Cluster, UserData
from providers.errors import (
    TemplateError,
)
from tests.aws import TEMPLATE, Rig, request, running


def user_data(rig: Rig) -> str:
    (machine,) = running(rig)
    return base64.b64decode(machine.order.launch["UserData"]).decode()


def node_config(rig: Rig) -> dict[str, Any]:
    parts = message_from_string(user_data(rig)).get_payload()
    assert isinstance(parts, list)
    (found,) = (part for part in parts if part.get_content_type() == "application/node.eks.aws")  # type: ignore[union-attr]
    config: dict[str, Any] = json.loads(found.get_payload())  # type: ignore[union-attr]
    return config


DRESSED = {
    "labels": FrozenMap({"nvidia.com/gpu.present": "true", "foreslice.dev/pool": "gpu"}),
    "taints": (Taint("nvidia.com/gpu", "", "NoSchedule"), Taint("team", "x", "NoExecute")),
    "kubelet_reserved": FrozenMap({"cpu": Quantity.parse("500m")}),
}


def test_al2023_gets_a_node_config() -> None:
    rig = Rig()
    rig.write(labels=FrozenMap({"team": "template", "foreslice.dev/pool": "other"}))
    rig.provider.launch(request(**DRESSED))
    spec = node_config(rig)["spec"]
    assert spec["cluster"] == {
        "name": "test",
        "apiServerEndpoint": "https://example.eks.amazonaws.com",
        "certificateAuthority": "Q0E=",
        "cidr": "10.100.0.0/16",
    }
    assert spec["kubelet"]["flags"] == [
        "--node-labels=foreslice.dev/pool=gpu,nvidia.com/gpu.present=true,team=template"
    ]
    assert [taint["key"] for taint in spec["kubelet"]["config"]["registerWithTaints"]] == ["nvidia.com/gpu", "team"]
    assert spec["kubelet"]["config"]["kubeReserved"] == {"cpu": "500m"}


def test_what_the_template_leaves_out_is_asked_of_eks() -> None:
    rig = Rig()
    rig.write(cluster=Cluster("test"))
    rig.provider.launch(request(batch="b1"))
    rig.provider.launch(request(batch="b2"))
    assert rig.fake.calls["DescribeCluster"] == 1
    encoded = running(rig)[0].order.launch["UserData"]
    assert "gr7.us-east-1.eks.amazonaws.com" in base64.b64decode(encoded).decode()


def test_a_script_runs_before_the_node_joins() -> None:
    rig = Rig()
    rig.write(user_data_text="#!/bin/sh\nmodprobe x\n")
    rig.provider.launch(request())
    text = user_data(rig)
    assert text.index("modprobe x") < text.index("NodeConfig")
    assert message_from_string(text).is_multipart()


def test_bottlerocket_runs_the_dra_driver_instead_of_the_device_plugin() -> None:
    rig = Rig()
    rig.write(user_data=UserData.BOTTLEROCKET, user_data_text='[settings]\nmotd = "hi"\n[settings.kubernetes]\na = 1\n')
    rig.provider.launch(request(**DRESSED))
    settings = tomllib.loads(user_data(rig))["settings"]
    assert settings["kubelet-dra-drivers"]["nvidia"]["enabled"] is True
    assert settings["kubelet-device-plugins"]["nvidia"]["enabled"] is False
    assert (settings["motd"], settings["kubernetes"]["a"]) == ("hi", 1)
    assert settings["kubernetes"]["node-taints"] == {"nvidia.com/gpu": [":NoSchedule"], "team": ["x:NoExecute"]}
    assert settings["kubernetes"]["cluster-dns-ip"] == "10.100.0.10"
    assert settings["kubernetes"]["kube-reserved"] == {"cpu": "500m"}


def test_bottlerocket_without_gpus_is_left_alone() -> None:
    rig = Rig()
    rig.write(user_data=UserData.BOTTLEROCKET)
    rig.provider.launch(request())
    assert "kubelet-dra-drivers" not in tomllib.loads(user_data(rig))["settings"]


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        pytest.param(UserData.BOTTLEROCKET, "[settings", "no TOML", id="broken TOML"),
        pytest.param(UserData.AL2023, "hello", "neither a script, a NodeConfig nor MIME", id="prose"),
    ],
)
def test_text_that_cannot_be_merged_is_refused(kind: UserData, text: str, message: str) -> None:
    rig = Rig()
    rig.write(user_data=kind, user_data_text=text)
    with pytest.raises(TemplateError, match=message):
        rig.provider.launch(request())


def test_custom_text_is_left_alone() -> None:
    rig = Rig()
    rig.write(user_data=UserData.CUSTOM, user_data_text="#ignition")
    rig.provider.launch(request(**DRESSED))
    assert user_data(rig) == "#ignition"
    assert TEMPLATE.user_data is UserData.AL2023


MIME = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="theirs"

--theirs
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
echo first
--theirs
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {kubelet: {config: {maxPods: 42}}}
--theirs--
"""


def test_parts_of_a_mime_document_come_first() -> None:
    rig = Rig()
    rig.write(user_data_text=MIME)
    rig.provider.launch(request())
    parts = [part for part in message_from_string(user_data(rig)).walk() if not part.is_multipart()]
    kinds = [part.get_content_type() for part in parts]
    assert kinds == ["text/x-shellscript", "application/node.eks.aws", "application/node.eks.aws"]
    assert "maxPods: 42" in str(parts[1].get_payload())
    assert json.loads(str(parts[2].get_payload()))["spec"]["cluster"]["name"] == "test"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("MIME-Version: 1.0\nContent-Type: text/plain\n\nhello", id="one part"),
        pytest.param("MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nhello", id="no boundary"),
    ],
)
def test_a_mime_document_without_parts_is_refused(text: str) -> None:
    rig = Rig()
    rig.write(user_data_text=text)
    with pytest.raises(TemplateError, match="no MIME document of several parts"):
        rig.provider.launch(request())


def test_machines_of_an_ipv6_cluster_have_an_ipv6_address() -> None:
    rig = Rig()
    rig.write(cluster=Cluster("test", "https://example.eks.amazonaws.com", "Q0E=", "fd30:1c53:5f8a::/108"))
    rig.provider.launch(request())
    (machine,) = running(rig)
    first, *others = machine.order.launch["NetworkInterfaces"]
    assert (first["Ipv6AddressCount"], first["PrimaryIpv6"]) == (1, True)
    assert not any("Ipv6AddressCount" in other for other in others)
    assert machine.order.launch["MetadataOptions"]["HttpProtocolIpv6"] == "enabled"
    assert node_config(rig)["spec"]["cluster"]["cidr"] == "fd30:1c53:5f8a::/108"
