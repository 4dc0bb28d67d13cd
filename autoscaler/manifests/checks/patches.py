"""Tells patches of Kustomize, and templates that a tool completes, from whole objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import RENDER_OVERLAY, Problems, left_by_template
from autoscaler.kube.workloads.pod_templates import CONTAINERS, pods_in
from autoscaler.kube.workloads.selector import selector_to_add
from autoscaler.manifests.skipping import SKIP_PLANS
from instance_catalog.diagnostic import Diagnostic, Path, Severity

# The fields whose problems a patch has only because it is read as a whole object.
_OF_OBJECT: Final = (("metadata", "name"), ("apiVersion",))
_ANY_NAME: Final = "*"  # a patch with a target needs no name of its own
# By which a pod says which machine it needs.
_CHOOSING: Final = ("nodeSelector", "affinity", "nodeName", "resourceClaims")
_RENDERED: Final = f"give what Kustomize makes of it: {RENDER_OVERLAY}"
_NO_RUNTIME: Final = "its model has neither modelFormat nor runtime"


def lacking(fields: Fields) -> tuple[Path, str] | None:
    """The field that an object lacks, and its name, if only a patch of Kustomize may lack it, or a template that a tool
    such as Spark or Argo completes: the image of a container, both the selector and the labels of its pods, or what
    chooses the runtime of an InferenceService (pkg/controller/v1beta1/inferenceservice/components/predictor.go of
    kserve v0.20)."""
    predictor = _predictor(fields)
    model = predictor.child("model")
    if "model" in predictor and "modelFormat" not in model and "runtime" not in model:
        return (*predictor.path, "model"), _NO_RUNTIME
    for pod in pods_in(fields):
        spec = pod.child("spec")
        names = [container.text("name") for container in spec.children("containers") if not container.text("image")]
        if names:
            return (*spec.path, "containers"), f"container {names[0]} has no image"
        if "containers" not in spec:
            return None  # an error already
    labels = fields.child("spec").child("template").child("metadata").text_map("labels")
    if labels or not selector_to_add(fields, fields.text("kind")):
        return None
    return ("spec",), "its pods have no labels, and it has no selector"


def patch(fields: Fields, problems: Problems) -> Diagnostic | None:
    """The message for a patch, instead of errors of its name or version, because a patch is neither renamed nor
    converted. None for other objects, whose name has to be filled in, and for pods, which people write."""
    name = fields.child("metadata").text("name")
    lacks = lacking(fields)
    signs = [lacks[1]] if lacks else []
    if name == _ANY_NAME:
        signs.insert(0, f"its name is {name!r}")
        said = "is a patch of Kustomize, and no whole object"
    else:
        wrong = [one for one in problems if one.path in _OF_OBJECT and one.severity is Severity.ERROR]
        if not signs or not wrong or left_by_template(name) or fields.text("kind") == "Pod":
            return None
        signs += [one.message for one in wrong]
        said = "looks like a patch of Kustomize, and no whole object"
    return Diagnostic(f"{said}: {', and '.join(signs)}", _RENDERED, ("metadata", "name"))


def half(fields: Fields) -> Diagnostic | None:
    """The message for a patch whose pods ask for devices and do not say which: the object that it changes, or another
    patch, may name them, so the cheapest machine would be a guess. None for pods, for DaemonSets, for which nothing is
    bought, and for objects that name a machine or claim devices."""
    lacks = lacking(fields)
    if lacks is None or fields.text("kind") in ("Pod", "DaemonSet"):
        return None
    specs = [pod.child("spec") for pod in pods_in(fields)] or [_predictor(fields)]
    found = [(spec, name) for spec in specs for name in _devices(spec)]
    if not found or any(name in spec for spec, _ in found for name in _CHOOSING):
        return None
    said = (
        f"looks like a patch of Kustomize, or a template that a tool completes: {lacks[1]}, so {_without(lacks[1])}. "
        f"It asks for {found[0][1]} and names no model; the object that it changes, or another file of its "
        "kustomization, may name one: nothing is planned for it"
    )
    return Diagnostic(said, _RENDERED + SKIP_PLANS, lacks[0])


def _without(lacks: str) -> str:
    """The effect if an object lacks this."""
    return "KServe finds no runtime for it" if lacks == _NO_RUNTIME else "the API server refuses it"


def _predictor(fields: Fields) -> Fields:
    """Of an InferenceService of KServe, with the fields of a pod's spec; empty for every other object."""
    group = fields.text("apiVersion").partition("/")[0]
    return fields.child("spec").child("predictor") if group == "serving.kserve.io" else Fields({})


def _devices(spec: Fields) -> Iterator[str]:
    """The extended resources of the containers of a pod, or of the model server of a predictor."""
    for container in (spec.child("model"), *(one for part in CONTAINERS for one in spec.children(part))):
        for amounts in ("limits", "requests"):
            yield from (name for name in container.child("resources").child(amounts).names() if "/" in name)


def check_complete(fields: Fields, problems: Problems) -> None:
    """An object that looks like a patch is planned with a warning. Labels and images without a selector are a whole
    object, of a version that set the selector by itself."""
    if found := lacking(fields):
        path, lacks = found
        message = (
            f"{lacks}, so {_without(lacks)}: this looks like a patch of Kustomize, or a template that a tool "
            "completes, and what it lacks is not known"
        )
        problems.warn(path, message, f"{_RENDERED}, or the pods that the tool makes (`kubectl get pods -o yaml`)")
    elif all("containers" in pod.child("spec") for pod in pods_in(fields)) and (
        selector := selector_to_add(fields, fields.text("kind"))
    ):
        step = f"add `{selector}` below spec"
        problems.error(("spec", "selector"), "is required: the API server refuses the workload without it", step)
