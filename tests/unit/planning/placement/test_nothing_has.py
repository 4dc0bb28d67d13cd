"""Where nothing on offer has what a claim asks for, the plan names what comes nearest."""

from __future__ import annotations

import pytest

from autoscaler.cel import program
from autoscaler.cel.interpreter.demands import Demand
from autoscaler.model.capacity import CapacityPool, Limits, Mode
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOut
from autoscaler.model.pod import Container
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import FirstAvailable
from autoscaler.planning.placement import nothing_has
from autoscaler.report.reasons import text_of
from autoscaler.report.tables.plan_summary import left_out_lines
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import NodeReach, Pool, ResourceSlice
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType
from tests.builders import GPU, SMALL, claim, gpus, machine, plan, pod, shipped, snapshot

MEMORY = 'device.capacity["gpu.nvidia.com"].memory'
NAME = 'device.attributes["gpu.nvidia.com"].productName'
DUMMY = 'has(device.attributes["dra.net"].type) && device.attributes["dra.net"].type == "dummy"'
ABOUT = replace(SMALL, model="About", memory=None, memory_bounds=(Quantity.parse("20Gi"), Quantity.parse("24Gi")))
UNSURE = replace(SMALL, model="Unsure", product_name=None, product_names=("Unsure A", "Unsure B"))
TYPES = Catalog.of(
    [machine("small", SMALL, 1, "1"), machine("about", ABOUT, 1, "2"), machine("unsure", UNSURE, 1, "3")]
)


def _left(expression: str, *, catalog: Catalog = TYPES, pools: tuple[CapacityPool, ...] = ()) -> LeftOut:
    request = replace(gpus(), selectors=(Selector(expression),))
    (found,) = plan(snapshot([pod("p", "c")], [claim("c", request)], pools=pools), catalog=catalog).left_out
    return found


def _said(found: LeftOut) -> Reason:
    return next(reason for reason in found.reasons if reason.code is Code.NOTHING_HAS)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            f'{MEMORY}.compareTo(quantity("500Gi")) >= 0',
            "no accelerator in the catalog has memory 500Gi; the largest is About with 24Gi (about)",
        ),
        (f'{MEMORY}.isGreaterThan(quantity("500Gi"))', "the largest is About with 24Gi (about)"),
        (f'{NAME} == "Small" && {MEMORY}.compareTo(quantity("1Gi")) >= 0', "the nearest is Small S1 (S1, small)"),
        (f'{NAME} == "Unsure C"', "the nearest is Unsure"),
    ],
)
def test_the_nearest_is_named(expression: str, words: str) -> None:
    found = _left(expression)
    assert found.verdict == "does-not-fit"
    assert words in text_of(_said(found))


