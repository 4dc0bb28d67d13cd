"""YAML text to documents, read as Kubernetes reads it (sigs.k8s.io/yaml: YAML 1.1 scalars, JSON types, text keys).

PyYAML's own rules differ: it knows dates and numbers to the base of 60, and takes 1e3 for text. Line numbers cost
nothing extra: the node tree that is composed anyway is kept until all problems are placed.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, Final

import yaml

from autoscaler.kube.problem import UNREPLACED
from autoscaler.manifests.document import Document, UnreadableError
from autoscaler.manifests.unfilled.templates import rendering, substituting
from autoscaler.manifests.unfilled.variables import variables_of_text
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic, Path, Severity
from instance_catalog.files.yaml_text import child, line_below

_ONE_OF_TWO = "keep one of the two: kubectl applies the last one without a word"
_MOST_TWICE = 20  # fields of a document that are named for being given twice
_DEEPEST = 100  # Kubernetes objects nest about 20 deep; custom resources a little more
_MOST_REPEATED = 100_000  # lists and objects that aliases repeat in one document: stops "billion laughs"
_SAFE_NESTING = 1000
_VARIABLE: Final = re.compile(r"\s*\$(\w+|\{\w+[^{}]*\})\s*")
_FLOW_VARIABLE: Final = re.compile(r"[{\[,][^#'\"]*[:,\[]\s*\$\{\w+[^{}]*\}")  # {cpu: ${CPU}}
# Brackets that begin a value and are followed by more text, which YAML does not allow, and <name>: <name>.
_BRACKETS: Final = re.compile(
    r"(?::|-)\s+(\{\{\s*\w+\s*\}\}|\{\w[\w .-]*\}(?=[^\s,\]}#])|\[\w[\w .-]*\](?=[^\s,\]}#])|<\w[\w .-]*>)"
)
_INDENTATION = re.compile(r"^[ ?-]+", re.MULTILINE)
_TAG = "tag:yaml.org,2002:"
_KEPT = ("null", "bool", "int", "float", "str", "seq", "map")

# Characters of an integer; underscores and leading zeros count.
_LONGEST_NUMBER: Final = 1000


class _Loader(yaml.CSafeLoader):
    """JSON types only, and keys become text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own protocol: replaced, not shared
    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        tag: make
        for tag, make in yaml.CSafeLoader.yaml_constructors.items()
        if tag in (None, *(_TAG + k for k in _KEPT))
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        return {_key(key, node): value for key, value in super().construct_mapping(node, deep=deep).items()}

    def construct_yaml_bool(self, node: yaml.ScalarNode) -> bool:
        return str(node.value).lower() in ("y", "yes", "true", "on")

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        # No Kubernetes field holds such a number. Python reads any hexadecimal one, and cannot show it.
        if len(node.value) > _LONGEST_NUMBER:
            raise yaml.MarkedYAMLError(problem="number too long", problem_mark=node.start_mark)
        return super().construct_yaml_int(node)


_Loader.add_constructor(f"{_TAG}bool", _Loader.construct_yaml_bool)
_Loader.add_constructor(f"{_TAG}int", _Loader.construct_yaml_int)
for _name, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    (
        "bool",
        r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)",
        list("yYnNtTfFoO"),
    ),
    (
        "int",
        r"[-+]?(?:0b[01][01_]*|0[0-7_]*[0-7]|0x[0-9a-fA-F][0-9a-fA-F_]*|0|[1-9][0-9_]*)",
        list("-+0123456789"),
    ),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first)


