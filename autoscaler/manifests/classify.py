"""The kind of a document, and the error if the kind cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import RENDER_OVERLAY, UNREPLACED, Problems, in_shell, left_by_template, render_command
from autoscaler.kube.workloads.selector import selector_to_add
from autoscaler.manifests.document import Document
from autoscaler.manifests.foreign.asked import asking, machines, of_profile, of_runtime
from autoscaler.manifests.foreign.files import other_file
from autoscaler.manifests.held import warn_of_manifests
from autoscaler.manifests.kinds import KINDS, MAKES_PODS, NO_PLACEMENT, Kind, kind_of, reason_to_ignore
from autoscaler.manifests.merged import TRAINER, runtime_named
from autoscaler.manifests.names import refused_name
from autoscaler.manifests.removed import Parameters, is_parameters, no_longer_served, removed
from autoscaler.manifests.skipping import OR_SKIP, without_offer
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Path
from instance_catalog.spelling import ALIKE, did_you_mean

_NONE: Final[Parameters] = {}
NO_INFLUENCE: Final = f"ignored: {NO_PLACEMENT}"
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_]\w*\}")
# Of the configuration of NVIDIA's device plugin, by which it hands out each GPU to several pods.
_SHARING: Final = re.compile(r"^\s*(?:timeSlicing|mps):", re.MULTILINE)
_SHARED: Final = (
    "where NVIDIA's device plugin reads it, each GPU counts several times, which a plan knows of only by the catalog: "
    "`foreslice catalog set TYPE allocatable.nvidia.com/gpu=… --into DIR --reason WHY` says how many a node hands out"
)
# KFServing became KServe, with a group of its own, in 2021 (release 0.7); v1alpha2 had the predictor below
# spec.default, and its container below custom (coreweave/kubernetes-cloud 67ae991 has manifests of it).
_KFSERVING: Final = "serving.kubeflow.org"
_KSERVE: Final = (
    "it is of KFServing, which ended: KServe has apiVersion: serving.kserve.io/v1beta1, where spec.default.predictor "
    "is spec.predictor and its custom.container the first of spec.predictor.containers"
)
# argoproj/argo-rollouts, docs/features/analysis.md and docs/analysis/job.md (2026-11): a metric may be a Job, of which
# each measurement makes one.
_ANALYSES: Final = ("AnalysisRun", "AnalysisTemplate", "ClusterAnalysisTemplate")
_MEASURES: Final = (
    "its metric {metric} is a Job, which runs for each measurement and is not planned: give it as a Job of its own to "
    "plan for its pods"
)
# What else the objects of a group say about their pods.
_MORE: Final = {"kaito.sh": machines, "kubeai.org": of_profile, "ome.io": of_runtime}
_KUSTOMIZE: Final = "kustomize.config.k8s.io"
A_DEPLOYMENT: Final = " or, before it runs, a Deployment whose pods ask for the same"
_MADE: Final = f"give what its controller makes (kubectl get pods -o yaml){A_DEPLOYMENT}"
_BEFORE_IT_RUNS: Final = "before it runs, give a Deployment whose pods ask for the same"
_GROUPS = {kind.group for kind in KINDS} | {"extensions"}  # where Deployments and DaemonSets once were
_TYPO: Final = 0.8  # kinds that one program adds resemble each other: PyTorchJob, TFJob
_TOP: Final = {name.lower(): name for name in ("apiVersion", "kind", "metadata", "spec")}


def in_right_case(document: Document, problems: Problems) -> Document:
    """The document with its outermost fields as Kubernetes writes them; those in another case are errors.

    The fields in it are then read as well, so that a person sees all that are misspelled at once.
    """
    value = document.value
    if not isinstance(value, dict):
        return document
    wrong = {
        key: right
        for key in value
        if isinstance(key, str) and (right := _TOP.get(key.lower(), key)) != key and right not in value
    }
    if not wrong or not {"apiVersion", "kind"} <= {wrong.get(key, key) for key in value}:
        return document  # perhaps no Kubernetes object at all
    for key, right in wrong.items():
        problems.error((key,), f"unknown field {key!r}: the case of its letters counts", f"write {right}")
    return replace(document, value={wrong.get(key, key): part for key, part in value.items()})


def classify(
    document: Document, problems: Problems, parameters: Parameters = _NONE, *, skip: bool = False
) -> Kind | None:
    """The kind of a document; None, with a problem, where it is ignored or cannot be used.

    `parameters` are what claims of v1alpha2 refer to. With `skip`, what is unknown is a warning.
    """
    value = document.value
    report = partial(_skipping, problems) if skip else problems.error
    if not isinstance(value, dict):
        report((), "not a Kubernetes object", "an object has apiVersion, kind and metadata")
        return None
    version, name = header(value)
    if not version or not name:
        if other := other_file(document.file, value):
            problems.warn((), f"ignored: {other}")
        else:
            report(*_headless(version, name))
        return None
    group, _, short = version.rpartition("/")
    kind = kind_of(group, name)
    if kind is not None and short in kind.versions:
        return kind
    if group == "resource.k8s.io" and (name, short) != ("DeviceTaintRule", "v1alpha3"):
        gone = removed(value, name, short, parameters)
        if gone is not None:
            problems.error(*gone)
            return None
    if kind is not None:
        fields = ", with the fields of that version: other versions may have others" if "." in group else ""
        step = _KSERVE if group == _KFSERVING else _write(kind, value, fields)
        problems.error(("apiVersion",), _not_served(version, name) or f"{name} of {version} is not known", step)
        return None
    if is_parameters(value):
        problems.warn((), "ignored: parameters of a ResourceClaim of v1alpha2, which v1 writes into the claim")
        return None
    reason = _reason(_group_now(version, name), name, document)
    if reason is None:
        report(*_unknown(version, name, value))
        return None
    _warn_if_removed(version, name, problems)
    if (group, name) != ("", "ConfigMap") or not warn_of_manifests(Fields(value), problems):
        _ignore(value, reason, problems)
    return None


def _skipping(problems: Problems, path: Path, message: str, step: str) -> None:
    """A warning instead of an error, for someone who has passed --skip-unknown already."""
    problems.warn(path, message, without_offer(step))


def _warn_if_removed(version: str, name: str, problems: Problems) -> None:
    if left := no_longer_served(version, name):
        problems.warn(("apiVersion",), _not_served(version, name), left.step)


def _not_served(version: str, name: str) -> str:
    """The message about a version that API servers have no longer; "" for the others."""
    left = no_longer_served(version, name)
    return f"{name} of {version} was removed with Kubernetes {left.release}" if left else ""


def _group_now(version: str, name: str) -> str:
    """The group that has the kind today."""
    left = no_longer_served(version, name)
    return (left.instead if left and left.instead else version).rpartition("/")[0]


def _reason(group: str, name: str, document: Document) -> str | None:
    """The reason why the object is ignored; None if it may have an influence."""
    if group == _KUSTOMIZE:
        command = render_command(document.file) if name == "Kustomization" else RENDER_OVERLAY
        return f"it is an instruction to kustomize; give what it renders: {command}"
    if group == "argoproj.io" and name in _ANALYSES and (metric := _job_metric(document.value)):
        return _MEASURES.format(metric=metric)
    return _SHARED if _shares_gpus(group, name, document.value) else reason_to_ignore(group, name)


def _job_metric(value: object) -> str:
    """The name of the first metric that is a Job."""
    metrics = Fields(value).child("spec").children("metrics")
    return next((one.text("name") for one in metrics if "job" in one.child("provider")), "")


def _ignore(value: dict[str, Any], reason: str, problems: Problems) -> None:
    asked = asking(value) if reason != NO_PLACEMENT else ""
    problems.warn((), f"ignored: {reason}{asked}", _BEFORE_IT_RUNS if asked and "kubectl get pods" in reason else "")
    left = sorted({*_variables(value.get("spec")), *_variables(value.get("metadata"))})
    if left and reason != NO_PLACEMENT:  # what is in the others does not matter
        problems.warn((), f"has {', '.join(left)} as values", UNREPLACED)
    called = Fields(value).child("metadata").text("name")
    if called not in left and (found := left_by_template(called) and refused_name(called)):
        problems.warn(("metadata", "name"), *found)


def _shares_gpus(group: str, name: str, value: dict[str, Any]) -> bool:
    if (group, name) != ("", "ConfigMap"):
        return False
    data = Fields(value).child("data")
    return any(_SHARING.search(str(data.raw(key))) for key in data.names())


def _headless(version: str, name: str) -> tuple[tuple[str, ...], str, str]:
    """A problem: apiVersion, kind or both are missing."""
    missing = " and ".join(part for part, found in (("apiVersion", version), ("kind", name)) if not found)
    step = f"Helm values and Kustomize patches are not objects: give rendered manifests{OR_SKIP}"
    if name in ("Pod", "ResourceClaim", "ResourceClaimTemplate"):
        step = f"add apiVersion: {'v1' if name == 'Pod' else 'resource.k8s.io/v1'}"
    return (), f"not a Kubernetes object: missing {missing}", step


def _variables(value: object) -> Iterator[str]:
    """The values that are a variable such as ${NAME} and nothing else. One within a text may be the shell's."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _variables(one)
    elif isinstance(value, str) and _VARIABLE.fullmatch(value):
        yield value


