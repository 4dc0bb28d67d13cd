"""The lists of machine types and accelerators: where each of them can be had at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.cloud import compute_v1

from tests.fakes.gce.errors import ApiError

if TYPE_CHECKING:
    from tests.fakes.gce.fake import FakeGce, Request


def methods(fake: FakeGce) -> Sequence[tuple[str, str, str, Callable[[Request], Any]]]:
    """The calls, with the ends of their paths below a project."""

    def types(request: Request) -> Any:
        rows, after = fake.page(request, _named(request, _all(fake, lambda group: group.machine_type)))
        scopes: dict[str, Any] = {"regions/us-central1": compute_v1.MachineTypesScopedList(warning=_EMPTY)}
        for name, zone in rows:
            scope = scopes.setdefault(f"zones/{zone}", compute_v1.MachineTypesScopedList())
            scope.machine_types.append(compute_v1.MachineType(name=name, zone=zone))
        return compute_v1.MachineTypeAggregatedList(items=scopes, next_page_token=after)

    def accelerators(request: Request) -> Any:
        rows, after = fake.page(request, _named(request, _all(fake, lambda group: group.accelerator)))
        scopes: dict[str, Any] = {"regions/us-central1": compute_v1.AcceleratorTypesScopedList(warning=_EMPTY)}
        for name, zone in rows:
            scope = scopes.setdefault(f"zones/{zone}", compute_v1.AcceleratorTypesScopedList())
            scope.accelerator_types.append(compute_v1.AcceleratorType(name=name, zone=zone))
        return compute_v1.AcceleratorTypeAggregatedList(items=scopes, next_page_token=after)

    return (
        ("GET", "machineTypes.aggregatedList", "aggregated/machineTypes", types),
        ("GET", "acceleratorTypes.aggregatedList", "aggregated/acceleratorTypes", accelerators),
    )


_EMPTY = compute_v1.Warning(code="NO_RESULTS_ON_PAGE")


def _all(fake: FakeGce, of: Callable[[Any], str]) -> Iterable[tuple[str, str]]:
    """Names and zones: what groups are made of is had in their zones, unless `sold` says otherwise."""
    sold: Mapping[str, Iterable[str]] = fake.sold
    found = {(of(group), group.zone) for group in fake.project.groups.values()}
    return sorted(
        {(name, zone) for name, zone in found if name not in sold}
        | {(name, zone) for name, _ in found for zone in sold.get(name, ())}
    )


def _named(request: Request, rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    wanted = re.fullmatch(r'name eq "(.*)"', request.query.get("filter", ""))
    if wanted is None:
        raise ApiError(400, "invalid", "Invalid value for field 'filter'")
    return [row for row in rows if re.fullmatch(wanted[1], row[0])]
