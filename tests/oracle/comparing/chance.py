"""Why upstream may answer one question in several ways, and what the simulator may leave undecided.

Whatever is not named here is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.oracle.cases.selector_cases import text
from tests.oracle.comparing.difference import Field
from tests.oracle.upstream import Json, Release

_PATTERN = re.compile(r"\b(matches|find|findAll)\(")
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_LOOP = re.compile(r"\.(all|exists|exists_one|existsOne)\(")


@dataclass(frozen=True)
class Chance:
    """A reason, the parts of an answer that it may change, and whether a case has what it takes.

    `whole`: one of upstream's answers must be the simulator's in every part; else each part is drawn on its own.
    """

    name: str
    why: str
    fields: frozenset[Field]
    possible: Callable[[Json, Release], bool]
    whole: bool = True


def _loops(case: Json, _: Release) -> bool:
    return _LOOP.search(text(case["tree"])) is not None


def _pool_sizes(case: Json, _: Release) -> bool:
    counts: dict[tuple[str, str, int], set[int]] = {}
    for spec in (slice_["spec"] for slice_ in case["slices"]):
        pool = spec["pool"]
        key = spec["driver"], pool["name"], pool.get("generation", 0)
        counts.setdefault(key, set()).add(pool.get("resourceSliceCount", 0))
    return any(len(found) > 1 for found in counts.values())


def beyond_libraries(case: Json) -> bool:
    """Whether a selector has what Python does not have as Go has it: regular expressions, and text that is no UTF-8."""
    expression = text(case["tree"])
    return _PATTERN.search(expression) is not None or ("url(" in expression and "%" in expression)


def needs_a_search(_: Json) -> bool:
    """An allocation of 1.34, which tries permutations: a million steps do not always suffice."""
    return True


def asks_a_contested_class(case: Json) -> bool:
    """A pod asks by its implicit name for a class whose explicit name another class has as well."""
    explicit = [(entry["metadata"]["name"], entry["spec"].get("extendedResourceName")) for entry in case["classes"]]
    names = [name for _, name in explicit if name]
    containers = (case["pod"]["spec"].get(kind, ()) for kind in ("containers", "initContainers"))
    asked = {name for found in containers for entry in found for name in _limits(entry)}
    return any(f"{_IMPLICIT}{name}" in asked and names.count(resource) > 1 for name, resource in explicit)


def _limits(container: Json) -> Iterator[str]:
    resources = container.get("resources", {})
    yield from (*resources.get("limits", ()), *resources.get("requests", ()))


MAP_ORDER = Chance(
    "order of a map",
    "a loop that stops early in a map costs what it did until then, and Go draws the order of a map each time",
    frozenset({Field.COST}),
    _loops,
    whole=False,
)
POOL_SIZE = Chance(
    "size of a pool",
    "slices of one pool that declare different resourceSliceCounts: the first one counts (GatherPools), and "
    "kube-scheduler's informer lists slices in the order of a Go map",
    frozenset({Field.REFUSAL, Field.SCORE, Field.ALLOCATION}),
    _pool_sizes,
)