def _write(kind: Kind, value: object, more: str = "") -> str:
    """The next step to the apiVersion of a kind, with what that requires and earlier versions did not, else `more`."""
    step = f"write apiVersion: {'/'.join(part for part in (kind.group, kind.versions[0]) if part)}"
    added = selector_to_add(Fields(value), kind.name)
    return f"{step}, and below spec `{added}`, which apps/v1 requires" if added else step + more


def _unknown(version: str, name: str, value: object) -> tuple[tuple[str, ...], str, str]:
    """Names are compared within the groups that are read here: the Job of another group is another thing."""
    group = version.rpartition("/")[0]
    if (group, name) in MAKES_PODS:
        step = f"{_MADE}{OR_SKIP} to plan for the rest"
        if (group, name) == (TRAINER, "TrainJob"):
            runtime, called = runtime_named(Fields(value))
            message = f"its pods are made of {runtime} {called}, which the files lack"
            get = f"add it (`kubectl get {in_shell(runtime.lower())} {in_shell(called)} -o yaml`)"
            return ("spec", "runtimeRef", "name"), message, f"{get}, or {step}"
        message = f"{name} of {version} makes pods by rules of its own, which Foreslice does not know"
        more = _MORE.get(group)
        return ("kind",), message + asking(value) + (more(value) if more else ""), step
    if group in _GROUPS:
        for kind in KINDS:
            if kind.name == name:
                message = _not_served(version, name) or f"{name} is not a kind of {version}"
                return ("apiVersion",), message, _write(kind, value)
        alike = _TYPO if "." in group else ALIKE
        near = did_you_mean(name, {kind.name for kind in KINDS if kind.group == group}, equivalence_key=alike)
        if near:
            return ("kind",), f"unknown kind {name!r}", near
    if group == "simulation.foreslice.dev":
        return ("kind",), f"{name} is not an object of a cluster", "give the file to `foreslice simulate`"
    asked = asking(value)
    deployment = A_DEPLOYMENT if asked else ""
    step = f"if it does, give the pods instead (kubectl get pods -o yaml){deployment}; otherwise remove it{OR_SKIP}"
    message = f"unsupported kind {name} of {version}: Foreslice cannot tell whether it creates pods"
    return ("kind",), message + asked, step
