"""Condition Ready of a pool in time: it changes when what is known of the provider does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, CLAIM_TEMPLATES, PODS
from autoscaler.simulation.simulation import Simulation
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from tests.builders import pool_manifest, shipped
from tests.unit.simulation.queue import claim_template, named, template

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
KIND = "g6.xlarge"
KINDS = (CapacityType.ON_DEMAND, CapacityType.SPOT)


class Sold:
    """A pool of one type, of which the cloud has none left, and a pod that waits. `told` is what Ready says in time."""

    def __init__(self) -> None:
        self.simulation = Simulation(catalog=shipped(KIND), start=START)
        self.told: list[str] = []
        self.stock(0)
        self.simulation.api.create(CAPACITY_POOLS, pool_manifest())
        self.simulation.api.create(CLAIM_TEMPLATES, claim_template("gpu", 1))
        self.simulation.api.create(PODS, {"metadata": named("work"), "spec": template("work", "1", "gpu")["spec"]})

    def stock(self, machines: int) -> None:
        for kind in KINDS:
            self.simulation.cloud.limit(OfferingKey(KIND, "us-east-1a", kind), machines)

    def run(self, by: timedelta) -> None:
        self.simulation.run(self.simulation.clock.now() + by, lambda _: self.look())

    def look(self) -> None:
        (pool,) = list_all(self.simulation.api, CAPACITY_POOLS)[0]
        conditions = pool.get("status", {}).get("conditions", [])
        status = next((one["status"] for one in conditions if one["type"] == "Ready"), "")
        if status and self.told[-1:] != [status]:
            self.told.append(status)


def test_a_stock_out_that_lasts_is_told_once() -> None:
    """Whatever is tried meanwhile: who waits for the condition would go on with every attempt."""
    sold = Sold()
    sold.run(timedelta(hours=1))
    assert sold.told == ["True", "False"]
    sold.stock(9)
    sold.run(timedelta(hours=1))
    assert sold.told == ["True", "False", "True"]
