"""Only our finalizer comes and goes."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.cluster.api import set_finalizer
from autoscaler.cluster.resources import PROVISIONED_NODES
from tests.desk import Desk, new_desk, planned

OURS, THEIRS = "foreslice.dev/machine", "example.com/audit"


def held_by(desk: Desk, *finalizers: str) -> None:
    desk.record(planned("n1"))
    desk.api.patch(PROVISIONED_NODES, "n1", {"metadata": {"finalizers": list(finalizers)}})


def finalizers(found: dict[str, Any]) -> list[str]:
    return list(found["metadata"].get("finalizers") or ())


@pytest.mark.parametrize(
    ("before", "held", "after"),
    [
        pytest.param((OURS, THEIRS), False, [THEIRS], id="taken off"),
        pytest.param((THEIRS,), True, [THEIRS, OURS], id="put on"),
        pytest.param((THEIRS,), False, [THEIRS], id="not there"),
        pytest.param((OURS,), False, [], id="the last one"),
    ],
)
def test_finalizers_of_others_stay(before: tuple[str, ...], held: bool, after: list[str]) -> None:
    desk = new_desk()
    held_by(desk, *before)
    found = set_finalizer(desk.api, PROVISIONED_NODES, "n1", OURS, held=held)
    assert finalizers(found) == after
    assert finalizers(desk.api.get(PROVISIONED_NODES, "n1")) == after
