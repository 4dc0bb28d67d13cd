"""Texts to single objects: YAML and JSON streams, and Lists as `kubectl get -o yaml|json` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.manifests.document import Document, Locator, UnreadableError
from autoscaler.manifests.json_documents import read_json
from autoscaler.manifests.sources import Source
from autoscaler.manifests.yaml_documents import read_yaml
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic, Path, Severity
from instance_catalog.kubernetes.labels import KUEUE_QUEUE

_APP_WRAPPER = "workload.codeflare.dev/"
# Where it has its objects: in v1beta2, and in v1beta1 (project-codeflare/multi-cluster-app-dispatcher,
# pkg/apis/controller/v1beta1/appwrapper.go).
_WRAPPED = ("spec.components[].template", "spec.resources.GenericItems[].generictemplate")
_GPU = "nvidia.com/gpu"  # MCAD knows no other device
_COUNT = re.compile("[0-9]{1,6}")
_MOST_PROBLEMS = 20  # of one file; more would be noise


@dataclass(frozen=True, slots=True)
class EmptyList:
    """A List without items, as `kubectl get` prints where there is nothing: an answer, and no mistake."""


def read_documents(source: Source) -> Iterator[Document | EmptyList | Diagnostic]:
    """The objects of a text. After a document that cannot be read, reading continues at the next `---`."""
    lines = source.text.split("\n")
    start = 0
    for _ in range(_MOST_PROBLEMS):
        # Empty lines stand for what was read before, so that line numbers stay right.
        text = "\n" * start + "\n".join(lines[start:])
        try:
            for document in _values(replace(source, text=text)):
                yield from document.twice
                yield from _objects(document)
            return
        except UnreadableError as error:
            yield Diagnostic(error.message, error.next_step, file=source.file, line=error.line)
            candidates = range(max(error.line - 1, start + 1), len(lines))
            start = next((index for index in candidates if lines[index].startswith("---")), len(lines))
            if start == len(lines):
                return


def _values(source: Source) -> Iterator[Document]:
    """JSON where the text looks like it (much faster), YAML otherwise: YAML in braces is YAML, too."""
    if source.text.lstrip()[:1] not in ("{", "["):
        return read_yaml(source.text, source.file)
    try:
        return iter(list(read_json(source.text, source.file)))
    except UnreadableError:
        if source.file.endswith(".json"):
            raise
        return read_yaml(source.text, source.file)


def _objects(document: Document) -> Iterator[Document | EmptyList | Diagnostic]:
    """The document itself, or the objects in it if it is a list."""
    if isinstance(document.value, list) and document.value and all(isinstance(one, dict) for one in document.value):
        # Several objects in one JSON array, as scripts write them.
        for index, item in enumerate(_once(document.value)):
            yield from _objects(_inside(document, item, Below(document.locate, index)))
        return
    version, kind = header(document.value)
    if kind == "AppWrapper" and version.startswith(_APP_WRAPPER):
        yield from _wrapped(document)
        return
    items = document.value.get("items") if isinstance(document.value, dict) else None
    if items is None and (kind == "List" or (kind.endswith("List") and "items" in document.value)):
        yield EmptyList()
        return
    if not kind.endswith("List") or not isinstance(items, list):
        yield document
        return
    if not items:
        yield EmptyList()
    # Only a document of its own has quick positions of its items.
    places = document.locate.items("items") or [Below(document.locate, "items", index) for index in range(len(items))]
    for item, locate in zip(items, places, strict=True):
        yield from _objects(_inside(document, _with_header(item, version, kind), locate))


def _inside(document: Document, item: object, locate: Locator) -> Document:
    """An item of a list, which the controller creates that creates the list."""
    return Document(document.file, locate(()), item, locate, creator=document.creator)


def _once(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of JSON patches stands for all: none is an object, and one warning says so."""
    return items[:1] if all("op" in item and "path" in item for item in items) else items