def test_a_pool_that_offers_less_than_the_catalog_says_so() -> None:
    pool = CapacityPool("team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=5))
    found = _left(f'{MEMORY}.compareTo(quantity("500Gi")) >= 0', pools=(pool,))
    assert "no accelerator that a pool offers has memory 500Gi" in text_of(_said(found))


@pytest.mark.parametrize("expression", [f'{NAME} == "Unsure A"', f'{MEMORY}.compareTo(quantity("22Gi")) >= 0'])
def test_what_could_be_stays_unknown(expression: str) -> None:
    assert _left(expression).verdict == "unknown"


@pytest.mark.parametrize(("driver", "told"), [("net.example.org", True), ("tpu.google.com", False)])
def test_a_driver_that_the_class_names_and_nothing_predicts(driver: str, told: bool) -> None:
    own = DeviceClass("uplink", (Selector(f'device.driver == "{driver}"'),))
    request = replace(gpus(), device_class="uplink")
    (found,) = plan(snapshot([pod("p", "c")], [claim("c", request)], classes=(own,)), catalog=TYPES).left_out
    (line,) = left_out_lines(found)
    assert (f"what driver {driver} publishes is not predicted" in line) is told
    assert any(reason.code is Code.NOT_PREDICTED for reason in found.reasons) is told


def test_a_driver_that_nodes_publish_already_is_not_asked_for_again() -> None:
    """The slices were given; that none of the nodes takes the pod has another reason."""
    own = DeviceClass("uplink", (Selector('device.driver == "net.example.org"'),))
    request = replace(gpus(), device_class="uplink")
    half = ResourceSlice("s", "net.example.org", Pool("n1", 1, 2), reach=NodeReach(node_name="n1"))
    there = (Node("n1"),)
    state = snapshot([pod("p", "c")], [claim("c", request)], classes=(own,), slices=(half,), nodes=there)
    (found,) = plan(state, catalog=TYPES).left_out
    (line,) = left_out_lines(found)
    assert "the pod does not fit on any of these (1) now" in line
    assert "give their Nodes" not in line
    assert found.verdict == "does-not-fit"
    assert "the pod does not fit on any of those with its slices (1) now" in text_of(found.reasons[0])


BOTH_WAYS = (
    "only existing nodes can serve it: give their Nodes and ResourceSlices (`kubectl get nodes,resourceslices -o "
    "yaml`); for new nodes, describe the driver (docs/slices.md, A driver of your own)"
)


def test_slices_of_a_node_that_is_not_there_decide_nothing() -> None:
    own = DeviceClass("uplink", (Selector('device.driver == "net.example.org"'),))
    whole = ResourceSlice("s", "net.example.org", Pool("n1", 1, 1), reach=NodeReach(node_name="n1"))
    request = replace(gpus(), device_class="uplink")
    state = snapshot([pod("p", "c")], [claim("c", request)], classes=(own,), slices=(whole,), from_files=True)
    (found,) = plan(state, catalog=TYPES).left_out
    (line,) = left_out_lines(found)
    assert found.verdict == "unknown"
    assert line.endswith(f"what driver net.example.org publishes is not predicted, so {BOTH_WAYS}")


def test_alternatives_of_unpredicted_drivers_are_all_named() -> None:
    own = [DeviceClass(name, (Selector('device.driver == "net.example.org"'),)) for name in ("fast", "slow")]
    request = FirstAvailable("link", tuple(replace(gpus(name=one.name), device_class=one.name) for one in own))
    state = snapshot([pod("p", "c")], [claim("c", request)], classes=tuple(own), from_files=True)
    (found,) = plan(state, catalog=TYPES).left_out
    (line,) = left_out_lines(found)
    assert found.verdict == "unknown"
    assert line == (
        "0/3 instance types have a device of DeviceClass fast or slow: what driver net.example.org publishes is not "
        f"predicted, so {BOTH_WAYS}"
    )


def test_one_alternative_that_is_predicted_decides() -> None:
    own = DeviceClass("fast", (Selector('device.driver == "net.example.org"'),))
    alternatives = (replace(gpus(name="a"), device_class="fast"), replace(gpus(name="b"), count=99))
    state = snapshot([pod("p", "c")], [claim("c", FirstAvailable("link", alternatives))], classes=(own, GPU))
    (found,) = plan(replace(state, from_files=True), catalog=TYPES).left_out
    assert found.verdict == "does-not-fit"
    assert not any(reason.code is Code.NOT_PREDICTED for reason in found.reasons)


@pytest.mark.parametrize(("from_files", "verdict"), [(True, "unknown"), (False, "does-not-fit")])
def test_a_class_that_is_not_in_the_files_hides_no_other_obstacle(from_files: bool, verdict: str) -> None:
    """In a cluster a class that is not there is none."""
    alternatives = tuple(replace(gpus(name=name), device_class=f"{name}.example") for name in ("fast", "slow"))
    waiting = pod("p", "c", node_selector=FrozenMap({"team": "a"}))
    state = snapshot([waiting], [claim("c", FirstAvailable("link", alternatives))], from_files=from_files)
    (found,) = plan(state, catalog=TYPES).left_out
    first, *others = left_out_lines(found)
    assert found.verdict == verdict
    assert (BOTH_WAYS in first) is from_files
    assert ("there is no DeviceClass fast.example, slow.example in the files: create it" in first) is from_files
    assert "didn't match Pod's node affinity/selector" in [first, *others][-1]


def test_no_card_is_near_to_an_interface_that_software_makes() -> None:
    own = DeviceClass("net", (Selector('device.driver == "dra.net"'),))
    wanted = replace(gpus(), device_class="net", selectors=(Selector(DUMMY),))
    state = snapshot([pod("p", "c")], [claim("c", wanted)], classes=(own,))
    (found,) = plan(state, catalog=shipped("p4d.24xlarge")).left_out
    assert found.verdict == "does-not-fit"
    assert "no network card in the catalog has type dummy; interfaces that software makes" in text_of(_said(found))
    assert "nearest is" not in text_of(_said(found))


@pytest.mark.parametrize(
    ("name", "verdict"), [("dummy7", "does-not-fit"), ("veth1", "does-not-fit"), ("eth1", "unknown")]
)
def test_no_card_has_the_name_of_an_interface_that_software_makes(name: str, verdict: str) -> None:
    own = DeviceClass("net", (Selector('device.driver == "dra.net"'),))
    there = 'has(device.attributes["dra.net"].ifName)'
    named = Selector(f'{there} && device.attributes["dra.net"].ifName == "{name}"')
    wanted = replace(gpus(), device_class="net", selectors=(named,))
    state = snapshot([pod("p", "c")], [claim("c", wanted)], classes=(own,))
    (found,) = plan(state, catalog=shipped("p4d.24xlarge")).left_out
    assert found.verdict == verdict
    said = f"no network card in the catalog has ifName {name}; interfaces that software makes"
    assert any(said in text_of(reason) for reason in found.reasons) is (verdict == "does-not-fit")


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (
            "Small S2",
            ["not alternative big: no device in the catalog has productName Small S2; the nearest is Small S1"],
        ),
        ("Small S1", []),
    ],
)
def test_an_alternative_that_nothing_has_is_passed_over_aloud(first: str, words: list[str]) -> None:
    request = FirstAvailable("gpu", (gpus(product=first, name="big"), gpus(2, name="small")))
    catalog = Catalog.of([machine("small", SMALL, 2, "1")])
    (place,) = plan(snapshot([pod("p", "c")], [claim("c", request)]), catalog=catalog).placements
    assert [text_of(found).partition(" (")[0] for found in place.reasons] == words


