"""After a clock was set back, nothing that was written down waits until it has caught up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.lifecycle import quarantine
from autoscaler.lifecycle.moments import without_future
from autoscaler.model.provisioned_node import Phase, PhaseChange
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from instance_catalog.dataclass import replace
from providers.errors import AmbiguousError, ShortageError, backoff_of
from tests.builders import NOW, ours

HOUR = timedelta(hours=1)
LATE = NOW + 3 * HOUR
PAST = ours(
    "n",
    phase=Phase.READY,
    phase_since=NOW - HOUR,
    empty_since=NOW - HOUR,
    unhealthy_since=NOW,
    history=(PhaseChange(Phase.READY, NOW - HOUR, "NodeReady"),),
)


def test_while_the_clock_only_goes_forward_nothing_changes() -> None:
    snapshot = Snapshot(
        provisioned=(PAST,),
        backoffs=(Backoff(NOW + timedelta(minutes=3), reason=ShortageError.kind),),
        quarantines=(Quarantine("p", "t", (), times=2, until=NOW + quarantine.lasts(2)),),
    )
    assert without_future(snapshot, NOW, backoff_of) == snapshot


@pytest.mark.parametrize("name", ["phase_since", "empty_since", "unhealthy_since"])
def test_a_moment_of_the_future_is_now(name: str) -> None:
    (node,) = without_future(Snapshot(provisioned=(replace(PAST, **{name: LATE}),)), NOW, backoff_of).provisioned
    assert node == replace(PAST, **{name: NOW})


def test_so_is_one_in_the_history() -> None:
    ahead = replace(
        PAST, history=(PhaseChange(Phase.LAUNCHED, NOW - HOUR, "Obtained"), PhaseChange(Phase.READY, LATE, "NodeReady"))
    )
    (node,) = without_future(Snapshot(provisioned=(ahead,)), NOW, backoff_of).provisioned
    assert [at for _, at, _ in node.history] == [NOW - HOUR, NOW]


@pytest.mark.parametrize(
    ("lasts", "over"),
    [
        pytest.param(backoff_of(AmbiguousError.kind, 1), False, id="as long as its kind"),
        pytest.param(HOUR, False, id="as long as a provider may ask for"),
        pytest.param(HOUR + timedelta(seconds=1), True, id="longer than any"),
    ],
)
def test_a_back_off_that_is_longer_than_any_is_over(lasts: timedelta, over: bool) -> None:
    known = Backoff(NOW + lasts, reason=AmbiguousError.kind, failures=1)
    (found,) = without_future(Snapshot(backoffs=(known,)), NOW, backoff_of).backoffs
    assert found.until == (NOW if over else known.until)


@pytest.mark.parametrize("times", [1, 3])
def test_a_quarantine_that_is_longer_than_any_is_over(times: int) -> None:
    longest = Quarantine("p", "t", (), times=times, until=NOW + quarantine.lasts(times))
    longer = replace(longest, instance_type="u", until=NOW + quarantine.lasts(times) + timedelta(seconds=1))
    forever = replace(longest, instance_type="v", until=None)
    found = without_future(Snapshot(quarantines=(longest, longer, forever)), NOW, backoff_of).quarantines
    assert [entry.until for entry in found] == [longest.until, NOW, None]
