"""Images that no node can pull, because a template or an example left a part of them for users to replace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import PLACEHOLDER, UNREPLACED, left_by_template
from autoscaler.kube.workloads.pod_templates import CONTAINERS, FINISHED
from autoscaler.manifests.document import Document
from autoscaler.manifests.unfilled.templates import LIKE_A_VARIABLE
from instance_catalog.diagnostic import Diagnostic, Path, Severity, all_of

_SHOWN: Final = 3
_TAG: Final = re.compile(r"(:[^/@]*)?(@.*)?$")  # or the digest of an image; letters of a tag may be upper case
_HERE: Final = re.compile(r"\b[A-Z0-9_]+_HERE\b")  # in a tag too, which may have any other word in capitals
_ARGO: Final = "argoproj.io/"
_CONTAINERS: Final = frozenset({*CONTAINERS, "mainContainer"})  # the latter of Dynamo
# your-registry/app, r.example/replace-me: nobody owns these names. Other words of placeholders, such as todo, are names
# of images, too.
_OF_NOBODY: Final = re.compile(
    r"your[-_]?(?:registry|repo|repository|org|project|user|username|account|name|image)\b.*"
)
_REPLACE: Final = re.compile(r"(?:change|replace)[-_]?(?:me|this)")
_SIGNS: Final = re.compile(r"[$%{]")  # by which tools know a variable
_WORDS: Final = re.compile(r"(?:__)?(?<![a-z0-9])[A-Z][A-Z0-9_]{2,}(?![a-z0-9])")
# The path of a reference has no upper case and no blanks (distribution/reference, reference.go).
_UPPER: Final = re.compile(r"[A-Z\s]")


def warn_of_images(documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """One warning a file, at the first of its images that a node cannot pull: the API server takes them."""
    by_file: dict[str, list[tuple[Document, Path, str, str]]] = {}
    for document in documents:
        for path, image in _images(document):
            if step := _left(image):
                by_file.setdefault(document.file, []).append((document, path, image, step))
    for found in by_file.values():
        document, path, _, _ = found[0]
        names = list(dict.fromkeys(image for _, _, image, _ in found))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        starts = "the pod does not start" if len(found) == 1 else "pods do not start"
        message = f"no node can pull {', '.join(names[:_SHOWN])}{more}, so {starts} there"
        steps = "; ".join(dict.fromkeys(step for *_, step in found))
        yield document.located(Diagnostic(message, steps, path, severity=Severity.WARNING))


def _images(document: Document) -> Iterator[tuple[Path, str]]:
    """The images of containers, wherever the kind of the object has its pods. Argo's workflows have variables of their
    own, and a pod that has ended pulls nothing."""
    fields = document.value
    version, kind = header(fields)
    if (version.startswith(_ARGO) and "Workflow" in kind) or Fields(fields).child("status").raw("phase") in FINISHED:
        return
    for name in ("spec", "template"):
        yield from _of_containers(fields.get(name), (name,))


def _of_containers(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _of_containers(one, (*path, index))
    elif isinstance(value, dict):
        image = value.get("image")
        if isinstance(image, str) and image and _CONTAINERS.intersection(path[-2:]):
            yield (*path, "image"), image
        for key, one in value.items():
            if isinstance(one, dict | list):
                yield from _of_containers(one, (*path, str(key)))


def _left(image: str) -> str:
    """The next step for an image that cannot be pulled as it is: with a variable or a <name> in it, with one as a part
    of its path, or with a path that no image has; "" for others."""
    name = _TAG.sub("", image)
    host, *parts = name.split("/")
    to_fill = [image, *host.split("."), *parts, *_HERE.findall(image)]
    step = next(filter(None, map(left_by_template, to_fill)), "")
    path = parts or [host]
    if step == PLACEHOLDER and "<" not in image and not _UPPER.search("/".join(path)):
        step = ""
    words = (word for part in (host, *parts) for word in part.split("."))
    plain = [] if _SIGNS.search(image) else _WORDS.findall(name) or _HERE.findall(image)
    if step == UNREPLACED and plain:
        values = f"the value of {all_of(tuple(dict.fromkeys(plain)))}"
        step = f"{LIKE_A_VARIABLE}write {values}, each time that it is in the file"
    nobody = any(_OF_NOBODY.fullmatch(word.lower()) or _REPLACE.fullmatch(word) for word in words)
    return step or (PLACEHOLDER if nobody else "")