def test_a_device_that_a_driver_makes_up_is_no_accelerator_of_the_machine() -> None:
    """The example driver's GPUs have 80Gi on any machine, also on one whose own accelerator is Inferentia."""
    large = Selector('device.capacity["gpu.example.com"].memory.compareTo(quantity("1Ti")) >= 0')
    big, any_of = (replace(gpus(name=name), device_class="gpu.example.com") for name in ("big", "any"))
    request = FirstAvailable("gpu", (replace(big, selectors=(large,)), replace(any_of, selectors=())))
    own = DeviceClass("gpu.example.com", (Selector('device.driver == "gpu.example.com"'),))
    state = snapshot([pod("p", "c")], [claim("c", request)], classes=(own,))
    (place,) = plan(state, catalog=shipped("inf1.xlarge")).placements
    assert [text_of(found) for found in place.reasons] == [
        "not alternative big: no device of gpu.example.com has memory 1Ti; the largest has 80Gi"
    ]


def test_devices_are_read_once_for_each_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    texts = nothing_has._texts

    def counted(devices: list[nothing_has.Published], demand: Demand) -> dict[str, InstanceType] | None:
        asked.append(demand.path)
        return texts(devices, demand)

    monkeypatch.setattr(nothing_has, "_texts", counted)
    wanted = [f'{NAME} == "None {i}"' for i in range(20)] + ['device.attributes["gpu.nvidia.com"].nobody == "x"'] * 2
    requests = [replace(gpus(), selectors=(Selector(expression),)) for expression in wanted]
    pods = [pod(f"p{i}", f"c{i}") for i in range(len(requests))]
    claims = [claim(f"c{i}", request) for i, request in enumerate(requests)]
    assert len(plan(snapshot(pods, claims), catalog=TYPES).left_out) == len(pods)
    assert {path[2] for path in asked} == {"productName"}
    assert len(asked) <= 2  # for what is on offer, and for the whole catalog


