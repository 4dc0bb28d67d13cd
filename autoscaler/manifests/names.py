"""Names and values of labels that an API server refuses, wherever they stand in an object.

Source: k8s.io/apimachinery pkg/util/validation and k8s.io/kubernetes pkg/apis/{core,resource}/validation, v1.37.2.
Names that it takes as they are have no check here: of a scheduler, of pull secrets, and of the PersistentVolumeClaim,
Secret or ConfigMap of a volume.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import PLACEHOLDER, Problems, left_by_template
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.labels import HOSTNAME

_SEGMENT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_SEGMENT}(\.{_SEGMENT})*")
_LABEL: Final = re.compile(_SEGMENT)
_LONGEST: Final = {_SUBDOMAIN: 253, _LABEL: 63}
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")  # of a label
_BY_PROGRAM: Final = re.compile(r"(?i)filled[ _](?:in[ _])?by|operator|controller")  # fills it in
_LABEL_KINDS: Final = frozenset({"Namespace", "Service"})
_OF_SPEC: Final = {
    "serviceAccountName": _SUBDOMAIN,
    "nodeName": _SUBDOMAIN,
    "priorityClassName": _SUBDOMAIN,
    "runtimeClassName": _SUBDOMAIN,
    "hostname": _LABEL,
    "subdomain": _LABEL,
}
_NODE: Final = (
    f"{PLACEHOLDER}, the name of a Node that you give as well (`kubectl get nodes,resourceslices -o yaml`), or drop "
    "the selector"
)
_OF_CLAIM: Final = {"name": _LABEL, "resourceClaimName": _SUBDOMAIN, "resourceClaimTemplateName": _SUBDOMAIN}


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
    _check_labels(metadata, "labels", problems)
    for pod in pods:
        if pod.path:  # of a template
            _check_labels(pod.child("metadata"), "labels", problems)
        _check_labels(pod.child("spec"), "nodeSelector", problems)
        _warn_of_placeholders(pod.child("spec"), problems)
        _check_pod(pod.child("spec"), problems)
    claim = {"ResourceClaim": fields.child("spec"), "ResourceClaimTemplate": fields.child("spec").child("spec")}
    if kind in claim:
        for request in claim[kind].child("devices").children("requests"):
            for one in (request, *request.children("firstAvailable")):
                _check((*one.path, "name"), one.text("name"), _LABEL, problems)


def _check_pod(spec: Fields, problems: Problems) -> None:
    """Names in a pod's spec (ValidatePodSpec)."""
    for field, form in _OF_SPEC.items():
        _check((*spec.path, field), spec.text(field), form, problems)
    if not spec.text("serviceAccountName"):  # the old name of the field counts (pkg/apis/core/v1/conversion.go)
        _check((*spec.path, "serviceAccount"), spec.text("serviceAccount"), _SUBDOMAIN, problems)
    for part in ("initContainers", "containers"):
        for container in spec.children(part):
            _check((*container.path, "name"), container.text("name"), _LABEL, problems)
            for reference in _referred(container):
                _check((*reference.path, "name"), reference.text("name"), _SUBDOMAIN, problems)
    for entry in spec.children("resourceClaims"):
        for field, form in _OF_CLAIM.items():
            _check((*entry.path, field), entry.text(field), form, problems)
    for volume in spec.children("volumes"):
        _check((*volume.path, "name"), volume.text("name"), _LABEL, problems)


def _check_labels(holder: Fields, field: str, problems: Problems) -> None:
    """The values of a field that holds labels (ValidateLabels)."""
    found = holder.raw(field)
    for key, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, str) and not (_VALUE.fullmatch(value) and len(value) <= _LONGEST[_LABEL]):
            left = left_by_template(value)
            step = (_NODE if (field, key, left) == ("nodeSelector", HOSTNAME, PLACEHOLDER) else left) or (
                f"write at most {_LONGEST[_LABEL]} letters, digits, '-', '_' and '.', a letter or digit at both ends"
            )
            problems.error((*holder.path, field, str(key)), f"the API server refuses the label value {value!r}", step)


