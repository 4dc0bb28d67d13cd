"""Names that an API server refuses, wherever they stand in an object.

Source: k8s.io/apimachinery pkg/util/validation and k8s.io/kubernetes pkg/apis/{core,resource}/validation, v1.36.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import UNREPLACED, Problems, is_placeholder
from instance_catalog.diagnostic import Path

_SEGMENT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_SEGMENT}(\.{_SEGMENT})*")
_LABEL: Final = re.compile(_SEGMENT)
_LONGEST: Final = {_SUBDOMAIN: 253, _LABEL: 63}
_LABEL_KINDS: Final = frozenset({"Namespace", "Service"})


def check_names(value: object, kind: str, pods: Iterator[Fields], problems: Problems) -> None:
    """Report every malformed name of an object; `pods` are the pods and pod templates in it."""
    fields = Fields(value)
    metadata = fields.child("metadata")
    form = _LABEL if kind in _LABEL_KINDS else _SUBDOMAIN
    prefix = metadata.text("generateName")
    name = metadata.text("name")
    _check(("metadata", "name"), name, form, problems)
    if not name and prefix:
        _check(("metadata", "generateName"), f"{prefix}x", form, problems, shown=prefix)
    _check(("metadata", "namespace"), metadata.text("namespace"), _LABEL, problems)
    for pod in pods:
        spec = pod.child("spec")
        for part in ("initContainers", "containers"):
            for container in spec.children(part):
                _check((*container.path, "name"), container.text("name"), _LABEL, problems)
        for entry in spec.children("resourceClaims"):
            _check((*entry.path, "name"), entry.text("name"), _LABEL, problems)
    claim = {"ResourceClaim": fields.child("spec"), "ResourceClaimTemplate": fields.child("spec").child("spec")}
    if kind in claim:
        for request in claim[kind].child("devices").children("requests"):
            for one in (request, *request.children("firstAvailable")):
                _check((*one.path, "name"), one.text("name"), _LABEL, problems)


def _check(path: Path, name: str, form: re.Pattern[str], problems: Problems, *, shown: str = "") -> None:
    if not name or (form.fullmatch(name) and len(name) <= _LONGEST[form]):
        return
    if len(name) > _LONGEST[form]:
        what = f"has {len(name)} characters; the API server takes {_LONGEST[form]}"
        problems.error(path, what, "choose a shorter name")
        return
    signs = "letters, digits and '-'" if form is _LABEL else "letters, digits, '-' and '.'"
    step = f"write lower case {signs}, with a letter or digit at both ends"
    if is_placeholder(name):
        problems.error(path, f"the API server refuses the name {shown or name!r}", UNREPLACED)
        return
    near = _near(name, form)
    problems.error(
        path, f"the API server refuses the name {shown or name!r}", f"{step}, such as {near}" if near else step
    )


def _near(name: str, form: re.Pattern[str]) -> str:
    near = re.sub(r"[^a-z0-9.-]+" if form is _SUBDOMAIN else r"[^a-z0-9-]+", "-", name.lower()).strip("-.")
    return near if form.fullmatch(near) else ""
