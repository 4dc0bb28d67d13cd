"""What is counted over many rounds, and what disappears with the last."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.catalog_refresh.periodic import SyncOutcome
from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.cluster.api import NotFoundError, Page
from autoscaler.cluster.intercepted import InterceptedApi
from autoscaler.cluster.resources import CAPACITY_POOLS, PODS
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import Phase, PhaseChange
from autoscaler.model.snapshot import Quarantine, Snapshot
from autoscaler.report.metrics.table import METRICS, Kind
from autoscaler.serve.recorder import Recorder
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.types.instance_type import CapacityType
from tests.builders import ours


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def recorder(clock: VirtualClock) -> Recorder:
    return Recorder(clock, version="1")


def value(recorder: Recorder, name: str, **labels: str) -> float | None:
    return recorder.registry.get_sample_value(name, labels)


def test_every_metric_of_the_table_is_registered(recorder: Recorder) -> None:
    registered = {family.name: family for family in recorder.registry.collect()}
    for metric in METRICS:
        family = registered[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind.value, metric.help)
    assert len(registered) == len(METRICS)


def test_series_of_what_is_gone_are_gone(recorder: Recorder) -> None:
    recorder.ticked(Snapshot(pools=(CapacityPool("gpu"),)), Plan(), EPOCH)
    assert value(recorder, "foreslice_proposed_nodes", pool="gpu") == 0
    recorder.ticked(Snapshot(), Plan(), EPOCH)
    assert value(recorder, "foreslice_proposed_nodes", pool="gpu") is None


def test_what_alerts_watch_for_is_counted_from_zero(recorder: Recorder) -> None:
    """Of a series that begins with 1, increase() never sees the 1."""
    recorder.ticked(Snapshot(pools=(CapacityPool("gpu", capacity_types=(CapacityType.SPOT,)),)), Plan(), EPOCH)
    assert value(recorder, "foreslice_mispredictions_total", pool="gpu") == 0
    failed = {"pool": "gpu", "capacity_type": "spot", "outcome": "Failed"}
    for why in ("NoOfferingLeft", "BootTimedOut", "DriverNeverPublished", "NeverReady"):
        assert value(recorder, "foreslice_launches_total", reason=why, **failed) == 0


def test_counters_grow(recorder: Recorder) -> None:
    wrong = Snapshot(quarantines=(Quarantine("gpu", "p5", (), mispredictions=("a on i",)),))
    recorder.ticked(Snapshot(), Plan(), EPOCH, [("LaunchBatch", "Throttled")])
    recorder.ticked(wrong, Plan(), EPOCH, [("LaunchBatch", "Throttled")])
    recorder.ticked(Snapshot(), Plan(), EPOCH)
    recorder.ticked(wrong, Plan(), EPOCH)
    recorder.cut_short()
    assert value(recorder, "foreslice_mispredictions_total", pool="gpu") == 2
    assert value(recorder, "foreslice_troubles_total", kind="LaunchBatch", reason="Throttled") == 2
    assert value(recorder, "foreslice_reconciles_total", outcome="ok") == 4
    assert value(recorder, "foreslice_reconciles_total", outcome="failed") == 1


def test_what_a_restart_finds_is_not_counted_again(recorder: Recorder) -> None:
    recorder.ticked(Snapshot(quarantines=(Quarantine("gpu", "p5", (), mispredictions=("a on i",)),)), Plan(), EPOCH)
    assert value(recorder, "foreslice_mispredictions_total", pool="gpu") is None


def test_durations_are_measured(clock: VirtualClock, recorder: Recorder) -> None:
    with recorder.timing_tick(), recorder.timing_stage("plan"):
        clock.advance(timedelta(seconds=3))
    with pytest.raises(ValueError, match="broken"), recorder.timing_stage("plan"):
        raise ValueError("broken")
    assert value(recorder, "foreslice_reconcile_duration_seconds_sum") == 3
    assert value(recorder, "foreslice_stage_duration_seconds_count", stage="plan") == 2
    assert value(recorder, "foreslice_stage_duration_seconds_bucket", stage="plan", le="5.0") == 2
    assert value(recorder, "foreslice_stage_duration_seconds_bucket", stage="plan", le="2.5") == 1


def test_boots_are_observed_once(recorder: Recorder) -> None:
    launched = PhaseChange(Phase.LAUNCHED, EPOCH, "Obtained")
    ready = PhaseChange(Phase.READY, EPOCH + timedelta(minutes=4), "NodeReady")
    coming = Snapshot(provisioned=(ours("n", history=(launched,)),))
    there = Snapshot(provisioned=(ours("n", history=(launched, ready)),))
    for seen in (coming, there, there):
        recorder.ticked(seen, Plan(), EPOCH)
    kind = {"instance_type": "s4", "drivers": "nvidia"}
    assert value(recorder, "foreslice_node_boot_duration_seconds_count", **kind) == 1
    assert value(recorder, "foreslice_node_boot_duration_seconds_sum", **kind) == 240


def test_boots_of_before_the_start_are_not_observed(recorder: Recorder) -> None:
    history = (PhaseChange(Phase.LAUNCHED, EPOCH, "Obtained"), PhaseChange(Phase.READY, EPOCH, "NodeReady"))
    recorder.ticked(Snapshot(provisioned=(ours("n", history=history),)), Plan(), EPOCH)
    kind = {"instance_type": "s4", "drivers": "nvidia"}
    assert value(recorder, "foreslice_node_boot_duration_seconds_count", **kind) is None


def test_requests_are_counted_by_outcome(clock: VirtualClock, recorder: Recorder) -> None:
    api = InterceptedApi(ApiServer(clock), recorder.counting)
    assert isinstance(api.list(PODS), Page)
    api.list(PODS)
    with pytest.raises(NotFoundError):
        api.get(CAPACITY_POOLS, "none")
    list(api.watch(PODS, resource_version="0"))
    requests = "foreslice_api_requests_total"
    assert value(recorder, requests, verb="list", resource="pods", outcome="ok") == 2
    assert value(recorder, requests, verb="get", resource="capacitypools.foreslice.dev", outcome="NotFound") == 1
    assert value(recorder, requests, verb="watch", resource="pods", outcome="ok") is None


def test_leader_and_age_are_of_the_moment_of_asking(clock: VirtualClock) -> None:
    answers = [False, True]
    recorder = Recorder(clock, version="1", leads=lambda: answers.pop(0))
    assert value(recorder, "foreslice_leader") == 0
    assert value(recorder, "foreslice_leader") == 1
    answers += [True, True]
    clock.advance(timedelta(seconds=90))
    assert value(recorder, "foreslice_catalog_age_seconds") == 90
    recorder.catalog_read()
    assert value(recorder, "foreslice_catalog_age_seconds") == 0


def test_what_came_of_a_clouds_listing_is_counted(recorder: Recorder) -> None:
    where = {"cloud": "aws", "scope": "us-east-1"}
    recorder.catalog_synced(SyncOutcome(**where, outcome="changed", conflicts=2))
    recorder.catalog_synced(SyncOutcome(**where, outcome="failed"))
    assert value(recorder, "foreslice_catalog_conflicts", **where) == 2
    assert value(recorder, "foreslice_catalog_syncs_total", **where, outcome="failed") == 1


def test_names_that_come_and_go_add_series_up_to_a_bound(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoscaler.serve.recorder._MOST_SERIES", 12)
    for number in range(40):
        recorder.catalog_synced(SyncOutcome("aws", f"scope-{number}", outcome="changed"))
    recorder.catalog_synced(SyncOutcome("aws", "scope-0", outcome="changed"))
    families = {family.name: family for family in recorder.registry.collect()}
    samples = families["foreslice_catalog_syncs"].samples
    assert len(samples) == 11
    assert sum(sample.value for sample in samples) == 41
    assert value(recorder, "foreslice_catalog_syncs_total", cloud="aws", scope="scope-0", outcome="changed") == 2
    assert value(recorder, "foreslice_catalog_syncs_total", cloud="", scope="", outcome="") == 30


def test_two_recorders_share_nothing(clock: VirtualClock, recorder: Recorder) -> None:
    other = Recorder(clock, version="2")
    other.cut_short()
    assert value(recorder, "foreslice_reconciles_total", outcome="failed") == 0


def test_no_label_is_told_without_its_values(recorder: Recorder) -> None:
    recorder.ticked(Snapshot(pools=(CapacityPool("gpu"),)), Plan(), EPOCH)
    kinds = {metric.name.removesuffix("_total"): metric for metric in METRICS if metric.kind is not Kind.HISTOGRAM}
    for family in recorder.registry.collect():
        if family.name in kinds:
            assert all(tuple(sample.labels) == kinds[family.name].labels for sample in family.samples)
