"""What dranet publishes as AWS's chart runs it."""

from __future__ import annotations

from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.prediction.predict import predict
from tests.unit.instance_catalog.prediction import machines


def kinds(drivers: str) -> list[object]:
    found = predict(machines.p4d(), parse_driver_set(drivers), kubernetes=profile_for("1.36"))
    return sorted({str(device.attributes["dra.net/pciDevice"]) for piece in found for device in piece.devices})


def test_the_chart_of_aws_leaves_ena_cards_out() -> None:
    efa, ena = "Elastic Fabric Adapter (EFA)", "Elastic Network Adapter (ENA)"
    assert kinds("dranet") == [efa, ena]
    assert kinds("dranet:no-ena") == [efa]
