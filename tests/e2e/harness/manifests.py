"""deploy/manifests: what the chart renders with its default values and an image that nobody can push, without Helm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e.harness.binary import version
from tests.e2e.harness.toolbox import helm

ROOT: Final = Path(__file__).parents[3]
# Of a domain that nobody can own (RFC 2606): people put their own image there.
IMAGE: Final = "registry.example.com/foreslice"
NAMESPACE: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foreslice-system"}}
# Who may do what is a file of its own: it is what people read before they install anything.
RIGHTS: Final = frozenset(
    {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
HEADER: Final = "# Rendered from deploy/charts/foreslice by `make manifests`; do not edit.\n"
_OF_HELM: Final = ("helm.sh/chart", "app.kubernetes.io/managed-by")


def rendered() -> dict[Path, str]:
    """The files by their path in the repository."""
    where = ["--namespace", "foreslice-system", "--kube-version", version(), "--set", f"image.repository={IMAGE}"]
    text = helm("template", "foreslice", str(ROOT / "deploy/charts/foreslice"), *where)
    found = [_plain(document) for document in yaml.safe_load_all(text) if document]
    rights = [document for document in found if document["kind"] in RIGHTS]
    others = [document for document in found if document["kind"] not in RIGHTS]
    return {
        Path("deploy/manifests/rbac.yaml"): HEADER + _text([NAMESPACE, *rights]),
        Path("deploy/manifests/deployment.yaml"): HEADER + _text(others),
    }


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """Without the labels that say that Helm manages it."""
    labels = document["metadata"].get("labels", {})
    for label in _OF_HELM:
        labels.pop(label, None)
    return document


def _text(documents: list[dict[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False, width=120)


def main() -> int:
    """Write the files."""
    for path, text in rendered().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
