"""InstanceTypeOverlays among the manifests, as corrections of the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from autoscaler.kube.problem import Problems
from autoscaler.manifests.document import Document

if TYPE_CHECKING:
    from instance_catalog.files.layers import Corrections


def corrections_of(overlays: Iterable[Document], now: datetime) -> list[Corrections]:
    """One catalog file's content per overlay that is in force at `now`, in the order of their names.

    Overlays that are malformed were reported when the manifests were read; they do not get here.
    """
    documents = sorted(overlays, key=lambda document: document.name)
    if not documents:
        return []  # without loading the models of our own kinds
    from autoscaler.kube.custom.instance_type_overlay import parse_instance_type_overlay
    from autoscaler.kube.custom.schema import moment
    from instance_catalog.files.layers import Corrections

    found: list[Corrections] = []
    for document in documents:
        overlay = parse_instance_type_overlay(document.value, Problems())
        if overlay is None or (overlay.expires_at is not None and moment(overlay.expires_at) <= now):
            continue
        found.append(Corrections(f"{document.file}, {document.name}", document.line, overlay.catalog_file()))
    return found
