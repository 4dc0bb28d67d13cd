"""The demo comes out as its scenario expects, whole, in one go; and pods run where they were planned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.demo import demo


@pytest.fixture(scope="module")
def story() -> list[dict[str, Any]]:
    result = CliRunner().invoke(demo, ["-o", "json"])
    assert result.exit_code == 0, result.output[-2000:]
    return [json.loads(line) for line in result.output.splitlines()]


def of_kind(story: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [entry for entry in story if entry["event"] == event]


def test_everything_comes_out_as_expected(story: list[dict[str, Any]]) -> None:
    (summary,) = of_kind(story, "Summary")
    assert summary["succeeded"] is True
    assert summary["launched"] == summary["terminated"] > 5
    assert {pod["pod"]: pod["result"] for pod in summary["pods"] if pod["result"] != "Succeeded"} == {
        "default/late-comer": "Evicted",
        "default/impossible": "Pending",
    }


def test_pods_run_on_the_nodes_that_were_bought_for_them(story: list[dict[str, Any]]) -> None:
    bought = {pod: entry["nodes"] for entry in of_kind(story, "Chosen") for pod in entry["pods"]}
    ran = {entry["pod"]: entry["node"] for entry in of_kind(story, "Bound")}
    assert len(bought) >= 8
    assert {pod: ran[pod] in nodes for pod, nodes in bought.items()} == dict.fromkeys(bought, True)


def test_each_kind_of_claim_gets_its_devices(story: list[dict[str, Any]]) -> None:
    devices = {entry["pod"].removeprefix("default/"): entry["devices"] for entry in of_kind(story, "Bound")}
    assert devices["sharing-0"] == devices["sharing-1"]
    parts = [device.rsplit("/", 1)[-1] for device in devices["mig-parts"]]
    assert len({part.split("-mig-")[0] for part in parts}) == 1
    assert {device.split("/")[0] for device in devices["aligned"]} == {"gpu.nvidia.com", "dra.net"}
    assert len(devices["finetune"]) == 8
    assert len(devices["legacy"]) == 1


def test_the_node_of_the_block_is_held_told_and_drained_and_costs_nothing(story: list[dict[str, Any]]) -> None:
    (held,) = of_kind(story, "Held")
    block = held["node"]
    moments = [
        next(entry["at"] for entry in story if entry["event"] == event and entry.get("node") == block)
        for event in ("Launched", "Held", "Noticed", "Draining", "Gone")
    ]
    assert moments == sorted(moments)
    assert moments[-1] < "2026-11-02T15:30"
    assert [entry["usd"] for entry in of_kind(story, "Gone") if entry["node"] == block] == ["0"]


def test_the_impossible_claim_gets_its_nearest_miss(story: list[dict[str, Any]]) -> None:
    (refused,) = of_kind(story, "Refused")
    assert refused["pod"] == "default/impossible"
    assert "500Gi" in refused["nearest"]
