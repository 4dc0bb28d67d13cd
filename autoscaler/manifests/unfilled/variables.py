"""Problems of fields that a template or an example left for users or tools to fill in: one a file says it for all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from autoscaler.kube.problem import PLACEHOLDER, UNREPLACED
from autoscaler.manifests.document import Document, Json
from autoscaler.manifests.unfilled.places import (
    OF_PROGRAMS,
    VARIABLE,
    Find,
    names_like,
    placeholders_like,
    places,
    variables,
)
from autoscaler.manifests.unfilled.templates import (
    BRACES,
    LIKE_A_VARIABLE,
    LOOKS_LIKE,
    filling_expressions,
    rendering,
    substituting,
    writing_names,
)
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic, Severity

_SHOWN: Final = 8
_CLOSED: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}")  # a message may cut off a name without braces
_VALUE: Final = re.compile(r"^[\s-]*(?:[\w./-]+:(?=\s))?")  # what stands before it on a line
_IMAGE: Final = ("image",)  # a warning about images names all of the file
_EXPRESSION: Final = re.compile(r"\(\$([A-Za-z_]\w*)\)")  # as a whole value: of Chainsaw
_QUOTED: Final = re.compile(r"'[^']+'")
_NAME: Final = re.compile(r"__[A-Z]+(?:_[A-Z]+)*__|(?<!\w)[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)+(?!\w)")


@dataclass(frozen=True, slots=True)
class _Group:
    """What problems have in common that one message stands for: what to fill in, and the file ("" for several)."""

    kind: str
    file: str


def grouped(problems: Sequence[Diagnostic], documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """The problems in their order, with one for all fields of a file that wait for the same tool: the first error of
    these, or else the first warning. `documents` are those that a plan is made of. What else is wrong with a field that
    waits is left out: it will have another value."""
    found: dict[_Group, list[Diagnostic]] = {}
    met = set[tuple[object, ...]]()
    for problem in problems:
        place = (problem.file, problem.line, problem.path or problem)
        if place not in met and (group := _group(problem)):
            met.add(place)
            found.setdefault(group, []).append(problem)
    files = {group.file for group in found}
    given = [one for one in documents if one.file in files]
    names = _names(given)
    leading = {_leading(members): (group, members) for group, members in found.items()}
    for problem in problems:
        if problem in leading:
            group, of_group = leading[problem]
            yield _for_all(problem, group, of_group, names.get(group.file, ()), given)
        elif (problem.file, problem.line, problem.path or problem) not in met:
            yield problem


def _leading(members: Sequence[Diagnostic]) -> Diagnostic:
    return next((one for one in members if one.severity is Severity.ERROR), members[0])


def _group(problem: Diagnostic) -> _Group | None:
    """The group of a problem about something left to fill in; None for all other problems."""
    step, said = problem.next_step, problem.message
    if step.startswith(LOOKS_LIKE):
        return _to_render(step, problem.file)
    if UNREPLACED not in step:
        kind = "variable" if step.startswith(LIKE_A_VARIABLE) else "placeholder" if PLACEHOLDER in step else ""
        return _Group(kind, problem.file) if kind else None
    if "{{" in said or "{%" in said:
        return _to_render(rendering(said, problem.file) or BRACES, problem.file)
    return _Group("variable" if "$" in said else "name", problem.file)


def _to_render(step: str, file: str) -> _Group:
    """All templates of a chart are rendered at once."""
    return _Group(step, "" if "helm template" in step and " CHART " not in step else file)


def _for_all(
    lead: Diagnostic,
    group: _Group,
    members: Sequence[Diagnostic],
    names: Sequence[str],
    documents: Sequence[Document],
) -> Diagnostic:
    """The problem that stands for all of its group."""
    step = lead.next_step
    if group.kind.startswith(LOOKS_LIKE):
        step = group.kind
    elif group.kind == "variable":
        known = _known(members, names)
        step = _filling(known, group.file, documents) if known else step
        step += f"; {PLACEHOLDER}" if any(PLACEHOLDER in one.next_step for one in members) else ""
    others = [one for one in members if one is not lead]
    in_file = [one for one in documents if one.file == group.file]
    warns = lead.severity is not Severity.ERROR
    alone = group.kind.startswith(LOOKS_LIKE) or (warns and (group.kind != "placeholder" or lead.path[-1:] == _IMAGE))
    told = _told(members, group, in_file)
    if group.kind == "name":
        texts = [*(text for one in members for text in _QUOTED.findall(one.message)), *(text for _, text in told)]
        written = list(dict.fromkeys(name for text in texts for name in _NAME.findall(text)))
        step = writing_names(written, group.file) if written else step
    lines = {one.line for one in members}
    further = [] if alone else [(line, text) for line, text in told if line not in lines]
    more = f"; {_others(others, lead, group, further, dict(told))}" if others or further else ""
    return replace(lead, message=lead.message + more, next_step=step)


def _filling(names: Sequence[str], file: str, documents: Sequence[Document]) -> str:
    """The command that fills these variables of the file in."""
    values = [value for one in documents if one.file == file for value in texts_of(one.value) if "$" in value]
    found = [_EXPRESSION.fullmatch(value) for value in values if not set(_plain(value)).isdisjoint(names)]
    return (filling_expressions if found and all(found) else substituting)(names, file)


def _told(members: Sequence[Diagnostic], group: _Group, documents: Sequence[Document]) -> list[tuple[int, str]]:
    """Line and text of everything to fill in, also where no problem is: what programs read, and equal images of other
    pods."""
    known = [text[1:-1] for one in members for text in _QUOTED.findall(one.message)]
    if group.kind == "placeholder":
        find: Find = placeholders_like(known)
    elif group.kind == "name":
        find = names_like(known)
    else:
        find = variables(list(dict.fromkeys(name for one in documents for name in variables_of(one.value))))
    return places(documents, find)


def _known(members: Sequence[Diagnostic], names: Sequence[str]) -> list[str]:
    """The variables of the documents, of the values that are wrong, and of a text that is no YAML; without any of
    these, those of the messages."""
    wrong = [text for one in members for text in _QUOTED.findall(one.message) if "..." not in text]
    steps = [one.next_step for one in members if one.next_step.startswith(LIKE_A_VARIABLE)]
    found = [*names, *(name for text in (*wrong, *steps) for name in _plain(text))]
    return list(dict.fromkeys(found or [name for one in members for name in _CLOSED.findall(one.message)]))


def _others(
    others: Sequence[Diagnostic],
    lead: Diagnostic,
    group: _Group,
    further: Sequence[tuple[int, str]],
    texts: Mapping[int, str],
) -> str:
    """The other places: their lines, and their values where these have to be written one by one."""
    count = len(others) + len(further)
    has = "place has" if count == 1 else "places have"
    files = {one.file for one in others}
    if files - {lead.file}:
        return f"{len(others)} more {has} to be filled in, in {len(files)} file{'s' * (len(files) != 1)}"
    values = group.kind in ("placeholder", "name")
    by_line = [(one.line, _place(one, texts) if values else str(one.line)) for one in others]
    by_line += [(line, f"'{text}' in line {line}" if values else str(line)) for line, text in further]
    shown = list(dict.fromkeys(text for _, text in sorted(by_line, key=lambda place: place[0])))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    lines = "" if values else "line " if len(shown) == 1 else "lines "
    return f"{count} more {has} to be filled in: {lines}{', '.join(shown[:_SHOWN])}{more}"


def _place(one: Diagnostic, texts: Mapping[int, str]) -> str:
    quoted = _QUOTED.search(one.message)
    value = quoted[0] if quoted else f"'{texts[one.line]}'" if one.line in texts else ""
    return f"{value} in line {one.line}" if value else f"line {one.line}"


def _names(documents: Iterable[Document]) -> dict[str, list[str]]:
    """The variables by file, in the order of its fields."""
    found: dict[str, dict[str, None]] = {}
    for one in documents:
        found.setdefault(one.file, {}).update(dict.fromkeys(variables_of(one.value)))
    return {file: list(names) for file, names in found.items()}


def _plain(step: str) -> list[str]:
    return [found[1] or found[2] for found in VARIABLE.finditer(step)]


def variables_of_text(text: str) -> Iterator[str]:
    """The same of lines that cannot be read as YAML."""
    for line in text.splitlines():
        yield from variables_of(_VALUE.sub("", line).strip().strip("\"'"))


def variables_of(value: Json) -> Iterator[str]:
    """Names of variables, $NAME or ${NAME}, in texts without blanks that a plan reads, keys included."""
    for text in texts_of(value):
        yield from _plain(text)


def texts_of(value: Json) -> Iterator[str]:
    """Texts without blanks that a plan reads, keys included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from texts_of(key)
            if key not in OF_PROGRAMS:
                yield from texts_of(part)
    elif isinstance(value, list):
        for one in value:
            yield from texts_of(one)
    elif isinstance(value, str) and not re.search(r"\s", value):
        yield value
