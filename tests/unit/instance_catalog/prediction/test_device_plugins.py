"""What device plugins offer beside DRA follows from the devices of a type, or from its entry."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.device_plugins import plugin_resources

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "driver", "resource", "amount"),
    [
        ("p5.48xlarge", "dra.net", "vpc.amazonaws.com/efa", 32),
        ("trn2.48xlarge", "neuron.aws.com", "aws.amazon.com/neuron", 16),
        ("trn2.48xlarge", "neuron.aws.com", "aws.amazon.com/neuroncore", 64),
        ("inf1.6xlarge", "neuron.aws.com", "aws.amazon.com/neuroncore", 16),
        ("trn2.48xlarge", "dra.net", "vpc.amazonaws.com/efa", 16),
        ("ct6e-standard-4t", "tpu.google.com", "google.com/tpu", 4),
        ("dl1.24xlarge", "gaudi.intel.com", "habana.ai/gaudi", 8),
        ("dl1.24xlarge", "dra.net", "vpc.amazonaws.com/efa", 4),
    ],
)
def test_resources_of_a_type(name: str, driver: str, resource: str, amount: int) -> None:
    assert plugin_resources(CATALOG.get(name))[driver][resource] == Quantity.of(amount)


@pytest.mark.parametrize("name", ["g6.xlarge", "g4ad.16xlarge"])  # ROCm, and so its plugin, does not serve the V520
def test_types_without_such_devices_have_none(name: str) -> None:
    assert not plugin_resources(CATALOG.get(name))


def test_an_entry_says_it_better() -> None:
    given = FrozenMap({"vpc.amazonaws.com/efa": Quantity.of(16), "example.com/thing": Quantity.of(1)})
    found = plugin_resources(replace(CATALOG.get("p5.48xlarge"), extended_resources=given))
    assert found["dra.net"]["vpc.amazonaws.com/efa"] == Quantity.of(16)
    assert found[""]["example.com/thing"] == Quantity.of(1)
