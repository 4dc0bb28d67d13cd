"""Which node group the expander takes, and why."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import grpc
import pytest

from autoscaler.externalgrpc.expander import Expander, best
from autoscaler.externalgrpc.kubernetes_types import POD
from autoscaler.externalgrpc.messages import BEST_OPTIONS, EXPANDER
from autoscaler.externalgrpc.node_groups import Launchable, launchable_of
from autoscaler.externalgrpc.server import OF_EXPANDER, GrpcServer
from autoscaler.externalgrpc.wire import Json, decode, encode
from autoscaler.model.capacity import CapacityPool, Launcher, Mode, Permission
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, block, claim, gang, gpus, pod, snapshot

POOL = CapacityPool(
    "gpu",
    mode=Mode.ACT,
    launcher=Launcher.CLUSTER_AUTOSCALER,
    drivers=("nvidia",),
    capacity_types=(CapacityType.CAPACITY_BLOCK, CapacityType.ON_DEMAND),
    overflow=Permission.ALLOW,
)


def launchable(*pods: Any, **fields: Any) -> Launchable:
    claims = [claim(f"claim-{index}", gpus()) for index in range(len(pods))]
    state = snapshot(pods, claims, pools=(POOL,), **fields)
    return launchable_of(state, CATALOG, Policy(), NOW, most=50)


def option(group: str, *names: str, nodes: int = 1) -> Json:
    pods = [encode(POD, {"metadata": {"namespace": "default", "name": name}}) for name in names]
    return {"nodeGroupId": group, "nodeCount": nodes, "podBytes": pods}


def group_of(found: Launchable, instance_type: str, capacity_type: str = "on-demand") -> str:
    return next(
        name
        for name, candidate in found.candidates.items()
        if candidate.instance_type.name == instance_type and candidate.offering.capacity_type == capacity_type
    )


def by_price(found: Launchable) -> list[str]:
    candidates = [name for name, c in found.candidates.items() if c.usd_per_hour and c.barred is None]
    return sorted(candidates, key=lambda name: found.candidates[name].usd_per_hour or Decimal(0))


def test_the_lower_price_wins() -> None:
    found = launchable(pod("a", "claim-0"))
    cheap, *_, dear = by_price(found)
    choice = best([option(dear, "a"), option(cheap, "a")], found)
    assert (choice.ids, choice.why) == ((cheap,), "price")


def test_many_cheap_nodes_may_cost_more_than_one_dear_one() -> None:
    found = launchable(pod("a", "claim-0"))
    cheap, *_, dear = by_price(found)
    assert best([option(dear), option(cheap, nodes=1000)], found).ids == (dear,)


def test_what_is_paid_for_wins_over_every_price() -> None:
    held = block(instance_type="s4", starts_at=NOW - timedelta(hours=1), ends_at=NOW + timedelta(days=2))
    found = launchable(pod("a", "claim-0"), blocks=(held,))
    prepaid = group_of(found, "s4", "capacity-block")
    cheap = by_price(found)[0]
    choice = best([option(cheap, "a"), option(prepaid, "a")], found)
    assert (choice.ids, choice.why) == ((prepaid,), "prepaid")


def test_equal_prices_are_decided_by_what_is_left_over() -> None:
    found = launchable(pod("a", "claim-0"), pod("b", "claim-1"))
    small, *_, large = sorted(found.candidates, key=lambda name: found.candidates[name].instance_type.accelerator_count)
    same = {name: replace(found.candidates[name], usd_per_hour=Decimal(1)) for name in (small, large)}
    found = replace(found, candidates=same)
    choice = best([option(large, "a"), option(small, "a")], found)
    assert (choice.ids, choice.why) == ((small,), "fragmentation")


def test_a_gang_is_started_as_a_whole_or_held_back() -> None:
    members = [pod(name, f"claim-{index}", gang="g") for index, name in enumerate("abc")]
    found = launchable(*members, gangs=gang("g", 3))
    cheap, *_, dear = by_price(found)
    whole = best([option(cheap, "a", "b"), option(dear, "a", "b", "c")], found)
    assert whole.ids == (dear,)
    held = best([option(cheap, "a", "b"), option(dear, "c")], found)
    assert (held.ids, held.why) == ((), "gang")
    assert "default/g" in held.detail


def test_options_of_others_are_passed_on() -> None:
    found = launchable(pod("a", "claim-0"))
    choice = best([option("x", "a"), option("y", "a")], found)
    assert (choice.ids, choice.why) == (("x", "y"), "unknown")
    cheap = by_price(found)[0]
    assert best([option("x", "a"), option(cheap, "a")], found).ids == (cheap,)


@pytest.mark.parametrize("known", [True, False])
def test_over_a_socket(known: bool) -> None:
    found = launchable(pod("a", "claim-0"))
    cheap, *_, dear = by_price(found)
    told: list[str] = []
    expander = Expander(lambda: found if known else None, told.append)
    server = GrpcServer.of_expander(expander.call, "127.0.0.1:0", None, lambda method, status: None)
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
    try:
        question = encode(BEST_OPTIONS[0], {"options": [option(dear, "a"), option(cheap, "a")], "nodeBytesMap": {}})
        answer = decode(BEST_OPTIONS[1], channel.unary_unary(f"/{EXPANDER}/BestOptions")(question, timeout=20))
    finally:
        channel.close()
        server.stop()
    assert [each["nodeGroupId"] for each in answer["options"]] == ([cheap] if known else [dear, cheap])
    assert told == (["price"] if known else ["unknown"])


class Asked:
    """An expander behind a socket, and what its service was asked."""

    def __init__(self, found: Launchable | None) -> None:
        self.reached: list[int] = []
        self.told: list[str] = []
        expander = Expander(lambda: found, self.told.append)

        def call(method: str, asked: Json) -> Json:
            self.reached.append(len(asked.get("options", [])))
            return expander.call(method, asked)

        self._server = GrpcServer.of_expander(call, "127.0.0.1:0", None, lambda method, status: None)
        self._server.start()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self._server.port}")

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._server.stop()

    def refused(self, *options: Json) -> tuple[grpc.StatusCode, str]:
        question = encode(BEST_OPTIONS[0], {"options": list(options), "nodeBytesMap": {}})
        with pytest.raises(grpc.RpcError) as error:
            self._channel.unary_unary(f"/{EXPANDER}/BestOptions")(question, timeout=60)
        return error.value.code(), error.value.details()


@pytest.mark.parametrize("known", [True, False], ids=["after-a-reconcile", "before-the-first"])
@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        pytest.param({"nodeCount": 0}, {}, "nodeCount is 0", id="no-node"),
        pytest.param({"nodeCount": -3}, {}, "nodeCount is -3", id="less-than-none"),
        pytest.param({"nodeGroupId": "twice"}, {"nodeGroupId": "twice"}, "same nodeGroupId", id="one-id-twice"),
        pytest.param({"nodeGroupId": ""}, {}, "no nodeGroupId", id="no-id"),
    ],
)
def test_options_that_cannot_be_compared_are_refused(known: bool, first: Json, second: Json, why: str) -> None:
    found = launchable(pod("a", "claim-0"))
    cheap, *_, dear = by_price(found)
    with Asked(found if known else None) as expander:
        code, details = expander.refused({**option(cheap, "a"), **first}, {**option(dear, "a"), **second})
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert why in details
        assert "option " in details
        assert expander.told == [], "nothing was chosen"


def test_a_message_of_a_stranger_is_bounded_before_it_is_decoded() -> None:
    with Asked(None) as expander:
        code, _ = expander.refused({"nodeGroupId": "x", "nodeCount": 1, "podBytes": [bytes(OF_EXPANDER.message)]})
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert expander.reached == []
    assert OF_EXPANDER.message * OF_EXPANDER.calls <= 128 * 1024 * 1024
