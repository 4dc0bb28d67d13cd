"""Makes a differing case small: drop and simplify parts for as long as the difference stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, TypeAlias

from tests.oracle.cases.selector_cases import Tree
from tests.oracle.upstream import Json

Path: TypeAlias = tuple["str | int", ...]
# The API server fills these in, as the simulator's readers do; the library takes them as they stand.
_KEPT = frozenset({"allocationMode", "count", "namespace", "operator"})
_MOST_TRIES = 3000


def smallest(case: Json, differs: Callable[[Json], bool]) -> Json:
    """A case from which nothing more can be dropped. `differs` says whether a case still shows the difference."""
    tries, progress = 0, True
    while progress and tries < _MOST_TRIES:
        progress = False
        for simpler in _simpler(case):
            tries += 1
            if differs(simpler):
                case, progress = simpler, True
                break
            if tries >= _MOST_TRIES:
                break
    return case


def _simpler(case: Json) -> Iterator[Json]:
    """Cases with one part less, large parts first."""
    if "tree" in case:
        yield from ({**case, "tree": tree} for tree in _smaller_trees(case["tree"]))
    for path in sorted(_paths(case, ()), key=len):
        yield _without(case, path)


def _smaller_trees(tree: Tree) -> Iterator[Tree]:
    """One of the branches in place of the tree; else the tree with a smaller branch."""
    branches = [(index, branch) for index, branch in enumerate(tree) if isinstance(branch, list)]
    yield from (branch for _, branch in branches)
    for index, branch in branches:
        yield from ([*tree[:index], smaller, *tree[index + 1 :]] for smaller in _smaller_trees(branch))


def _paths(value: Any, path: Path) -> Iterator[Path]:
    """Where everything is that can be left out: not the fields of the case itself, and not the expression."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, inner in entries:
        if path and key not in _KEPT:
            yield (*path, key)
        if (*path, key) != ("tree",):
            yield from _paths(inner, (*path, key))


def _without(case: Json, path: Path) -> Json:
    copied = deepcopy(case)
    inner: Any = copied
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return copied
