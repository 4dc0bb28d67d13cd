"""When the loop looks again although nothing is reported."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.lifecycle.quarantine import WATCH_SKEW
from autoscaler.loop.wake import next_wake
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from autoscaler.settings.settings import DEFAULTS
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.builders import NOW, ours, pod, snapshot

LATER = NOW + timedelta(minutes=5)
ASKED = ours("n", phase=Phase.LAUNCHING, phase_since=NOW)
READY = ours("n", phase=Phase.READY, phase_since=NOW, pods=("default/a",))


@pytest.mark.parametrize(
    ("state", "wait"),
    [
        pytest.param(snapshot([]), None, id="nothing"),
        pytest.param(snapshot([pod("a", no_node_before=LATER)]), timedelta(minutes=5), id="a-pod-asked-to-wait"),
        pytest.param(snapshot([pod("a", no_node_before=NOW)]), None, id="it-has-waited"),
        pytest.param(snapshot([pod("a", no_node_before=LATER, node_name="n")]), None, id="it-is-bound"),
        pytest.param(snapshot([], provisioned=(READY,)), WATCH_SKEW, id="a-binding-is-awaited"),
        pytest.param(snapshot([pod("a", node_name="n")], provisioned=(READY,)), None, id="all-are-bound"),
        pytest.param(snapshot([pod("a", node_name="m")], provisioned=(READY,)), WATCH_SKEW, id="bound-elsewhere"),
        pytest.param(
            snapshot([], provisioned=(replace(READY, phase=Phase.LAUNCHED),)),
            DEFAULTS.loop.resync,
            id="there-is-no-node-to-bind-to",
        ),
        pytest.param(snapshot([], provisioned=(replace(READY, pods=()),)), None, id="bought-for-nobody"),
        pytest.param(
            snapshot([], provisioned=(replace(READY, phase_since=NOW - WATCH_SKEW),)), None, id="there-for-long"
        ),
        pytest.param(snapshot([], provisioned=(ASKED,)), DEFAULTS.loop.retry, id="a-machine-is-awaited"),
        pytest.param(
            snapshot([], provisioned=(ASKED,), waiting=FrozenMap({"n": NOW})),
            DEFAULTS.loop.resync,
            id="it-waits-for-weeks",
        ),
    ],
)
def test_the_next_moment_at_which_something_falls_due(state: Snapshot, wait: timedelta | None) -> None:
    assert next_wake(state, DEFAULTS.loop, NOW) == (None if wait is None else NOW + wait)
