"""Whatever stands in a catalog file: it is loaded, or CatalogError says where it is wrong."""

from __future__ import annotations

import copy
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.last_good import effective_catalog
from instance_catalog.files.layers import Corrections, content_layer
from instance_catalog.files.loader import load_catalog, shipped_layers
from instance_catalog.files.overlay import merge

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SHIPPED = shipped_layers()

SOUND: dict[str, Any] = {
    "priority": 3,
    "reason": "tests",
    "expires": "2999-01-01",
    "cloud": "my-dc",
    "pricesAsOf": {"region": "cellar", "date": "2026-09"},
    "provenance": {"shape": {"source": "me", "date": "2026"}},
    "defaults": {"architecture": "amd64", "capacityTypes": ["on-demand"]},
    "machines": [{"name": "m", "vcpu": 4, "memory": "8Gi"}],
    "attachments": [{"accelerator": {"model": "nvidia-l4", "count": 1}, "maxVcpu": 8, "maxMemory": "64Gi"}],
    "types": [
        {
            "name": "box",
            "vcpu": 8,
            "memory": "64Gi",
            "accelerator": {"model": "mine", "count": 2},
            "pci": {"root": ["pci0000:10", "pci0000:20"], "numa": [0, 1]},
            "networkCards": [{"kind": "efa", "count": 2, "rootGroup": [0, 1]}],
            "prices": {"on-demand": "1.5"},
            "zones": {"cellar-1": ["cellar-1a"], "attic-1": []},
            "zonePrices": {"cellar-1a": {"spot": "0.5"}},
            "allocatable": {"cpu": 7},
        },
        {"name": "p5.48xlarge", "notes": ["ours"]},
    ],
    "accelerators": [{"key": "mine", "vendor": "NVIDIA", "model": "Mine", "memory": "1Gi"}],
    "nodes": [{"cloud": "aws", "eviction": {"memory": "200Mi"}}],
}
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**20),
    st.floats(allow_nan=False),
    st.sampled_from(["", "x", "1/0", "1e999999999", "8Gi", "name", "..", "nvidia-l4"]),
    st.just([]),
    st.just([[]]),
    st.just({}),
    st.just({"x": {"y": 1}}),
    st.just({1: 2, None: 3}),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    result = copy.copy(value)
    result[path[0]] = _changed(value[path[0]], path[1:], new)
    return result


def _problems(directory: Path) -> tuple[Diagnostic, ...]:
    try:
        load_catalog(extra_dirs=[directory])
    except CatalogError as error:
        return error.problems
    return ()


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(place=st.sampled_from(_places(SOUND)), junk=JUNK)
def test_any_value_anywhere_loads_or_is_explained(tmp_path: Path, place: tuple[Any, ...], junk: Any) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(_changed(SOUND, place, junk), sort_keys=False))
    lines = len(file.read_text().splitlines())
    for problem in _problems(tmp_path):
        assert problem.file == str(file) or str(file) in problem.next_step
        assert problem.file != str(file) or 1 <= problem.line <= max(lines, 1)
        assert re.match(r"found .+; allowed: .", problem.message)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(place=st.sampled_from(_places(SOUND)), junk=JUNK)
def test_any_overlay_counts_whole_or_not_at_all(place: tuple[Any, ...], junk: Any) -> None:
    """Beside a sound overlay, which counts in any case; and where it is refused, its last sound version goes on."""
    deal = content_layer(Corrections("deal", 1, {"types": [{"name": "p5.48xlarge", "vcpu": 190}]}))
    first = effective_catalog([*SHIPPED, deal, content_layer(Corrections("x", 1, SOUND))], now=NOW)
    changed = _changed(SOUND, place, junk)
    content = changed if isinstance(changed, dict) else {"types": changed}
    found = effective_catalog([*SHIPPED, deal, content_layer(Corrections("x", 1, content))], now=NOW, before=first)
    assert found.catalog.get("p5.48xlarge").vcpu == 190
    for refused in found.refused:
        assert (refused.layer, refused.kept) == ("x", True)
        assert refused.problems
        assert found.catalog == first.catalog


def test_the_sound_file_is_sound(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(SOUND, sort_keys=False))
    catalog = load_catalog(extra_dirs=[tmp_path])
    assert {t.name for t in catalog if t.cloud == "my-dc"} == {"box", "m+1xnvidia-l4", "p5.48xlarge"}


_LEAVES = st.sampled_from([None, 1, 2, "text", (), (1,)])
_NESTED = st.dictionaries(st.sampled_from("abc"), _LEAVES, max_size=3)
_MAPPINGS = st.dictionaries(st.sampled_from("abc"), _LEAVES | _NESTED, max_size=3)


@settings(deadline=None)
@given(_MAPPINGS, _MAPPINGS)
def test_what_the_upper_layer_says_holds(below: dict[str, Any], above: dict[str, Any]) -> None:
    merged = merge(below, above)
    assert merge(merged, above) == merged
    assert set(merged) == set(below) | set(above)
    assert all(merged[key] == below[key] for key in set(below) - set(above))
    assert all(merged[key] == value for key, value in above.items() if not isinstance(value, dict))


@settings(deadline=None)
@given(_MAPPINGS)
def test_an_empty_layer_changes_nothing(entry: dict[str, Any]) -> None:
    assert merge(entry, {}) == entry
    assert merge({}, entry) == entry