def test_who_has_spent_its_share_is_not_told_what_comes_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Code.NOTHING_HAS in {reason.code for reason in _left(f'{NAME} == "None"').reasons}
    monkeypatch.setattr(nothing_has, "_COMPARED", 10**9)
    assert Code.NOTHING_HAS not in {reason.code for reason in _left(f'{NAME} == "None"').reasons}
    assert Code.NOTHING_HAS in {reason.code for reason in _left(f'{MEMORY}.isGreaterThan(quantity("500Gi"))').reasons}


@pytest.mark.parametrize("alternatives", [1, 2])
def test_long_selectors_are_read_only_while_the_pod_pays_for_them(
    alternatives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling one of 10 kB takes up to a second, and a claim may have a hundred of them."""
    read: list[str] = []
    demands_of = program.demands_of

    def counted(text: str, profile: KubernetesProfile) -> tuple[Demand, ...]:
        read.append(text)
        return demands_of(text, profile)

    monkeypatch.setattr(nothing_has, "demands_of", counted)
    long = tuple(Selector(" || ".join([f'{NAME} == "{number}"'] * 150)) for number in range(40))
    each = [replace(gpus(name=f"n{i}"), selectors=long[i::alternatives]) for i in range(alternatives)]
    request = FirstAvailable("gpu", tuple(each)) if alternatives > 1 else each[0]
    found = plan(snapshot([pod("p", "c")], [claim("c", request)]), catalog=TYPES)
    assert [left.verdict for left in found.left_out] == ["unknown"]
    assert len({text for text in read if len(text) > 1_000}) < len(long) // 2


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize(
    ("selected", "words"),
    [
        (f'{NAME} == "Unsure C"', ["DeviceClass own: no accelerator in the catalog has productName Unsure C"]),
        ('device.attributes["gpu.nvidia.com"].type == "part"', []),
        (f'{NAME} == "Small S1"', []),
    ],
)
def test_what_a_class_selects_and_nothing_has_is_named(selected: str, words: list[str], served: bool) -> None:
    """Of pods with a claim, and of those with a resource that the class serves. Types of devices are of drivers."""
    guarded = Selector(f'device.driver == "gpu.nvidia.com" && {selected}')
    own = DeviceClass("own", (guarded,), extended_resource_name="nvidia.com/own")
    asking = replace(pod("p"), containers=(Container("main", FrozenMap({"nvidia.com/own": Quantity.of(1)})),))
    claims = [] if served else [claim("c", replace(gpus(), device_class="own"))]
    given = snapshot([asking if served else pod("p", "c")], claims, classes=(own,))
    left = plan(given, catalog=TYPES).left_out
    assert bool(left) is (selected != f'{NAME} == "Small S1"')
    said = [text_of(reason) for entry in left for reason in entry.reasons if reason.code is Code.NOTHING_HAS]
    assert [text.partition(";")[0] for text in said] == words


def test_the_nearest_mig_profile_has_as_many_slices_and_a_like_memory() -> None:
    known = ("1g.5gb", "1g.24gb", "1g.10gb", "2g.12gb", "Small")
    assert nothing_has._near_profiles("1g.12gb", known) == ["1g.10gb", "1g.5gb", "1g.24gb"]
    assert nothing_has._near_profiles("Large", known) == nothing_has._near_profiles("7g.80gb", known) == []
