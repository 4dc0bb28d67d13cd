"""What EC2 refuses, seen from the cluster: told with the next step, asked again ever more rarely, and others go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, EVENTS
from autoscaler.simulation.scenario import parse_scenario
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.labels import POOL as POOL_TAG
from instance_catalog.types.catalog import Catalog
from providers.aws.node_template.template import Image
from providers.aws.provider import Account, AwsProvider
from providers.contract import Provider
from tests.aws import TEMPLATE, FakeAws, Written
from tests.crash.life import START, small_catalog
from tests.fakes.ec2 import refused
from tests.faults.scenes import PLACES, PODS_OF, POOL
from tests.faults.world import AwsSimulation

MINUTE = timedelta(minutes=1)
PODS = "---" + PODS_OF.format(number=1, copies=2, minutes=240, gang="")
MANIFESTS = POOL.replace("KIND", "AWSNodeTemplate")


def told(simulation: AwsSimulation, reason: str) -> str:
    """The events with this reason about launches."""
    found = [event for event in list_all(simulation.api, EVENTS)[0] if event["reason"] == reason]
    return "\n".join(event["message"] for event in found if event["involvedObject"]["kind"] == "LaunchBatch")


def backoffs(simulation: AwsSimulation, pool: str) -> list[dict[str, Any]]:
    found = next(one for one in list_all(simulation.api, CAPACITY_POOLS)[0] if one["metadata"]["name"] == pool)
    return list(found["status"].get("backoffs", ()))


def test_a_code_that_nobody_knows_is_told_and_never_hot() -> None:
    simulation = AwsSimulation(catalog=small_catalog(), start=START)
    simulation.add(parse_scenario(MANIFESTS + PODS))
    simulation.fake.faults.inject("CreateFleet", *[refused("Teapot", "I am a teapot")] * 100)
    simulation.run(START)
    # Nothing happened, so each of the pool's offerings is asked for once; then each rests for itself.
    assert simulation.fake.calls["CreateFleet"] == len(PLACES)
    simulation.run(START + 10 * MINUTE)
    assert simulation.fake.calls["CreateFleet"] == 2 * len(PLACES)  # five minutes later; the next time is after fifteen
    assert "I am a teapot (Teapot)" in told(simulation, "UnknownRefusal")
    assert "report its code to the project" in told(simulation, "UnknownRefusal")
    found = backoffs(simulation, "gpu")
    assert {(one["reason"], one["failures"]) for one in found} == {("UnknownRefusal", 2)}
    assert sorted((one["instanceType"], one["zone"]) for one in found) == sorted(PLACES)
    simulation.fake.faults.clear()
    simulation.run(START + 16 * MINUTE)
    assert simulation.fake.calls["CreateFleet"] == 2 * len(PLACES) + 1
    assert len(simulation.fake.account.alive()) == 2


def test_a_code_that_nobody_knows_for_one_offering_leaves_the_next_one() -> None:
    simulation = AwsSimulation(catalog=small_catalog(), start=START)
    simulation.add(parse_scenario(MANIFESTS + PODS))
    simulation.fake.faults.inject("CreateFleet", refused("Teapot", "I am a teapot"))
    simulation.run(START)
    assert simulation.fake.calls["CreateFleet"] == 2
    assert len(simulation.fake.account.alive()) == 2
    (resting,) = backoffs(simulation, "gpu")
    assert resting["reason"] == "UnknownRefusal"


class TwoTemplates(AwsSimulation):
    """The image of the template gpu is gone."""

    def adapter(self, catalog: Catalog) -> Provider:
        broken = replace(TEMPLATE, image=Image(id="ami-0123456789abcdef0"))
        return AwsProvider(
            Account(FakeAws(), self.clock, catalog, self._uid), Written({"gpu": broken, "whole": TEMPLATE})
        )


def test_a_deleted_image_is_told_and_another_template_serves() -> None:
    simulation = TwoTemplates(catalog=small_catalog(), start=START)
    whole = MANIFESTS.partition("---")[0].replace("name: gpu}", "name: whole}")
    simulation.add(parse_scenario(MANIFESTS + "---" + whole + PODS))
    simulation.run(START + 10 * MINUTE)
    assert {machine.tags[POOL_TAG] for machine in simulation.fake.account.alive()} == {"whole"}
    assert len(simulation.fake.account.alive()) == 2
    assert "ami-0123456789abcdef0" in told(simulation, "Configuration")
    assert "spec.ami" in told(simulation, "Configuration")
    assert [one["reason"] for one in backoffs(simulation, "gpu")] == ["Configuration"]
    assert backoffs(simulation, "whole") == []