def read_yaml(text: str, file: str) -> Iterator[Document]:
    """The documents of a YAML stream without empty ones. Raises UnreadableError where the text stops being YAML."""
    try:
        _check_nesting(text)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            twice = tuple(replace(one, file=file) for one in _check(node))
            value = loader.construct_document(node)
            if value is not None:
                yield Document(file, node.start_mark.line + 1, value, _Locator(node), twice)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        place = f" (line {line}, column {mark.column + 1})" if mark else ""
        problem = ": ".join(part for part in (error.context, error.problem) if part)
        raise UnreadableError(
            f"invalid YAML{place}: {problem}", line, error.note or _next_step(text, line, file)
        ) from error
    except yaml.YAMLError as error:
        raise UnreadableError(f"invalid YAML: {error}", 1, "save the file as UTF-8 text") from error


class _Locator:
    """Finds lines in a composed document."""

    __slots__ = ("_root",)

    def __init__(self, root: yaml.Node) -> None:
        self._root = root

    def items(self, name: str) -> list[_Locator]:
        found = child(self._root, name)
        return [_Locator(node) for node in found[1].value] if found is not None else []

    def __call__(self, path: Path) -> int:
        return line_below(self._root, path)


def _key(key: Hashable, node: yaml.MappingNode) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() | float():
            return str(key)
        case _:
            raise yaml.MarkedYAMLError(problem="a field name must be text", problem_mark=node.start_mark)


def _duplicates(node: yaml.MappingNode) -> Iterator[Diagnostic]:
    """A warning for each field that is given again. The last one counts, as it does in kubectl."""
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len(set(names)) == len(names):
        return
    seen: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.value in seen and key.tag != f"{_TAG}merge":
            message = f"field {key.value!r} is given twice; the first, in line {seen[key.value]}, is lost"
            yield Diagnostic(message, _ONE_OF_TWO, severity=Severity.WARNING, line=line)
        seen[key.value] = line


def _check(root: yaml.Node) -> Sequence[Diagnostic]:
    """Refuse documents that aliases blow up, that contain themselves or that nest absurdly deep. Answers with what is
    given twice.

    This happens before anything is constructed, because merge keys (`<<`) rewrite the tree and may override.
    """
    waiting, seen, repeated, twice = [(root, 0)], set[int](), 0, list[Diagnostic]()
    while waiting:
        node, depth = waiting.pop()
        if not isinstance(node, yaml.CollectionNode):
            continue
        known = id(node) in seen
        repeated += known
        seen.add(id(node))
        if depth > _DEEPEST or repeated > _MOST_REPEATED:
            problem = "nested too deeply" if depth > _DEEPEST else "aliases (*name) make this document too large"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if isinstance(node, yaml.MappingNode):
            if not known and len(twice) < _MOST_TWICE:
                twice += _duplicates(node)
            waiting.extend((child, depth + 1) for pair in node.value for child in pair)
        else:
            waiting.extend((child, depth + 1) for child in node.value)
    return sorted(twice[:_MOST_TWICE], key=lambda one: one.line)


def _check_nesting(text: str) -> None:
    """Refuse nesting that would overflow the stack of libyaml's recursive composer, by looking at events first.

    Most texts cannot nest that deep, as their brackets and indentation show.
    """
    deepest = text.count("[") + text.count("{") + max(map(len, _INDENTATION.findall(text)), default=0)
    if deepest < _SAFE_NESTING:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise UnreadableError("nested too deeply", line, "give Kubernetes objects only")


def _next_step(text: str, line: int, file: str) -> str:
    if step := rendering(text, file):
        return step
    # The parser finds out a line later that a bare ${NAME} is no field. One within a text is the shell's.
    near = text.splitlines()[max(0, line - 2) : line]
    if any(_VARIABLE.fullmatch(one) or _FLOW_VARIABLE.search(one) for one in near):
        names = list(dict.fromkeys(variables_of_text(text)))
        return substituting(names, file) if names else UNREPLACED
    for one in near:
        if found := _BRACKETS.search(one):
            return f"{found[1]} looks like a placeholder: write what belongs there, or put the whole value in quotes"
    if "\t" in text:
        return "YAML does not allow tabs for indentation: use spaces"
    return "check the indentation and quoting around this line"
