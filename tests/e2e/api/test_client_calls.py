"""Cluster Autoscaler's loops, made by a Go client over mTLS: what it asks and remembers is as in its source, time is
virtual, and Nodes and ResourceSlices are read with Kubernetes' own Go types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES
from autoscaler.externalgrpc.wire import Json
from tests.e2e.harness.authority import Authority, now
from tests.e2e.harness.client_calls import DRIVER, Autoscaler, Held, Served
from tests.unit.externalgrpc.cluster import START, Cluster
from tests.unit.externalgrpc.test_service import SMALL

_PAGE: Final = Path(__file__).parents[3] / "docs" / "cluster-autoscaler.md"
_BEGIN, _END = "<!-- replayed: begin -->\n", "<!-- replayed: end -->"
_EXPIRED: Final = timedelta(days=3)


class Replay:
    """A cluster, the service beside it, and a Cluster Autoscaler that calls it."""

    def __init__(self, folder: Path, closing: ExitStack, **cluster: Any) -> None:
        self.authority = Authority(now())
        self.cluster = Cluster(**{"pods": 1, **cluster})
        self.cluster.run(seconds=30)
        self.served = Served(self.cluster, folder / "server", self.authority)
        closing.callback(self.served.end)
        self.autoscaler = Autoscaler(self.served, folder / "client", self.authority)
        closing.callback(self.autoscaler.close)

    @property
    def orders(self) -> int:
        return len(list_all(self.cluster.simulation.api, LAUNCH_BATCHES)[0])

    def node(self) -> str:
        """The machine of the one node."""
        (found,) = self.cluster.simulation.cloud.machines.values()
        return found.provider_id


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Callable[..., Replay]]:
    with ExitStack() as closing:
        yield lambda **cluster: Replay(tmp_path, closing, **cluster)


def first(loop: Json) -> str:
    return str(loop["groups"][0]["id"])


def asked(loop: Json, method: str) -> int:
    return sum(call.split(" ")[0] == method for call in loop["calls"])


def test_from_zero_with_a_claim_and_back(replay: Callable[..., Replay]) -> None:
    made = replay()
    loop = made.autoscaler.loop()
    group = first(loop)
    assert (loop["scaled"], loop["by"]) == (group, 1)
    template = loop["templates"][group]
    assert template["node"]["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g6.xlarge"
    assert template["node"]["status"]["allocatable"]["cpu"]
    assert "RestartAllContainersOnContainerExits" in template["node"]["status"]["declaredFeatures"]
    (piece,) = template["slices"]
    assert piece["spec"]["driver"] == DRIVER
    assert [device["name"] for device in piece["spec"]["devices"]] == ["gpu-0"]
    assert loop["gpuLabel"]
    later = made.autoscaler.loops(minutes=10)
    assert not [one for one in later if "scaled" in one or "ended" in one]
    assert later[-1]["sizes"][group] == 1
    assert asked(later[-1], "GPULabel") == 0  # kept for ever
    assert asked(later[-1], "NodeGroupForNode") == 1  # kept until the next Refresh
    assert (made.cluster.machines, made.orders) == (1, 1)
    made.cluster.run(hours=1)  # the pod has ended
    loop = made.autoscaler.loop(unneeded=(made.node(),))
    assert "ended" not in loop
    made.autoscaler.loops(minutes=5)
    assert made.cluster.alive == 0


@pytest.mark.parametrize("trouble", ["stock", "quota"])
def test_what_is_sold_out_is_left_alone_and_another_group_taken(replay: Callable[..., Replay], trouble: str) -> None:
    made = replay()
    cloud = made.cluster.simulation.cloud
    if trouble == "stock":
        cloud.shortage(SMALL, since=START, until=START + timedelta(days=1))
    else:
        cloud.quota("on-demand", 0)
    group = first(made.autoscaler.loop())
    loops = made.autoscaler.loops(minutes=4)
    (failing, *_) = [loop for loop in loops if loop["withdrawn"]]
    because = {"stock": "class 1 OUT_OF_RESOURCES", "quota": "class 1 QUOTA_EXCEEDED"}[trouble]
    assert failing["backoffs"][group] == f"{because} for 300 s"
    assert failing["withdrawn"][0].startswith("foreslice://")
    assert not [loop for loop in loops if loop.get("scaled") == group], "ordered again while it backs off"
    if trouble == "stock":
        assert [loop["scaled"] for loop in loops if "scaled" in loop] == [failing["groups"][1]["id"]]
        assert made.cluster.machines == 1
    else:
        assert made.cluster.machines == 0


@pytest.mark.parametrize("late", ["call", "answer"])
def test_an_increase_that_times_out_is_ordered_once(replay: Callable[..., Replay], late: str) -> None:
    made = replay()
    held = Held(made.cluster, "NodeGroupIncreaseSize", before=late == "call")
    made.served.answering(held)
    loop = made.autoscaler.loop()
    group = loop["scaled"]
    assert loop["ended"] == "increase: DeadlineExceeded"
    assert loop["backoffs"] == {group: "class 99 cloudProviderError for 300 s"}
    held.release()
    made.served.answering(None)
    loops = made.autoscaler.loops(minutes=10)
    assert not [one for one in loops if "scaled" in one]
    assert loops[-1]["sizes"][group] == 1
    assert (made.cluster.machines, made.orders) == (1, 1)


def test_a_repeated_call_is_an_order_of_its_own_within_the_limit(replay: Callable[..., Replay]) -> None:
    """Calls have no key. What bounds them is the size that the next call sees."""
    made = replay()
    group = first(made.autoscaler.loop())
    answers = [made.autoscaler.increase(group, 1) for _ in range(5)]
    assert [answer["code"] for answer in answers] == ["OK"] * 3 + ["OutOfRange"] * 2
    made.autoscaler.loops(minutes=10)
    loop = made.autoscaler.loop()
    assert loop["sizes"][group] == made.cluster.machines == 4
    machine = loop["instances"][group][0]["id"]
    for _ in range(2):  # a deletion that is repeated takes no other node with it
        assert made.autoscaler.delete(group, machine)["code"] == "OK"
    made.autoscaler.loops(minutes=5)
    assert made.autoscaler.loop()["sizes"][group] == made.cluster.alive == 3


def test_a_service_that_ends_in_the_middle_and_comes_back(replay: Callable[..., Replay]) -> None:
    made = replay()
    group = first(made.autoscaler.loop())
    made.served.end()
    lost = made.autoscaler.loop()
    assert lost["ended"] == "refresh: Unavailable"
    assert lost["calls"] == ["Refresh -> Unavailable"]
    made.served.restart()
    made.autoscaler.connect()
    loops = made.autoscaler.loops(minutes=10)
    assert not [loop for loop in loops if "scaled" in loop or "ended" in loop]
    assert loops[-1]["sizes"][group] == 1
    assert (made.cluster.machines, made.orders) == (1, 1)


def test_a_client_that_starts_anew_orders_nothing_again(replay: Callable[..., Replay]) -> None:
    made = replay()
    group = first(made.autoscaler.loop())
    made.autoscaler.start()
    loop = made.autoscaler.loop()
    assert "scaled" not in loop
    assert loop["sizes"][group] == 1
    made.autoscaler.loops(minutes=5)
    assert made.cluster.machines == 1


def test_a_client_that_starts_anew_deletes_what_failed_before(replay: Callable[..., Replay]) -> None:
    """It ordered nothing since it started, so the failure is none of its own; what it orders there is refused."""
    made = replay()
    made.cluster.simulation.cloud.shortage(SMALL, since=START, until=START + timedelta(days=1))
    group = first(made.autoscaler.loop())
    made.autoscaler.start()
    loops = made.autoscaler.loops(minutes=4)
    assert [loop["withdrawn"] for loop in loops if loop["withdrawn"]]
    (refused,) = [loop for loop in loops if loop.get("scaled") == group]
    assert refused["ended"] == "increase: OutOfRange"
    assert refused["backoffs"] == {group: "class 99 cloudProviderError for 300 s"}
    assert [loop["scaled"] for loop in loops if "scaled" in loop] == [group, refused["groups"][1]["id"]]
    assert (made.cluster.machines, made.orders) == (1, 1)


def test_a_release_without_the_field_scales_nothing_from_zero(replay: Callable[..., Replay]) -> None:
    made = replay()
    made.autoscaler.start(**made.autoscaler.config, older=True)
    loop = made.autoscaler.loop()
    assert "ended" not in loop
    assert loop["templates"][first(loop)]["node"]["metadata"]["labels"]
    assert not [found for found in loop["templates"].values() if found["slices"]]
    assert "scaled" not in loop
    assert made.orders == 0


@pytest.mark.parametrize("side", ["server", "client"])
def test_expired_certificates_end_the_loop_at_its_first_call(tmp_path: Path, side: str) -> None:
    authority = Authority(now())
    cluster = Cluster(pods=1)
    cluster.run(seconds=30)
    ages = {each: _EXPIRED if each == side else timedelta(0) for each in ("server", "client")}
    with ExitStack() as closing:
        served = Served(cluster, tmp_path / "server", authority, age=ages["server"])
        closing.callback(served.end)
        caller = Autoscaler(served, tmp_path / "client", authority, age=ages["client"])
        closing.callback(caller.close)
        loop = caller.loop()
        assert loop["calls"] == ["Refresh -> Unavailable"]
        assert loop["ended"] == "refresh: Unavailable"
    assert list_all(cluster.simulation.api, LAUNCH_BATCHES)[0] == ()


def test_the_page_shows_what_was_replayed(replay: Callable[..., Replay]) -> None:
    made = replay()
    made.cluster.simulation.cloud.shortage(SMALL, since=START, until=START + timedelta(days=1))
    lines = []

    def told(title: str, loop: Json) -> None:
        lines.extend([f"# {title}", *loop["calls"]])
        lines.extend(f"    {group} backs off: {why}" for group, why in loop["backoffs"].items())

    told("a pod with a claim is pending, and there is no node", made.autoscaler.loop())
    loops = made.autoscaler.loops(minutes=12)
    failing = next(loop for loop in loops if loop["withdrawn"])
    told("the loop that reads that the type is sold out, two minutes later at the latest", failing)
    told("twelve minutes after the first loop: the node is there, and the pod runs", loops[-1])
    made.cluster.run(hours=1)
    told("an hour later: the node is empty", made.autoscaler.loop(unneeded=(made.node(),)))
    shown = "\n".join(lines)
    page = _PAGE.read_text(encoding="utf-8")
    begin, _, rest = page.partition(_BEGIN)
    _, found, end = rest.partition(_END)
    assert found, "the page has the markers"
    wanted = f"{begin}{_BEGIN}```\n{shown}\n```\n{_END}{end}"
    if os.environ.get("UPDATE_GOLDEN"):
        _PAGE.write_text(wanted, encoding="utf-8")
        return
    assert page == wanted, "run UPDATE_GOLDEN=1 pytest on this file, and read the difference"
