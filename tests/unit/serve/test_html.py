"""A page as one file: it loads nothing, leads nowhere else, and explains every pending pod."""

from __future__ import annotations

import re

from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.serve.html import one_file
from instance_catalog.dataclass import replace
from tests.builders import CATALOG, NOW, claim, gpus, pod, snapshot

GIVEN = snapshot([pod("fits", "a"), pod("too-big", "b")], [claim("a"), claim("b", gpus(20))])
PLAN = plan_for(GIVEN, CATALOG, Policy(), NOW)


def test_nothing_is_loaded_and_every_link_is_in_the_file() -> None:
    text = one_file(GIVEN, PLAN, NOW, title="plan")
    links = re.findall(r'(?:href|src|action)="([^"]*)"', text)
    assert all(link.startswith("#") for link in links)
    ids = set(re.findall(r'id="([^"]*)"', text))
    assert {link.removeprefix("#") for link in links} <= ids
    assert "<script" not in text
    assert "http-equiv" not in text


def test_every_pending_pod_is_explained() -> None:
    text = one_file(GIVEN, PLAN, NOW, title="plan")
    assert '<section class="pod" id="pod-default-fits">' in text
    assert '<section class="pod" id="pod-default-too-big">' in text
    assert "of 20 devices" in text


def test_names_are_text() -> None:
    strange = replace(GIVEN, pods=(replace(GIVEN.pods[0], name="</style><script>alert(1)</script>"),))
    text = one_file(strange, plan_for(strange, CATALOG, Policy(), NOW), NOW, title="<b>")
    assert "<script>" not in text
    assert "<b>" not in text


def test_what_would_help_stands_beside_the_pod() -> None:
    lines = ["request 8 devices", "→ 1 × <b>"]
    text = one_file(GIVEN, PLAN, NOW, title="plan", helping={"default/too-big": lines})
    assert text.count("<li>request 8 devices</li><li>→ 1 × &lt;b&gt;</li>") == 1
    assert "1 node to launch, 1.00 $/h" in text
    assert "managed node" not in text
