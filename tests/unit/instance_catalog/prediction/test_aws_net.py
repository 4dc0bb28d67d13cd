"""AWS's own networking driver: what was measured is predicted, what was only told is left open."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import RuntimeOnly
from instance_catalog.prediction.drivers import aws_net
from instance_catalog.prediction.pci import PCIE_ROOT
from instance_catalog.prediction.predict import expected_unasked, predict, runs_on
from instance_catalog.types.instance_type import InstanceType, NetworkCard, PciPlacement
from tests.unit.instance_catalog.prediction import machines

PROFILE = parse_driver_set("aws-net").profiles[0]


def roce() -> InstanceType:
    """A machine like p6e-gb300r.36xlarge: eight ConnectX cards beside the one with the default route."""
    cards = (NetworkCard("rdma", PciPlacement(pcie_root=f"pci000{index // 2}:00")) for index in range(8))
    return machines.machine("roce", None, 0, cards=(NetworkCard("ena", primary=True), *cards))


def devices(instance_type: InstanceType) -> list[dict[str, object]]:
    slices = predict(instance_type, parse_driver_set("aws-net"), kubernetes=profile_for("1.36"))
    assert {piece.driver for piece in slices} == {"dra.networking.k8s.aws"}
    return [dict(device.attributes) for piece in slices for device in piece.devices]


def test_a_roce_card_says_what_it_is_and_where_it_sits() -> None:
    found = devices(roce())
    assert len(found) == 8
    assert found[2] == {aws_net.DEVICE_TYPE: "roce", PCIE_ROOT: "pci0001:00"}
    assert expected_unasked(roce(), PROFILE)


def test_what_efa_cards_are_called_is_not_known() -> None:
    found = devices(machines.p4d())
    assert [isinstance(one[aws_net.DEVICE_TYPE], RuntimeOnly) for one in found] == [True] * 4
    assert [one[PCIE_ROOT] for one in found] == ["pci0000:10", "pci0000:20", "pci0000:90", "pci0000:a0"]


def test_a_node_with_efa_cards_is_not_kept_waiting_for_slices_that_nobody_measured() -> None:
    assert runs_on(machines.p4d(), PROFILE)
    assert not expected_unasked(machines.p4d(), PROFILE)


@pytest.mark.parametrize(
    "other", [replace(roce(), cloud="gcp"), machines.machine("plain", None, 0)], ids=["gcp", "plain"]
)
def test_it_runs_on_rdma_machines_of_aws_only(other: InstanceType) -> None:
    assert not runs_on(other, PROFILE)
