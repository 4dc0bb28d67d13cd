"""Machines that pods mean by the topology that Kueue keeps them to, or by the rest of their group."""

from __future__ import annotations

import pytest

from autoscaler.lint.meant_advice import meant_advice
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.demand.implied_machines import implied_reason, with_implied_selectors
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.clouds import cloud_facts
from tests.builders import CATALOG, pod, snapshot

BLOCK = labels.GCE_TOPOLOGY_BLOCK
H100 = {labels.GKE_ACCELERATOR: "nvidia-h100-80gb"}


def on_gpus(name: str, count: int = 8, image: str = "registry.example/a:1", **fields: object) -> Pod:
    gpus = FrozenMap({"nvidia.com/gpu": Quantity.of(count)})
    return replace(pod(name, **fields), containers=(Container("main", gpus, image=image),))


def kept_to(label: str, **fields: object) -> Pod:
    return replace(on_gpus("p", **fields), annotations=FrozenMap({labels.KUEUE_ONE_DOMAIN: label}))


def of_group(name: str, group: str = "g", **selector: str) -> Pod:
    return on_gpus(name, labels=FrozenMap({labels.LWS_GROUP_KEY: group}), node_selector=FrozenMap(selector))


@pytest.mark.parametrize(
    ("label", "fields", "narrowed"),
    [
        (BLOCK, {}, True),
        ("cloud.google.com/gce-topology-host", {}, True),
        ("example.com/rack", {}, False),
        (BLOCK, {"node_selector": FrozenMap(H100)}, False),
        (BLOCK, {"node_selector": FrozenMap({"cloud.google.com/gke-nodepool": "own"})}, False),
        (BLOCK, {"count": 0}, False),
    ],
)
def test_a_domain_of_google_cloud_is_of_machines_that_have_its_label(
    label: str, fields: dict[str, object], narrowed: bool
) -> None:
    asked = kept_to(label, **fields)  # type: ignore[arg-type]
    (found,) = with_implied_selectors(snapshot([asked])).pods
    types = [name for names in found.required_values({labels.INSTANCE_TYPE}) for name in names]
    assert ("a3-ultragpu-8g" in types) is narrowed
    assert not any(name.startswith(("n1-", "g2-")) for name in types)
    if narrowed:
        assert implied_reason(found, asked).endswith("whose nodes have the label of its topology")


def test_an_image_says_it_more_exactly() -> None:
    asked = kept_to(BLOCK, image="us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21")
    (found,) = with_implied_selectors(snapshot([asked])).pods
    assert found.required_values({labels.INSTANCE_TYPE}) == [("a3-megagpu-8g",)]
    assert "its image works nowhere else" in implied_reason(found, asked)
    (warning,) = meant_advice(snapshot([asked]), CATALOG)
    assert "planned on these" not in warning.message


def test_the_types_are_in_the_catalog() -> None:
    named = {name for facts in cloud_facts().values() for types in facts.topology_types.values() for name in types}
    assert named
    assert named <= load_catalog().types.keys()


def test_a_domain_of_pods_without_devices_is_no_news() -> None:
    """Nothing is launched for them, wherever Kueue keeps them."""
    plain = replace(pod("p"), annotations=FrozenMap({labels.KUEUE_ONE_DOMAIN: "example.com/rack"}))
    assert list(meant_advice(snapshot([plain]), CATALOG)) == []


def test_workers_get_the_gpus_that_their_leader_selects() -> None:
    leader, worker, other = of_group("l", **H100), of_group("w"), of_group("o", group="h")
    given = snapshot([leader, worker, other])
    found = {one.name: dict(one.node_selector.items()) for one in with_implied_selectors(given).pods}
    assert found == {"l": H100, "w": H100, "o": {}}
    assert (
        implied_reason(with_implied_selectors(given).pods[1], worker)
        == "planned on nvidia-h100-80gb, as others of its group"
    )
    (warning,) = meant_advice(given, CATALOG)
    assert warning.subject == "Pod default/w"
    assert "others of its group select cloud.google.com/gke-accelerator=nvidia-h100-80gb" in warning.message


def test_a_group_that_selects_two_machines_says_nothing_of_the_rest() -> None:
    given = snapshot([of_group("l", **H100), of_group("m", **{labels.GKE_ACCELERATOR: "nvidia-l4"}), of_group("w")])
    assert with_implied_selectors(given).pods == given.pods
    assert list(meant_advice(given, CATALOG)) == []


def test_who_says_which_machines_there_are_decides() -> None:
    pools = (CapacityPool("any", Mode.ACT, drivers=("nvidia",)),)
    given = snapshot([of_group("l", **H100), of_group("w"), kept_to(BLOCK)], pools=pools)
    assert with_implied_selectors(given) is given
    (warning,) = meant_advice(given, CATALOG)
    assert "planned on these" not in warning.message
