"""The variables that a file has where envsubst or a template's own tool would replace them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from autoscaler.kube.problem import UNREPLACED
from autoscaler.manifests.document import Document, Json
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic

_SHOWN: Final = 8
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_VALUE: Final = re.compile(r"^[\s-]*(?:[\w./-]+:(?=\s))?")  # what stands before it on a line
# Fields whose text a shell or a program reads, with variables of its own.
_OF_PROGRAMS: Final = frozenset({"command", "args", "data", "stringData", "script", "annotations"})


def with_variables(problems: Sequence[Diagnostic], documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """The problems in their order; the first in each file that is about a variable names all variables of the file, so
    that they can be exported at once."""
    wanted = {problem.file for problem in problems if UNREPLACED in problem.next_step}
    by_file: dict[str, dict[str, None]] = {}
    for document in documents:
        if document.file in wanted:
            by_file.setdefault(document.file, {}).update(dict.fromkeys(variables_of(document.value)))
    for problem in problems:
        about = UNREPLACED in problem.next_step
        told = naming(by_file.pop(problem.file, ())) if about else ""
        yield replace(problem, next_step=problem.next_step + told) if told else problem


def naming(names: Iterable[str]) -> str:
    """An addition to a next step with the names of several variables; "" for one, which the problem shows."""
    several = list(dict.fromkeys(names))
    more = f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
    return f"; variables of the file: {', '.join(several[:_SHOWN])}{more}" if len(several) > 1 else ""


def variables_of_text(text: str) -> Iterator[str]:
    """The same of lines that cannot be read as YAML."""
    for line in text.splitlines():
        yield from variables_of(_VALUE.sub("", line).strip().strip("\"'"))


def variables_of(value: Json) -> Iterator[str]:
    """Names of variables, $NAME or ${NAME}, in texts without blanks that no shell or program reads, keys included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from variables_of(key)
            if key not in _OF_PROGRAMS:
                yield from variables_of(part)
    elif isinstance(value, list):
        for one in value:
            yield from variables_of(one)
    elif isinstance(value, str) and not re.search(r"\s", value):
        yield from (found[1] or found[2] for found in _VARIABLE.finditer(value))
