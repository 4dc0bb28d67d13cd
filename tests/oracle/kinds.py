"""The kinds of cases: how they are drawn, asked and compared, and how many of each a run owes."""

from __future__ import annotations

from tests.e2e.harness.binary import control_plane
from tests.oracle.cases.allocation_cases import allocation_case, list_case, pool_case
from tests.oracle.cases.claim_cases import claim_case
from tests.oracle.cases.cost_cases import cost_case
from tests.oracle.cases.placement_cases import placement_case
from tests.oracle.cases.selector_cases import selector_case
from tests.oracle.cases.text_cases import text_case
from tests.oracle.comparing import allocations, placements, selections
from tests.oracle.comparing.chance import MAP_ORDER, POOL_SIZE, asks_a_contested_class, beyond_libraries, needs_a_search
from tests.oracle.comparing.comparison import Kind
from tests.oracle.upstream import Release, Upstream


def _library(release: Release) -> Upstream:
    return Upstream(release.program)


def _scheduler(_: Release) -> Upstream:
    """The scheduler is in the control plane's program, which builds with them once, in one version."""
    return Upstream(control_plane(), "placements")


_ALLOCATION = (allocations.question, allocations.simulated, allocations.differences, _library)
_SELECTOR = (selections.question, selections.simulated, selections.differences, _library)
_PLACEMENT = (placements.question, placements.simulated, placements.differences, _scheduler)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("allocation", allocation_case, *_ALLOCATION, ("1.36", "1.37")),
        Kind("pool", pool_case, *_ALLOCATION, ("1.34",), undecided=0.005, undecidable=needs_a_search),
        Kind("list", list_case, *_ALLOCATION, ("1.37",)),
        Kind("selector", selector_case, *_SELECTOR, ("1.34", "1.36", "1.37"), (MAP_ORDER,), by_chance=0.03),
        Kind(
            "text",
            text_case,
            *_SELECTOR,
            ("1.36", "1.37"),
            (MAP_ORDER,),
            by_chance=0.01,
            undecided=0.1,
            undecidable=beyond_libraries,
        ),
        Kind("cost", cost_case, *_SELECTOR, ("1.36", "1.37"), seconds=60.0, cases=0.01, least=5, unanswered=0.1),
        Kind("placement", placement_case, *_PLACEMENT, ("1.36",)),
        Kind(
            "claim",
            claim_case,
            *_PLACEMENT,
            ("1.36",),
            (POOL_SIZE,),
            by_chance=0.02,
            undecided=0.03,
            undecidable=asks_a_contested_class,
        ),
    )
}