def _wrapped(wrapper: Document) -> Iterator[Document | EmptyList | Diagnostic]:
    """The objects that an AppWrapper creates in its own namespace, unless it is suspended and waits for no queue."""
    value = wrapper.value if isinstance(wrapper.value, dict) else {}
    spec, metadata = (part if isinstance(part, dict) else {} for part in (value.get("spec"), value.get("metadata")))
    queue = _queue_of(metadata)
    if spec.get("suspend") is True and not queue:
        message, step = "suspended: it has no pods now", "set suspend to false to plan for its pods"
        yield wrapper.located(Diagnostic(message, step, ("spec", "suspend"), severity=Severity.WARNING))
        return
    templates = [*_templates(spec)]
    if not templates:
        message, step = "has no object in it, so nothing is planned for it", f"write it into {' or '.join(_WRAPPED)}"
        yield wrapper.located(Diagnostic(message, step, ("spec",), severity=Severity.WARNING))
    yield from map(wrapper.located, _dispatched(spec))
    for place, template in templates:
        own = template.get("metadata") if isinstance(template.get("metadata"), dict) else {}
        given = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
        inner = {**given, **(own or {})}
        labels = inner.get("labels") or {}
        if queue:  # Kueue admits the wrapper, and with it all that is in it
            inner["labels"] = {**queue, **labels}
        locate = Below(wrapper.locate, *place)
        made = Document(wrapper.file, locate(()), {**template, "metadata": inner}, locate, creator="AppWrapper")
        theirs = tuple(("metadata", "labels", key) for key in queue if key not in labels)
        yield from _objects(replace(made, around=wrapper, given=theirs) if theirs else made)


def _dispatched(spec: dict[str, Any]) -> Iterator[Diagnostic]:
    """A warning about GPUs that have to be free before MCAD creates the objects (GetResources of
    project-codeflare/multi-cluster-app-dispatcher 008bdd9, queuejobresources/genericresource/genericresource.go)."""
    items = Fields(spec).child("resources").children("GenericItems")
    pods = [pod for item in items for pod in item.children("custompodresources")]
    given = [(pod.raw("replicas"), pod.child("requests").raw(_GPU) or pod.child("limits").raw(_GPU)) for pod in pods]
    amounts = [(str(replicas), str(each)) for replicas, each in given]
    gpus = sum(int(one) * int(each) for one, each in amounts if _COUNT.fullmatch(one) and _COUNT.fullmatch(each))
    if gpus > 0:
        yield Diagnostic(
            f"MCAD creates its pods only once {gpus} {_GPU} are free (replicas of custompodresources times their "
            "requests), and nothing is pending before; a plan buys what the pods ask for",
            "have such nodes before, with as many free GPUs; if the pods ask for fewer, correct custompodresources",
            ("spec", "resources"),
            severity=Severity.WARNING,
        )


def _templates(spec: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """The objects in an AppWrapper of v1beta2, and in one of v1beta1, with their places."""
    resources = spec.get("resources")
    generic = resources.get("GenericItems") if isinstance(resources, dict) else None
    for items, place, name in (
        (spec.get("components"), ("spec", "components"), "template"),
        (generic, ("spec", "resources", "GenericItems"), "generictemplate"),
    ):
        for index, item in enumerate(items if isinstance(items, list) else ()):
            template = item.get(name) if isinstance(item, dict) else None
            if isinstance(template, dict):
                yield (*place, index, name), template


def _queue_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """The label by which an object names its queue of Kueue; nothing of one without."""
    own = metadata.get("labels")
    return {key: own[key] for key in (KUEUE_QUEUE,) if key in own} if isinstance(own, dict) else {}


class Below:
    """The positions of the parts of a value inside a document."""

    def __init__(self, locate: Locator, *place: str | int) -> None:
        self._locate = locate
        self._place = place

    def __call__(self, path: Path) -> int:
        return self._locate((*self._place, *path))

    def items(self, name: str) -> Sequence[Locator]:
        return ()


def _with_header(item: object, version: str, kind: str) -> object:
    """Items of a typed list, such as a PodList, leave out what the list already says."""
    if kind == "List" or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": version, "kind": kind.removesuffix("List"), **item}
