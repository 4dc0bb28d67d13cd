"""What is remembered of a node from one snapshot to the next, and what makes it be looked at again."""

from __future__ import annotations

import gc
import weakref

import pytest

from autoscaler.dra.inventory.devices import ClusterDevices, NodeMemory
from autoscaler.dra.inventory.selectable import RequestMatches
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule, Selector
from autoscaler.model.node import Node
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import NodeReach, Pool, ResourceSlice, RuntimeOnly
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.predict import PLACEHOLDER_NODE
from tests.unit.dra.build import ANY, DRIVER, NODE, PythonSelectors, devices

OTHERS = Node("node-2")
MINE = ResourceSlice("mine", DRIVER, Pool("pool", 1, 1), tuple(devices(2, {"a": "x"})), NodeReach(node_name=NODE.name))
THEIRS = ResourceSlice("theirs", DRIVER, Pool("other", 1, 1), tuple(devices(1)), NodeReach(node_name=OTHERS.name))
EVERYWHERE = ResourceSlice("far", DRIVER, Pool("far", 1, 1), tuple(devices(1)), NodeReach(all_nodes=True))
PROFILE = REFERENCE.with_gates(device_taint_rules=True)
SICK = Taint("sick", "", "NoSchedule")
REQUEST = DeviceRequest("gpu", ANY.name)


class Watched(Selector, weakref=True):
    """A selector of which can be seen whether anybody still holds it."""


def seen(
    memory: NodeMemory, *slices: ResourceSlice, rules: tuple[DeviceTaintRule, ...] = (), node: Node = NODE
) -> object:
    """What a snapshot with these slices knows of the node."""
    return ClusterDevices.of(slices, [ANY], rules, PROFILE, memory=memory).pools_of(node)


@pytest.mark.parametrize(("fatal", "pools"), [(False, ["far", "pool"]), (True, ["far"])])
def test_devices_by_slice_are_the_devices_in_order(fatal: bool, pools: list[str]) -> None:
    """A pool with a device twice offers nothing, and in v0.34 those after it neither; nor does one with a gap."""
    twice = replace(MINE, name="twice", pool=Pool("gpus", 1, 1), devices=(*devices(1), *devices(1)))
    gap = replace(MINE, name="gap", pool=Pool("gap", 1, 2))
    behaviour = replace(PROFILE.allocator, duplicate_device_fatal=fatal)
    profile = replace(PROFILE, allocator=behaviour)
    found, _ = ClusterDevices.of((MINE, twice, gap, EVERYWHERE), [ANY], (), profile).pools_of(NODE)
    offered = [(pool, device) for pool, of_slice in found.offered() for device in of_slice]
    assert offered == [(pooled.pool, pooled.device) for pooled in found.devices]
    assert list(dict.fromkeys(pool.name for pool, _ in offered)) == pools


def test_a_node_that_has_not_changed_is_not_gathered_again() -> None:
    memory = NodeMemory(PythonSelectors())
    first = seen(memory, MINE, THEIRS)
    assert seen(memory, MINE) is first, "slices of other nodes make no difference"


@pytest.mark.parametrize(
    ("slices", "rules", "node"),
    [
        pytest.param((replace(MINE, devices=tuple(devices(3))),), (), NODE, id="another-slice"),
        pytest.param((), (), NODE, id="no-slice-any-more"),
        pytest.param((MINE, EVERYWHERE), (), NODE, id="a-slice-for-all-nodes"),
        pytest.param((MINE, replace(THEIRS, pool=MINE.pool)), (), NODE, id="a-slice-elsewhere-in-its-pool"),
        pytest.param((MINE,), (), replace(NODE, labels=FrozenMap({"region": "2"})), id="other-labels"),
        pytest.param((MINE,), (DeviceTaintRule("r", SICK, driver=DRIVER),), NODE, id="a-taint-rule"),
    ],
)
def test_what_its_pools_depend_on_makes_a_node_be_gathered_again(
    slices: tuple[ResourceSlice, ...], rules: tuple[DeviceTaintRule, ...], node: Node
) -> None:
    memory = NodeMemory(PythonSelectors())
    first = seen(memory, MINE)
    assert seen(memory, *slices, rules=rules, node=node) is not first


@pytest.mark.parametrize(
    ("there", "forgotten"),
    [
        pytest.param([NODE], False, id="there"),
        pytest.param([replace(NODE, ready=False)], False, id="there-and-not-ready"),
        pytest.param([OTHERS], True, id="gone"),
        pytest.param([replace(NODE, labels=FrozenMap({"region": "2"}))], True, id="other-labels"),
    ],
)
def test_a_node_is_remembered_while_it_is_there(there: list[Node], *, forgotten: bool) -> None:
    memory = NodeMemory(PythonSelectors())
    first = seen(memory, MINE)
    memory.keep(there)
    assert len(memory) == int(not forgotten)
    assert (seen(memory, MINE) is not first) is forgotten


