"""Arguments with a variable of a shell that no shell reads: Kubernetes replaces $(NAME) alone in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.pod_templates import pods_in
from autoscaler.manifests.document import Document
from autoscaler.manifests.unfilled.templates import substituting
from instance_catalog.diagnostic import Diagnostic, Path, Severity

# The value of an option, and nothing else: a program may have a language of its own in longer texts.
_VALUE: Final = re.compile(r"(?:--?[\w.-]+=)?\$\{([A-Za-z_]\w*)\}")
_SHELL: Final = re.compile(r"(?:\S*/)?(?:ba|da|z|k|a)?sh|-[a-z]*c|\S+\.sh")


def warn_of_arguments(documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """One warning a file, at the first such argument: the program gets the name of the variable."""
    told = set[str]()
    for document in documents:
        for path, text, name, own in _arguments(document) if document.file not in told else ():
            told.add(document.file)
            message = f"the program gets '{text}' as it is: Kubernetes replaces only $(NAME) in arguments"
            step = f"write $({name})" if own else substituting([name], document.file)
            yield document.located(Diagnostic(message, step, path, severity=Severity.WARNING))
            break


def _arguments(document: Document) -> Iterator[tuple[Path, str, str, bool]]:
    """Of containers with devices: where they are, the text, the variable, and whether the container has it."""
    for pod in pods_in(Fields(document.value)):
        for container in pod.child("spec").children("containers"):
            given = [(field, container.raw(field)) for field in ("command", "args")]
            texts = [(field, i, one) for field, all_ in given if isinstance(all_, list) for i, one in enumerate(all_)]
            words = [(field, i, one) for field, i, one in texts if isinstance(one, str)]
            if not _asks(container) or any(_SHELL.fullmatch(one.strip()) for _, _, one in words):
                continue
            known = {entry.text("name") for entry in container.children("env")}
            for field, index, one in words:
                if found := _VALUE.fullmatch(one):
                    yield (*container.path, field, index), one, found[1], found[1] in known


def _asks(container: Fields) -> bool:
    resources = container.child("resources")
    amounts = [resources.raw(field) for field in ("limits", "requests")]
    return bool(resources.raw("claims")) or any(
        "/" in str(key) for one in amounts if isinstance(one, dict) for key in one
    )
