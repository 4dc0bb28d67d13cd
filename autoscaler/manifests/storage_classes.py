"""StorageClasses that files name and do not contain: those that clouds install are known, of others it is open when
they bind volumes.

Files that people give rarely contain the cluster's classes. To take a missing one for one that binds at once would
refuse pods that the scheduler places, so it binds when its cloud says so, or the answer is *unknown*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.storage import DELAYED, UNKNOWN_BINDING, StorageClass

_DEFAULT: Final = "(the cluster's default)"
# Amazon EKS: amazon-eks user guide, storage (gp2 is what clusters are made with; gp3 is made by people).
# GKE: Google Cloud documentation, persistent volumes (standard-rwo and premium-rwo of the PD CSI driver). Its class
# "standard" binds at once, and that of the same name in kind waits, so the name alone says nothing.
_INSTALLED: Final[Mapping[str, str]] = {
    "gp2": "kubernetes.io/aws-ebs",
    "standard-rwo": "pd.csi.storage.gke.io",
    "premium-rwo": "pd.csi.storage.gke.io",
}


def add_storage_classes(manifests: ManifestSet) -> None:
    """The classes that unbound claims name and the files lack; a claim without a name has the cluster's default."""
    default = next((found.name for found in manifests.storage_classes.values() if found.default), _DEFAULT)
    for key, claim in list(manifests.volume_claims.items()):
        if claim.volume is not None or claim.storage_class == "":
            continue
        name = default if claim.storage_class is None else claim.storage_class
        manifests.volume_claims[key] = replace(claim, storage_class=name)
        if name not in manifests.storage_classes:
            provisioner = _INSTALLED.get(name, "")
            mode = DELAYED if provisioner else UNKNOWN_BINDING
            manifests.storage_classes[name] = StorageClass(name, mode, provisioner=provisioner)
