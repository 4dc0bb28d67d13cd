"""Values back to entries: what is exported loads as the same catalog."""

from __future__ import annotations

from instance_catalog.files.file_entry import accelerator_entry, type_entry
from instance_catalog.files.loader import Corrections, load_catalog


def test_the_shipped_catalog_survives_the_round_trip() -> None:
    catalog = load_catalog()
    content = {
        "accelerators": [accelerator_entry(model) for model in catalog.accelerators.values()],
        "types": [type_entry(t, catalog.accelerators) for t in catalog],
    }
    again = load_catalog(corrections=[Corrections("export", 1, content)])
    assert again.digest == catalog.digest
    assert again.types == catalog.types


def test_what_differs_from_the_model_is_written_also_as_not_known() -> None:
    catalog = load_catalog()
    entry = type_entry(catalog.get("trn2u.48xlarge"), catalog.accelerators)
    assert entry["accelerator"] == {"model": "aws-trainium2", "count": 16, "productName": None}
    k80 = accelerator_entry(catalog.accelerators["nvidia-k80"])
    assert k80["memory"] == {"atLeast": "11441Mi", "atMost": "12Gi"}
    rtx = accelerator_entry(catalog.accelerators["nvidia-rtx-pro-4500"])
    assert rtx["productName"]["oneOf"][0] == "NVIDIA RTX PRO 4500 Blackwell Server Edition"
    assert type_entry(catalog.get("g6f.large"), catalog.accelerators)["accelerator"]["count"] == "1/8"