def _warn_of_placeholders(spec: Fields, problems: Problems) -> None:
    """Values by which the pod selects nodes: the API server takes them, and no node has what nobody has filled in."""
    for path, value in _selecting(spec):
        if left_by_template(value) == PLACEHOLDER and _VALUE.fullmatch(value):
            step = _NODE if path[-1:] == (HOSTNAME,) else PLACEHOLDER
            problems.warn(path, f"no node has a label or taint {value!r}", step)


def _selecting(spec: Fields) -> Iterator[tuple[Path, str]]:
    """Values of node labels and taints, with their places."""
    selector = spec.child("nodeSelector")
    for key in selector.names():
        if isinstance(value := selector.raw(key), str):
            yield (*selector.path, key), value
    for toleration in spec.children("tolerations"):
        yield (*toleration.path, "value"), toleration.text("value")
    nodes = spec.child("affinity").child("nodeAffinity").child("requiredDuringSchedulingIgnoredDuringExecution")
    for term in nodes.children("nodeSelectorTerms"):
        for expression in term.children("matchExpressions"):
            for number, value in enumerate(expression.texts("values")):
                yield (*expression.path, "values", number), value


def _referred(container: Fields) -> Iterator[Fields]:
    """The ConfigMaps and Secrets that a container's environment is read from."""
    for entry in container.children("envFrom"):
        yield from (entry.child("configMapRef"), entry.child("secretRef"))
    for entry in container.children("env"):
        source = entry.child("valueFrom")
        yield from (source.child("configMapKeyRef"), source.child("secretKeyRef"))


def refused_name(name: str) -> tuple[str, str] | None:
    """The reason why an API server refuses an object of this name, and the next step; None if it accepts it. For most
    kinds."""
    return _refused(name, _SUBDOMAIN, "")


def check_made_names(names: Iterable[str], own: str, problems: Problems) -> bool:
    """Report the first name of a pod that an API server refuses, and return True without any. Names are made of that of
    the workload, `own`, which is checked by itself, and of names in it: of roles, templates or groups. No length is
    checked but that of the part that they add, because controllers shorten what they generate."""
    for name in names:
        added = name.removeprefix(own)
        if _SUBDOMAIN.fullmatch(f"x{added}" if len(added) < len(name) else name) and len(added) <= _LONGEST[_SUBDOMAIN]:
            continue
        shown = name if len(name) <= _LONGEST[_SUBDOMAIN] else f"{name[: _LONGEST[_SUBDOMAIN]]}…"
        step = f"correct the name that this is made of, such as that of a role or template: {_form(shown, _SUBDOMAIN)}"
        problems.error((), f"the API server refuses the name {shown!r} of a pod that it makes", step)
        return False
    return True


def _check(path: Path, name: str, form: re.Pattern[str], problems: Problems, *, shown: str = "") -> None:
    found = _refused(name, form, shown) if name else None
    if found is not None:
        problems.error(path, *found)


def _refused(name: str, form: re.Pattern[str], shown: str) -> tuple[str, str] | None:
    if form.fullmatch(name) and len(name) <= _LONGEST[form]:
        return None
    if len(name) > _LONGEST[form]:
        return f"has {len(name)} characters; the API server takes {_LONGEST[form]}", "choose a shorter name"
    step = left_by_template(name)
    if step == PLACEHOLDER and _BY_PROGRAM.search(name):
        step += ", or give the object that the program makes of it (kubectl get … -o yaml)"
    return f"the API server refuses the name {shown or name!r}", step or _form(name, form)


def _form(name: str, form: re.Pattern[str]) -> str:
    """The required form of a name."""
    signs = "letters, digits and '-'" if form is _LABEL else "letters, digits, '-' and '.'"
    step = f"write lower case {signs}, with a letter or digit at both ends"
    near = _near(name, form)
    return f"{step}, such as {near}" if near else step


def _near(name: str, form: re.Pattern[str]) -> str:
    near = re.sub(r"[^a-z0-9.-]+" if form is _SUBDOMAIN else r"[^a-z0-9-]+", "-", name.lower()).strip("-.")
    return near if form.fullmatch(near) else ""
