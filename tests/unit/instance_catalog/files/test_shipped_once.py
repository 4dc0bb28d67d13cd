"""What the tests share of the shipped catalog is what each command would read."""

from __future__ import annotations

from instance_catalog.files.layers import Corrections
from instance_catalog.files.loader import load_catalog, shipped_layers
from tests.shipped_once import merge, read


def test_what_is_kept_is_what_would_be_read() -> None:
    layers = shipped_layers()
    afresh = [read(layer.name, layer.group, layer.text) for layer in layers]
    assert list(layers) == afresh
    assert load_catalog() == merge(afresh)
    assert load_catalog() is load_catalog()


def test_corrections_leave_it_as_it_is() -> None:
    before = load_catalog()
    changed = load_catalog(corrections=[Corrections("mine", 1, {"types": [{"name": "p5.48xlarge", "vcpu": 2}]})])
    assert changed.get("p5.48xlarge").vcpu == 2
    assert load_catalog().get("p5.48xlarge").vcpu == before.get("p5.48xlarge").vcpu == 192
