"""The selector that apps/v1 requires in a workload; earlier versions set it from the labels of its template.

Source: pkg/apis/apps/validation (ValidateDeploymentSpec and similar functions), v1.37.2.
"""

from __future__ import annotations

import re
from typing import Final

from autoscaler.kube.fields import Fields

KINDS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
_PLAIN: Final = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|y|n)$)[A-Za-z][\w./-]*")


def selector_to_add(workload: Fields, kind: str) -> str:
    """The selector that a workload lacks, as YAML below `spec`; "" if it has one or needs none."""
    spec = workload.child("spec")
    selector = spec.child("selector")
    if kind not in KINDS or any(selector.raw(part) for part in ("matchLabels", "matchExpressions")):
        return ""
    labels = spec.child("template").child("metadata").text_map("labels")
    written = ", ".join(f"{_scalar(key)}: {_scalar(text)}" for key, text in labels.items())
    return f"selector: {{matchLabels: {{{written or 'NAME: VALUE'}}}}}"


def _scalar(text: str) -> str:
    """The text as a YAML scalar."""
    return text if _PLAIN.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
