"""Claims of MIG parts in the place of the device plugin's resources, as a change that is tried."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autoscaler.advice.advise import advise
from autoscaler.lint.pods.mig_parts import WHOLE, claiming_parts, mig_resources, naming_parts
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.pod import Container, Pod
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import texts_of
from autoscaler.report.tables.plan_summary import left_out_lines
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW, claim, pod, snapshot
from tests.one_line_advice import advice_lines

_DEVICES = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"
MIG = DeviceClass("mig.nvidia.com", (Selector(_DEVICES),))
_WHOLE = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
GPU = DeviceClass("gpu.nvidia.com", (Selector(_WHOLE),), extended_resource_name=WHOLE)
POLICY = Policy(considered=100)
_SHIPPED = load_catalog()
A100 = Catalog.of([one for one in _SHIPPED if one.name.startswith("a2-highgpu-")], _SHIPPED.accelerators.values())
SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
CLAIM = 'claim devices of DeviceClass mig.nvidia.com (2 with device.attributes["gpu.nvidia.com"].profile == "1g.5gb")'


def asking(name: str = "p", *, count: int = 2, resource: str = SMALL, **more: object) -> Pod:
    container = Container("c", FrozenMap({resource: Quantity.of(count)}))
    return replace(pod(name, **more), containers=(container,))  # type: ignore[arg-type]


def advice(*pods: Pod, pools: Sequence[CapacityPool] = (), classes: Sequence[DeviceClass] = (MIG,)) -> list[str]:
    given = replace(snapshot(pods, pools=pools), classes=tuple(classes))
    policy = Policy(considered=100)
    return advice_lines(advise(pods[0], given, A100, plan_for(given, A100, policy, NOW), policy, NOW))


def test_the_claim_of_the_same_parts_is_tried() -> None:
    (found,) = advice(asking())
    assert found.startswith(f"pod default/p: {CLAIM} instead of requesting {SMALL}, as in docs/examples/mig-parts.yaml")
    assert "→ 1 × a2-highgpu-1g (on-demand), 3.67 $/h" in found


def test_copies_get_a_claim_each() -> None:
    found = advice(*(asking(f"p-{number}", count=4) for number in range(2)))
    assert found[0].startswith(f"pod default/p-0 and 1 more: {CLAIM.replace('(2 with', '(4 with')}")
    assert "→ 1 × a2-highgpu-2g (on-demand)" in found[0]


def test_the_pool_gets_the_drivers_that_divide_its_gpus() -> None:
    (found,) = advice(asking(), pools=[CapacityPool("gpu", drivers=())])
    assert "(2) pool gpu: set spec.drivers.profiles to [nvidia:mig=all-1g.5gb, compute-domain] → 1 × a2-" in found
    (found,) = advice(asking(), pools=[CapacityPool("gpu", drivers=("nvidia:feature-discovery", "dranet"))])
    assert "set spec.drivers.profiles to [nvidia:mig=all-1g.5gb, dranet] → 1 × a2-" in found
    (found,) = advice(asking(), pools=[CapacityPool("gpu", drivers=("nvidia:mig=all-1g.5gb",))])
    assert "spec.drivers" not in found


def test_what_the_next_plan_would_ask_for_is_said_at_once() -> None:
    """The drivers that a plan without pools assumes, and the toleration that GKE no longer adds."""
    (found,) = advice(asking())
    assert "; its nodes run [nvidia:mig=all-1g.5gb, compute-domain], spec.drivers.profiles of a CapacityPool" in found
    assert "tolerate taint nvidia.com/gpu=present:NoSchedule, which GKE gives nodes with these devices" in found
    (found,) = advice(asking(tolerations=(Toleration("nvidia.com/gpu", "Exists"),)))
    assert "tolerate" not in found
    (found,) = advice(asking(), pools=[CapacityPool("gpu", drivers=())])
    assert "its nodes run" not in found


def test_the_layout_has_most_of_the_parts_where_others_cost_the_same() -> None:
    """A pod alone does with a GPU that is divided into parts of several kinds; the next one would need another node."""
    (found,) = advice(asking(resource=LARGE, count=1))
    assert "; its nodes run [nvidia:mig=all-3g.20gb, compute-domain], spec.drivers.profiles of a CapacityPool" in found


def test_a_profile_with_media_engines_has_a_dot_in_the_resource() -> None:
    (found,) = advice(asking(resource=f"{SMALL}.me", count=1), pools=[CapacityPool("gpu", drivers=())])
    assert '.profile == "1g.5gb+me") instead of' in found
    assert "[nvidia:mig=all-1g.5gb.me, compute-domain] → 1 × a2-highgpu-1g" in found


def test_a_pool_for_parts_of_several_kinds_has_the_layout_that_mixes_them() -> None:
    both = asking()
    requests = both.containers[0].requests.with_items({LARGE: Quantity.of(1)})
    both = replace(both, containers=(replace(both.containers[0], requests=requests),))
    (found,) = advice(both, pools=[CapacityPool("gpu", drivers=())])
    assert "[nvidia:mig=all-balanced, compute-domain] → 1 × a2-highgpu-1g" in found


@pytest.mark.parametrize("pools", [(), (CapacityPool("gpu", drivers=()),)])
def test_the_product_that_the_pod_selects_besides_is_in_the_change(pools: Sequence[CapacityPool]) -> None:
    selector = FrozenMap({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"})
    (found,) = advice(asking(node_selector=selector), pools=pools)
    assert CLAIM in found
    assert "require foreslice.dev/accelerator In [nvidia-a100-40gb] instead of nvidia.com/gpu.product" in found
    assert "→ 1 × a2-highgpu-1g" in found


@pytest.mark.parametrize(
    ("key", "value"),
    [("nvidia.com/mig.config", "all-1g.5gb"), ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")],
)
def test_nodes_whose_parts_count_as_whole_gpus_mean_parts(key: str, value: str) -> None:
    (found,) = advice(asking(resource=WHOLE, node_selector=FrozenMap({key: value})), classes=(MIG, GPU))
    assert f"{CLAIM} instead of requesting nvidia.com/gpu, as in" in found
    assert "→ 1 × a2-highgpu-1g (on-demand), 3.67 $/h" in found
    assert "drop" not in found
    assert "names no GPU" not in found
    product = "require foreslice.dev/accelerator In [nvidia-a100-40gb] instead of nvidia.com/gpu.product"
    assert (product in found) == (key == "nvidia.com/gpu.product")


@pytest.mark.parametrize("value", ["all-disabled", "all-balanced", "all-9g.5gb", "custom"])
def test_layouts_without_one_known_profile_mean_no_parts(value: str) -> None:
    selecting = asking(resource=WHOLE, node_selector=FrozenMap({"nvidia.com/mig.config": value}))
    assert naming_parts(selecting) == selecting


def test_products_of_whole_gpus_mean_no_parts() -> None:
    selecting = asking(resource=WHOLE, node_selector=FrozenMap({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}))
    assert naming_parts(selecting) == selecting


def test_a_gpu_of_any_model_is_said_to_follow_from_the_label_that_is_dropped() -> None:
    selecting = asking(resource=WHOLE, count=1, node_selector=FrozenMap({"nvidia.com/gpu.family": "none"}))
    (found,) = advice(selecting, classes=(MIG, GPU))
    assert "drop nodeSelector nvidia.com/gpu.family=none" in found
    assert "; without it, the pod names no GPU model or memory" in found


def test_what_else_the_pod_selects_is_in_the_change() -> None:
    (found,) = advice(asking(node_selector=FrozenMap({"team": "mars"})))
    assert "(1) pod default/p: claim devices" in found
    assert "team=mars in spec.labels" in found


def test_none_for_parts_that_no_gpu_has_nor_without_the_device_class() -> None:
    assert not advice(asking(resource="nvidia.com/mig-9g.5gb"))
    assert not advice(asking(), classes=())


def test_the_reason_names_the_claim_and_no_scope() -> None:
    given = replace(snapshot([asking()]), classes=(MIG,))
    (entry,) = plan_for(given, A100, Policy(), NOW).outside
    (text,) = texts_of(entry.reasons).splitlines()
    assert 'DeviceClass mig.nvidia.com with device.attributes["gpu.nvidia.com"].profile == "1g.5gb" instead' in text
    assert "spec.scope.pods" not in text


def test_init_containers_leave_their_parts_to_the_others() -> None:
    parts = [Container(name, FrozenMap({r: Quantity.of(n)})) for name, r, n in [("a", SMALL, 1), ("b", LARGE, 1)]]
    before = Container("before", FrozenMap({SMALL: Quantity.of(2)}))
    beside = replace(before, name="beside", sidecar=True)
    both = replace(pod("p"), containers=tuple(parts), init_containers=(before,))
    assert mig_resources(both, frozenset()) == {SMALL: 2, LARGE: 1}
    assert mig_resources(replace(both, init_containers=(before, beside)), frozenset()) == {SMALL: 3, LARGE: 1}
    assert mig_resources(both, frozenset({SMALL})) == {LARGE: 1}


def test_only_the_containers_that_asked_use_the_claim() -> None:
    other = Container("other", FrozenMap({"cpu": Quantity.of(1)}))
    changed, claim = claiming_parts(replace(asking(), containers=(*asking().containers, other)), frozenset())
    assert [container.claims for container in changed.containers] == [("mig-parts",), ()]
    assert SMALL not in changed.containers[0].requests
    assert [(entry.name, entry.claim) for entry in changed.claims] == [("mig-parts", claim.name)]
    assert [request.count for request in claim.exact_requests] == [2]


def test_pods_with_claims_tolerate_the_taint_of_gke_themselves() -> None:
    """GKE's admission adds the toleration to pods that request the extended resource, which the change takes away."""
    taint = "tolerate taint nvidia.com/gpu=present:NoSchedule, which GKE gives nodes with these devices"
    (found,) = advice(asking())
    assert taint in found.partition("→")[0]
    (found,) = advice(asking(tolerations=(Toleration("nvidia.com/gpu", "Exists"),)))
    assert "tolerate taint" not in found
    (found,) = advice(asking(), pools=[CapacityPool("gpu", drivers=())])
    assert "tolerate taint" not in found


