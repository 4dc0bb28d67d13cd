"""Cluster Autoscaler's services as the settings ask for them."""

from __future__ import annotations

import sys
from typing import Any

import grpc
import pytest

from autoscaler.cli.common.extras import missing_extra
from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import NODES
from autoscaler.composition import external_grpc
from autoscaler.composition.external_grpc import ExternalGrpc, external_grpc_of
from autoscaler.errors import ConfigurationError
from autoscaler.externalgrpc.messages import BEST_OPTIONS, EXPANDER, METHODS, PROVIDER
from autoscaler.externalgrpc.wire import decode, encode
from autoscaler.serve.recorder import Recorder
from autoscaler.settings.settings import GrpcSettings, ServeSettings, Settings
from instance_catalog.kubernetes import labels
from tests.unit.externalgrpc.cluster import Cluster


def made(cluster: Cluster, **serve: Any) -> tuple[ExternalGrpc | None, Recorder]:
    clock = VirtualClock()
    recorder = Recorder(clock, version="test")
    return external_grpc_of(Settings(serve=ServeSettings(**serve)), cluster.simulation.api, recorder, clock), recorder


def test_nothing_listens_unless_it_is_asked_for() -> None:
    found, _ = made(Cluster())
    assert found is None


def test_both_services_listen_from_the_first_reconcile_on() -> None:
    cluster = Cluster()
    found, recorder = made(cluster, external_grpc="127.0.0.1:0", grpc_expander="127.0.0.1:0")
    assert found is not None
    assert [server.port for server in found.servers] == [0, 0]
    cluster.run(seconds=30)
    try:
        found.observed(cluster.ticks[-1])
        found.observed(cluster.ticks[-1])
        provider, expander = (grpc.insecure_channel(f"127.0.0.1:{server.port}") for server in found.servers)
        provider.unary_unary(f"/{PROVIDER}/Refresh")(b"", timeout=20)
        listed = provider.unary_unary(f"/{PROVIDER}/NodeGroups")(b"", timeout=20)
        groups = [group["id"] for group in decode(METHODS["NodeGroups"][1], listed)["nodeGroups"]]
        question = encode(BEST_OPTIONS[0], {"options": [{"nodeGroupId": name, "nodeCount": 1} for name in groups]})
        best = decode(BEST_OPTIONS[1], expander.unary_unary(f"/{EXPANDER}/BestOptions")(question, timeout=20))
        assert [option["nodeGroupId"] for option in best["options"]] == groups[:1]
        provider.close()
        expander.close()
    finally:
        found.stop()
    calls = recorder.registry.get_sample_value("foreslice_grpc_calls_total", {"method": "NodeGroups", "status": "OK"})
    choices = recorder.registry.get_sample_value("foreslice_expander_choices_total", {"why": "price"})
    assert (calls, choices) == (1, 1)


def test_a_bug_in_finding_groups_leaves_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.run(seconds=30)
    found, _ = made(cluster, external_grpc="127.0.0.1:0")
    assert found is not None
    found.servers = ()
    found.observed(cluster.ticks[-1])
    before = found.launchable
    assert before is not None

    def breaks(*_: object, **__: object) -> None:
        raise ArithmeticError("a bug")

    monkeypatch.setattr(external_grpc, "launchable_of", breaks)
    found.observed(cluster.ticks[-1])
    assert found.launchable is before


def test_an_open_address_needs_certificates() -> None:
    with pytest.raises(ConfigurationError, match=r"grpc\.certificate, grpc\.key, grpc\.clientCa"):
        made(Cluster(), external_grpc=":8086")
    settings = Settings(serve=ServeSettings(external_grpc=":0"), grpc=GrpcSettings(insecure=True))
    recorder = Recorder(VirtualClock(), version="test")
    assert external_grpc_of(settings, Cluster().simulation.api, recorder, VirtualClock()) is not None


def test_without_grpcio_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "autoscaler.externalgrpc.server")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ModuleNotFoundError) as error:
        made(Cluster(), external_grpc="127.0.0.1:0")
    found = missing_extra(error.value)
    assert found is not None
    assert "foreslice[grpc]" in found.next_step


def test_exemplars_and_the_field_exclude_each_other() -> None:
    settings = Settings(
        serve=ServeSettings(external_grpc="127.0.0.1:0"), grpc=GrpcSettings(exemplars=True, resource_slices=True)
    )
    recorder = Recorder(VirtualClock(), version="test")
    with pytest.raises(ConfigurationError, match=r"grpc\.exemplars"):
        external_grpc_of(settings, Cluster().simulation.api, recorder, VirtualClock())


def test_no_exemplar_is_left_when_the_process_ends() -> None:
    cluster = Cluster()
    cluster.run(seconds=30)
    api, clock = cluster.simulation.api, VirtualClock()
    left = {"metadata": {"name": "foreslice-exemplar-1", "labels": {labels.EXEMPLAR: "foreslice-exemplar-1"}}}
    api.create(NODES, left)
    settings = Settings(serve=ServeSettings(external_grpc="127.0.0.1:0"), grpc=GrpcSettings(exemplars=True))
    found = external_grpc_of(settings, api, Recorder(clock, version="test"), clock)
    assert found is not None
    found.observed(cluster.ticks[-1])
    found.stop()
    assert list_all(api, NODES)[0] == ()
    assert found.worker is not None
    assert not found.worker.is_alive()
