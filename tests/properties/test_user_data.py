"""Hostile labels, taints and names never become a flag or a line of user data: they are refused, or stay data."""

from __future__ import annotations

import base64
import json
import tomllib
from email import message_from_string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from providers.aws.node_template.template import Cluster, Image, NodeTemplate, UserData
from providers.aws.node_template.user_data import user_data
from providers.contract import TAG_CLUSTER, LaunchRequest, OfferingKey, TemplateRef
from providers.errors import TemplateError

GOOD = Cluster("prod", "https://example.eks.amazonaws.com", "Q0E=", "10.100.0.0/16")
PIECES = ["x", "a.b/c", " ", "\n", "\r", "\t", "\x00", "\x1b", "=", ",", "--", "--anonymous-auth=true", '"', "'", "\\"]
PIECES += [
    "${",
    "`id`",
    "$(id)",
    "{{",
    "]",
    "\n[settings.x]\n",
    "\n--foreslice\n",
    "#",
    ":",
    "é",
    "\u202e",
    "\u2028",
    "\x7f",
]
hostile = st.lists(st.sampled_from(PIECES), max_size=4).map("".join) | st.text(max_size=8)
maps = st.dictionaries(hostile, hostile, max_size=2)
taints = st.lists(st.builds(Taint, hostile, hostile, st.just("NoSchedule") | hostile), max_size=2).map(tuple)


def made(
    kind: UserData,
    *,
    labels: dict[str, str] | None = None,
    of_template: dict[str, str] | None = None,
    tainted: tuple[Taint, ...] = (),
    reserved: tuple[str, ...] = (),
    cluster: Cluster = GOOD,
    text: str = "",
) -> str:
    """The user data, decoded."""
    template = NodeTemplate(
        "prod",
        cluster,
        (),
        (),
        Image("ami-1"),
        "nodes",
        user_data=kind,
        user_data_text=text,
        labels=FrozenMap(of_template or {}),
    )
    request = LaunchRequest(
        token="t",
        nodes=("n",),
        offerings=(OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND),),
        tags=FrozenMap({TAG_CLUSTER: "uid"}),
        template=TemplateRef("AWSNodeTemplate", "prod"),
        labels=FrozenMap(labels or {}),
        taints=tainted,
        kubelet_reserved=FrozenMap({name: Quantity.parse("1") for name in reserved}),
    )
    return base64.b64decode(user_data(template, cluster, request)).decode()


def config_of(text: str) -> dict[str, Any]:
    """The one NodeConfig; there is no other part."""
    (part,) = message_from_string(text).get_payload()
    found: dict[str, Any] = json.loads(part.get_payload())  # type: ignore[union-attr]
    return found


@given(maps, maps, taints, st.lists(hostile, max_size=1).map(tuple))
def test_the_kubelet_gets_one_flag(
    labels: dict[str, str], of_template: dict[str, str], tainted: tuple[Taint, ...], reserved: tuple[str, ...]
) -> None:
    try:
        text = made(UserData.AL2023, labels=labels, of_template=of_template, tainted=tainted, reserved=reserved)
    except TemplateError:
        return
    (flag,) = config_of(text)["spec"]["kubelet"]["flags"]
    # systemd splits the environment file where there are blanks and lines.
    assert flag.split() == [flag]
    assert flag.isprintable()
    pairs = [pair for pair in flag.removeprefix("--node-labels=").split(",") if pair]
    assert dict(pair.split("=") for pair in pairs) == {**of_template, **labels}


@given(maps, taints)
def test_bottlerocket_gets_the_tables_that_are_meant(labels: dict[str, str], tainted: tuple[Taint, ...]) -> None:
    try:
        settings = tomllib.loads(made(UserData.BOTTLEROCKET, labels=labels, tainted=tainted))
    except TemplateError:
        return
    assert set(settings) == {"settings"}
    assert settings["settings"].keys() <= {"kubernetes", "kubelet-dra-drivers", "kubelet-device-plugins"}
    assert settings["settings"]["kubernetes"].get("node-labels", {}) == labels


@given(hostile, hostile, hostile, hostile)
@pytest.mark.parametrize("kind", [UserData.AL2023, UserData.BOTTLEROCKET])
def test_how_a_machine_finds_its_cluster_is_one_word_each(
    kind: UserData, name: str, endpoint: str, authority: str, cidr: str
) -> None:
    for cluster in (
        Cluster(name, GOOD.endpoint, GOOD.certificate_authority, GOOD.service_cidr),
        Cluster(GOOD.name, f"https://{endpoint}", GOOD.certificate_authority, GOOD.service_cidr),
        Cluster(GOOD.name, GOOD.endpoint, authority, GOOD.service_cidr),
        Cluster(GOOD.name, GOOD.endpoint, GOOD.certificate_authority, cidr),
    ):
        try:
            made(kind, cluster=cluster)
        except TemplateError:
            continue
        words = (cluster.name, cluster.endpoint, cluster.certificate_authority, cluster.service_cidr)
        assert all(word.isprintable() and len(word.split()) <= 1 for word in words)
        assert not set("".join(words)) & set("\"'`$\\{}#,")


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=4) | st.booleans() | st.integers(-9, 9), max_size=3))
def test_settings_of_a_template_come_back_as_they_were(own: dict[str, Any]) -> None:
    lines = "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in own.items())
    try:
        found = tomllib.loads(f"[settings.own]\n{lines}")["settings"]["own"]
    except tomllib.TOMLDecodeError:
        return  # JSON writes what TOML does not know: pairs of surrogates
    merged = tomllib.loads(made(UserData.BOTTLEROCKET, text=f"[settings.own]\n{lines}"))
    assert merged["settings"].get("own", {}) == found


@pytest.mark.parametrize("text", ["x = 2027-01-31", "x = [{a = 1}]", "x = inf", "x = 1979-05-27T07:32:00Z"])
def test_what_no_setting_can_be_is_refused(text: str) -> None:
    with pytest.raises(TemplateError, match="no setting"):
        made(UserData.BOTTLEROCKET, text=f"[settings]\n{text}")


def test_a_script_cannot_end_the_message_before_the_nodes_own_part() -> None:
    with pytest.raises(TemplateError, match="--foreslice"):
        made(UserData.AL2023, text="#!/bin/sh\n--foreslice--\n")


@pytest.mark.parametrize("value", ["x --anonymous-auth=true", "x\nKUBELET_EXTRA_ARGS=--anonymous-auth=true", "a,b=c"])
@pytest.mark.parametrize("kind", UserData)
def test_what_was_injected_once_is_refused_with_the_place_to_correct(kind: UserData, value: str) -> None:
    with pytest.raises(TemplateError, match="is not a value of label 'team'") as caught:
        made(kind, labels={"team": value}, text="#!/bin/sh\n" if kind is UserData.CUSTOM else "")
    assert "pool or the node template" in caught.value.next_step
