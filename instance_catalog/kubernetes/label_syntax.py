"""Kubernetes' syntax of labels and taints: an invalid one never reaches a node, its kubelet or its user data.

k8s.io/apimachinery 1.36 pkg/util/validation (IsQualifiedName, IsValidLabelValue) and k8s.io/kubernetes 1.36
pkg/apis/core/validation (validateNodeTaints): a key is a name of at most 63 characters, with or without a DNS subdomain
of at most 253 and a slash before it; a value has at most 63 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from instance_catalog.kubernetes.taint import Taint

_SEGMENT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_KEY_PATTERN: Final = rf"^({_SEGMENT}(\.{_SEGMENT})*/)?{_NAME}$"
LABEL_VALUE_PATTERN: Final = f"^({_NAME})?$"
TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
KEY_STEP: Final = "write a name of letters, digits, - _ and . (63 at most), with a DNS name and / before it if need be"
VALUE_STEP: Final = "use letters, digits, - _ and . (63 at most), with a letter or digit at both ends, or nothing"

LONGEST_PREFIX: Final = 253
LONGEST_VALUE: Final = 63
# fullmatch: in Python, unlike RE2, $ also matches before a last line break.
_KEY: Final = re.compile(LABEL_KEY_PATTERN[1:-1], re.ASCII)
_VALUE: Final = re.compile(LABEL_VALUE_PATTERN[1:-1], re.ASCII)


def is_label_key(text: str) -> bool:
    prefix, _, _ = text.rpartition("/")
    return len(prefix) <= LONGEST_PREFIX and _KEY.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    return _VALUE.fullmatch(text) is not None


def label_mistakes(labels: Mapping[str, str], taints: Iterable[Taint] = ()) -> Iterator[str]:
    """The invalid labels and taints, one text each, with the correction after a colon."""
    for key, value in labels.items():
        if not is_label_key(key):
            yield f"{key!r} is not a label key: {KEY_STEP}"
        if not is_label_value(value):
            yield f"{value!r} is not a value of label {key!r}: {VALUE_STEP}"
    for taint in taints:
        if not is_label_key(taint.key):
            yield f"{taint.key!r} is not a taint key: {KEY_STEP}"
        if not is_label_value(taint.value):
            yield f"{taint.value!r} is not a value of taint {taint.key!r}: {VALUE_STEP}"
        if taint.effect not in TAINT_EFFECTS:
            yield f"{taint.effect!r} is not an effect of a taint: use {', '.join(TAINT_EFFECTS)}"
