"""InstanceTypeOverlays among the manifests correct the catalog, while they last."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from autoscaler.manifests.corrections import corrections_of
from autoscaler.manifests.load import load
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.loader import load_catalog

OVERLAY = """
apiVersion: foreslice.dev/v1alpha1
kind: InstanceTypeOverlay
metadata: {name: negotiated}
spec:
  cloud: aws
  instanceType: g6.xlarge
  source: contract 17
  expiresAt: "2026-12-01T00:00:00Z"
  entry:
    prices:
      on-demand: {usdPerHour: "PRICE", region: us-east-1, date: "2026-11-01"}
"""


def written(tmp_path: Path, price: str) -> str:
    path = tmp_path / "overlay.yaml"
    path.write_text(OVERLAY.replace("PRICE", price), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(datetime(2026, 11, 30, tzinfo=UTC), Decimal("0.5"), id="in force"),
        pytest.param(datetime(2026, 12, 1, tzinfo=UTC), Decimal("0.8048"), id="expired"),
    ],
)
def test_price(tmp_path: Path, now: datetime, expected: Decimal) -> None:
    loaded = load([written(tmp_path, "0.5")])
    catalog = load_catalog(corrections=corrections_of(loaded.overlays, now))
    price = catalog.get("g6.xlarge").price
    assert price is not None
    assert price.usd_per_hour == expected


def test_a_bad_price_names_file_object_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, "cheap")
    corrections = corrections_of(load([path]).overlays, datetime(2026, 11, 1, tzinfo=UTC))
    with pytest.raises(CatalogError) as caught:
        load_catalog(corrections=corrections)
    assert f"{path}, InstanceTypeOverlay negotiated:2" in str(caught.value)
    assert "prices.on-demand" in str(caught.value)