def of_whole_and_part() -> Snapshot:
    selector = Selector('device.attributes["gpu.nvidia.com"].profile == "4g.20gb"')
    part = DeviceRequest("part", "mig.nvidia.com", (selector,))
    whole = DeviceRequest("whole", "gpu.nvidia.com")
    return snapshot([pod("p", "mig", "gpu")], [claim("mig", part), claim("gpu", whole)], classes=(MIG, GPU))


def test_a_claim_of_the_gpu_beside_one_of_its_part_is_dropped() -> None:
    """A layout divides all GPUs of a node: no class is absent, and the less specific of the claims is given up."""
    given = of_whole_and_part()
    decided = plan_for(given, A100, POLICY, NOW)
    (line,) = left_out_lines(decided.left_out[0])
    assert line == (
        f"0/{len(A100.types)} instance types can run default/p: no node has devices of all of DeviceClass "
        "mig.nvidia.com, gpu.nvidia.com, though some have devices of each"
    )
    first, *_ = advice_lines(advise(given.pods[0], given, A100, decided, POLICY, NOW))
    assert first.startswith(
        "pod default/p: drop claim gpu, whose devices no node has beside those of the others "
        "→ 1 × a2-highgpu-1g (on-demand), 3.67 $/h"
    )


def test_a_class_that_no_offering_has_is_named_alone() -> None:
    given = of_whole_and_part()
    pools = (CapacityPool("gpu", drivers=("nvidia",)),)
    (left,) = plan_for(replace(given, pools=pools), A100, POLICY, NOW).left_out
    assert "have a device of DeviceClass mig.nvidia.com" in next(left_out_lines(left))