class Compared(FrozenMap[str, str]):
    """Labels that count how often they are compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return super().__eq__(other)

    __hash__ = FrozenMap.__hash__


def test_labels_that_were_read_anew_are_compared_once() -> None:
    """The Node of a node that was starting before is another object, for months."""
    memory = NodeMemory(PythonSelectors())
    first = seen(memory, MINE)
    registered = replace(NODE, labels=Compared(NODE.labels))
    memory.keep([registered])
    assert Compared.times, "they are compared to begin with"
    Compared.times = 0
    memory.keep([registered])
    assert not Compared.times
    assert seen(memory, MINE) is first


def test_what_could_be_bought_is_remembered_without_being_there() -> None:
    memory = NodeMemory(PythonSelectors())
    future = Node(PLACEHOLDER_NODE)
    first = seen(memory, node=future)
    memory.keep([NODE])
    assert seen(memory, node=future) is first


def test_the_requests_remembered_on_a_node_are_bounded() -> None:
    """A node lives for months, and each of its pods may select by something of its own."""
    pools, answers = ClusterDevices.of([MINE], [ANY], (), REFERENCE, engine=PythonSelectors()).pools_of(NODE)
    alive = weakref.WeakSet[Selector]()
    for number in range(1000):
        selector = Watched(f"a=value-{number}")
        alive.add(selector)
        asked = replace(REQUEST, selectors=(selector,))
        assert not answers.matches(ANY, asked).admits(pools.devices[0], unknown_is_yes=False)
        again = answers.matches(ANY, asked)
        assert again.of(pools.devices[0]) is again.of(pools.devices[0])
    del selector, asked, again
    gc.collect()
    assert 0 < len(alive) <= 300


def test_selectors_are_asked_once_as_long_as_their_class_is_the_same() -> None:
    engine = PythonSelectors()
    memory = NodeMemory(engine)

    def ask(selector: str) -> None:
        kind = DeviceClass(ANY.name, (Selector(selector),))
        pools, answers = ClusterDevices.of([MINE], [kind], (), REFERENCE, memory=memory).pools_of(NODE)
        for pooled in pools.devices:
            answers.matches(kind, REQUEST).of(pooled)

    ask("a=x")
    ask("a=x")
    assert len(engine.asked) == 2
    ask("a=y")
    assert len(engine.asked) == 4


def test_a_class_is_asked_about_a_device_once_whatever_its_requests_select() -> None:
    engine = PythonSelectors()
    kind = DeviceClass(ANY.name, (Selector("a=x"),))
    pools, answers = ClusterDevices.of([MINE], [kind], (), REFERENCE, engine=engine).pools_of(NODE)
    for number in range(5):
        matches = answers.matches(kind, replace(REQUEST, selectors=(Selector(f"a={number}"),)))
        assert [matches.of(pooled).stage for pooled in pools.devices] == ["request", "request"]
    assert sum(expression == "a=x" for expression, _ in engine.asked) == len(pools.devices)


def test_what_a_class_leaves_unknown_is_told_with_every_request() -> None:
    engine = PythonSelectors()
    mine = replace(MINE, devices=tuple(devices(1, {"a": RuntimeOnly("uuid", "gpu-0"), "b": "y"})))
    kind = DeviceClass(ANY.name, (Selector("a=x"),))
    pools, answers = ClusterDevices.of([mine], [kind], (), REFERENCE, engine=engine).pools_of(NODE)
    for selectors in ((), (Selector("b=y"),)):
        found = answers.matches(kind, replace(REQUEST, selectors=selectors)).of(pools.devices[0])
        assert found.unknown
        assert [reason.code for reason in found.reasons] == [Code.RUNTIME_ATTRIBUTE]


def test_answers_for_made_up_selectors_do_not_pile_up_on_a_node() -> None:
    wide = replace(MINE, devices=tuple(devices(1000, {"a": "x"})))
    _, answers = ClusterDevices.of([wide], [ANY], (), REFERENCE, engine=PythonSelectors()).pools_of(NODE)

    def asked(number: int) -> RequestMatches:
        return answers.matches(ANY, replace(REQUEST, selectors=(Selector(f"a={number}"),)))

    first = asked(0)
    for number in range(100):
        asked(number)
    assert asked(0) is first
    for number in range(300):
        asked(number)
    assert asked(0) is not first, "200 answers for each of 1,000 devices are kept"
