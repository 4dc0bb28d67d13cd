"""InstanceTypeOverlays of the cluster lie over the catalog, and a defective one keeps its last good version."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import INSTANCE_TYPE_OVERLAYS
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.files.loader import shipped_layers
from instance_catalog.files.merging import catalog_of
from instance_catalog.files.quotes import Quote
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType
from tests.custom_resources import KINDS

LAYERS = shipped_layers()


class Cluster:
    """A loop on a cluster, with what it tells of the overlays."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = ApiServer(self.clock)
        self.layers = LAYERS
        self.quotes: tuple[Quote, ...] = ()
        self.made: list[Catalog] = []
        self.obstacle: ConfigurationError | None = None
        self.loop = Loop(
            api=self.api,
            providers=Providers({}, cluster="u"),
            catalog=catalog_of(LAYERS),
            profile=REFERENCE,
            clock=self.clock,
            layers=lambda: self.layers,
            quotes=lambda: self.quotes,
            remake=self.remake,
        )

    def remake(self, catalog: Catalog) -> Providers:
        if self.obstacle is not None:
            raise self.obstacle
        self.made.append(catalog)
        return Providers({}, cluster="u")

    def put(self, name: str, entry: dict[str, Any], instance_type: str = "p5.48xlarge", **fields: str) -> None:
        spec = {"cloud": "aws", "instanceType": instance_type, "source": "our contract", "entry": entry, **fields}
        self.api.create(INSTANCE_TYPE_OVERLAYS, {"metadata": {"name": name}, "spec": spec})

    def change(self, name: str, entry: dict[str, Any]) -> None:
        found = self.api.get(INSTANCE_TYPE_OVERLAYS, name)
        self.api.update(INSTANCE_TYPE_OVERLAYS, {**found, "spec": {**found["spec"], "entry": entry}})

    def ready(self, name: str) -> tuple[str, str, str]:
        (condition,) = self.api.get(INSTANCE_TYPE_OVERLAYS, name)["status"]["conditions"]
        return condition["status"], condition["reason"], condition["message"]

    def digest(self) -> str:
        return self.loop.tick().plan.catalog_digest


def test_an_overlay_changes_the_catalog_and_is_told_so() -> None:
    cluster = Cluster()
    before = cluster.digest()
    cluster.put("ours", {"vcpu": 190})
    after = cluster.digest()
    assert after != before
    assert cluster.ready("ours") == ("True", "Applied", "")
    writes = cluster.api.writes
    assert cluster.digest() == after
    assert cluster.api.writes == writes
    cluster.api.delete(INSTANCE_TYPE_OVERLAYS, "ours")
    assert cluster.digest() == before


def test_a_defect_is_told_and_the_last_good_version_stays() -> None:
    cluster = Cluster()
    cluster.put("ours", {"vcpu": 190})
    good = cluster.digest()
    cluster.change("ours", {"vcpu": "many"})
    assert cluster.digest() == good
    status, reason, message = cluster.ready("ours")
    assert (status, reason) == ("False", "Refused")
    assert message.startswith("its last good version counts; ")
    assert "vcpu" in message


def test_a_defect_from_the_beginning_leaves_the_others_in_force() -> None:
    cluster = Cluster()
    before = cluster.digest()
    cluster.put("bad", {"vcpus": 1}, instance_type="g6.xlarge")
    assert cluster.digest() == before
    assert cluster.ready("bad")[2].startswith("nothing of it counts; ")
    cluster.put("ours", {"vcpu": 190})
    assert cluster.digest() != before
    assert cluster.ready("ours")[0] == "True"


def test_an_overlay_that_has_expired_says_so() -> None:
    cluster = Cluster()
    before = cluster.digest()
    end = cluster.clock.now() + timedelta(hours=1)
    cluster.put("ours", {"vcpu": 190}, expiresAt=end.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert cluster.digest() != before
    assert cluster.ready("ours")[1] == "Applied"
    cluster.clock.advance(timedelta(hours=1))
    assert cluster.digest() == before
    status, reason, message = cluster.ready("ours")
    assert (status, reason) == ("False", "Expired")
    assert "expiresAt" in message


def test_the_state_that_kubectl_shows_is_the_reason_of_the_condition() -> None:
    (kind,) = (kind for kind in KINDS if kind.name == INSTANCE_TYPE_OVERLAYS.kind)
    (column,) = (column for column in kind.columns if column.name == "State")
    assert column.path == ".status.conditions[?(@.type=='Ready')].reason"


def test_what_is_quoted_changes_the_catalog_but_not_the_providers() -> None:
    cluster = Cluster()
    cluster.put("ours", {"vcpu": 190})
    before = cluster.digest()
    made = len(cluster.made)
    cluster.quotes = (
        Quote("p5.48xlarge", ANY_ZONE, CapacityType.ON_DEMAND, Decimal(40), region="us-east-1", date="2026-11-21"),
    )
    assert cluster.digest() != before
    assert len(cluster.made) == made
    cluster.quotes = ()
    assert cluster.digest() == before


def test_the_last_good_version_outlives_another_catalog() -> None:
    cluster = Cluster()
    cluster.put("ours", {"vcpu": 190})
    good = cluster.digest()
    cluster.change("ours", {"vcpu": "many"})
    cluster.layers = tuple(layer for layer in LAYERS if not layer.name.endswith("tpu.yaml"))
    assert cluster.digest() != good
    assert cluster.made[-1].get("p5.48xlarge").vcpu == 190
    assert cluster.ready("ours")[:2] == ("False", "Refused")


def test_providers_are_made_of_the_catalog_that_is_in_force() -> None:
    cluster = Cluster()
    cluster.loop.tick()
    assert not cluster.made, "they were made of this catalog"
    cluster.put("ours", {"vcpu": 190})
    for _ in range(2):
        cluster.loop.tick()
    assert [catalog.get("p5.48xlarge").vcpu for catalog in cluster.made] == [190]


def test_providers_that_cannot_be_made_are_told_and_tried_again() -> None:
    cluster = Cluster()
    cluster.put("ours", {"vcpu": 190})
    cluster.obstacle = ConfigurationError("no region is configured", next_step="set aws.region")
    assert [(found.kind, found.error) for found in cluster.loop.tick().troubles] == [("Provider", cluster.obstacle)]
    cluster.obstacle = None
    assert not cluster.loop.tick().troubles
    assert len(cluster.made) == 1
