"""Every key of labels.py has a reader, and the controller keeps every pod annotation that is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from instance_catalog.kubernetes import labels

ROOT = Path(__file__).parent.parent.parent
TABLE = ROOT / "instance_catalog/kubernetes/labels.py"
NAMES = {name: value for name, value in vars(labels).items() if name.isupper()}


def sources(*packages: str) -> dict[Path, str]:
    return {
        path: path.read_text(encoding="utf-8")
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if path != TABLE
    }


def test_every_constant_has_a_reader() -> None:
    table = TABLE.read_text(encoding="utf-8")
    words = {word for text in sources("autoscaler", "instance_catalog", "providers").values() for word in _words(text)}
    # A set of keys that is read counts for its members.
    read = [value for name, value in NAMES.items() if name in words and isinstance(value, frozenset)]
    grouped = frozenset[str]().union(*read)
    unread = [name for name in NAMES if name not in words and NAMES[name] not in grouped]
    assert len(NAMES) > 60
    assert [name for name in unread if f"\n{name}: Final" in table] == []


def test_the_controller_keeps_exactly_the_pod_annotations_that_are_read() -> None:
    """A key that is missing in POD_ANNOTATIONS would read as unset in the controller, and right in `plan -f`."""
    # Parsing the others takes forty times as long as all else here.
    texts = [
        text for path, text in sources("autoscaler").items() if "kube" not in path.parts and "pod.annotations" in text
    ]
    read = {key for text in texts for key in _pod_annotations(ast.parse(text))}
    assert read == labels.POD_ANNOTATIONS


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Z][A-Z_]+", text))


def _pod_annotations(tree: ast.Module) -> Iterator[str]:
    """The keys of every `pod.annotations.get(KEY)`, `pod.annotations[KEY]` and `KEY in pod.annotations`.

    A key that a loop draws from a constant of the module stands for all keys of that constant.
    """
    constants = dict(_constants(tree))
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        drawn = {
            loop.target.id: constants[loop.iter.id]
            for loop in ast.walk(function)
            if isinstance(loop, ast.comprehension)
            and isinstance(loop.target, ast.Name)
            and isinstance(loop.iter, ast.Name)
            and loop.iter.id in constants
        }
        for node in ast.walk(function):
            key = _key_of(node)
            if key is not None:
                yield from _values(drawn.get(key.id, key) if isinstance(key, ast.Name) else key)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _key_of(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *_]) if _of_pod(of):
            return key
        case ast.Subscript(value=of, slice=key) if _of_pod(of):
            return key
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[of]) if _of_pod(of):
            return key
    return None


def _of_pod(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="pod"), attr="annotations"):
            return True
    return False


def _values(node: ast.expr) -> Iterator[str]:
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]
    names = [part.id if isinstance(part, ast.Name) else part.attr for part in parts]
    found = [NAMES[name] for name in names if name in NAMES]
    assert found, f"a pod annotation without a constant of labels.py: {ast.unparse(node)}"
    yield from found
