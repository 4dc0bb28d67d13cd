"""Objects as odd as the API server takes them: each is read or told, and those beside it are seen as ever."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from autoscaler.clock import VirtualClock
from autoscaler.cluster import store as store_module
from autoscaler.cluster.api import Object
from autoscaler.cluster.informer import Informer
from autoscaler.cluster.resources import ALL, NODES, PODS, Resource
from autoscaler.cluster.store import Store
from autoscaler.kube.problem import Problems
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.simulation import Simulation
from instance_catalog.kubernetes.profile import REFERENCE
from tests.crash.life import START, scenario, small_catalog
from tests.properties.test_manifests_total import JSON, OBJECTS, paths

NAMED = {"metadata": {"name": "plain", "namespace": "default"}, "spec": {"containers": [{"name": "main"}]}}


def lived() -> list[tuple[Resource, Object]]:
    """One object of each kind that a life leaves, as the API server holds it."""
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.add(scenario())
    simulation.settle(lambda tick: None)
    found = [(r, page.items[0]) for r in ALL if (page := simulation.api.list(r)).items]
    kinds = {resource.kind: resource for resource in ALL}
    return [*found, *((kinds[o["kind"]], o) for o in OBJECTS if isinstance(o, dict) and o.get("kind") in kinds)]


LIVED = lived()


@st.composite
def odd(draw: st.DrawFn) -> tuple[Resource, Object]:
    """An object with a few of its parts replaced by anything. Its name is one: that much the API server ensures."""
    resource, found = draw(st.sampled_from(LIVED))
    made: dict[str, Any] = copy.deepcopy(found)
    for _ in range(draw(st.integers(1, 3))):
        places = [(c, k) for part in ("spec", "status") for c, k in paths({part: made.get(part)})]
        places += paths(made.get("metadata", {}).get("annotations") or {})
        container, key = draw(st.sampled_from(places))
        container[key] = draw(JSON)
        made = {**made, **({key: container[key]} if key in ("spec", "status") else {})}
    made["metadata"] = {**made["metadata"], "name": "odd"}
    return resource, made


@settings(max_examples=300)
@given(odd())
def test_the_store_reads_on(made: tuple[Resource, Object]) -> None:
    api = ApiServer(VirtualClock())
    resource, manifest = made
    api.create(resource, manifest)
    api.create(PODS, NAMED)
    store = Store(api, REFERENCE)
    with capture_logs() as lines:
        store.refresh()
    assert lines == [], "no exception is caught, because none is raised"
    assert "default/plain" in {pod.key for pod in store.snapshot().pods}
    list(store.problems())
    store.batches()
    store.overlays()


def breaks_on(name: str, parse: Callable[..., Any]) -> Callable[..., Any]:
    def broken(raw: Object, *given: Any, **named: Any) -> Any:
        if raw["metadata"]["name"] == name:
            raise KeyError("something nobody thought of")
        return parse(raw, *given, **named)

    return broken


def test_a_pod_on_which_reading_breaks_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    api = ApiServer(VirtualClock())
    api.create(PODS, NAMED)
    bound = {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"nodeName": "n1"}}
    api.create(PODS, bound)
    monkeypatch.setattr(store_module, "parse_pod", breaks_on("odd", store_module.parse_pod))
    store = Store(api, REFERENCE)
    with capture_logs() as lines:
        store.refresh()
    pods = {pod.key: pod for pod in store.snapshot().pods}
    assert (pods["default/odd"].node_name, bool(pods["default/odd"].unsupported)) == ("n1", True)
    assert not pods["default/plain"].unsupported
    assert [line["event"] for line in lines] == ["unexpected_error"]
    assert [(kind, key) for kind, key, problem in store.problems() if "KeyError" in problem.message] == [
        ("Pod", "default/odd")
    ]


def test_what_was_read_last_holds_when_reading_breaks() -> None:
    api = ApiServer(VirtualClock())
    for name in ("odd", "plain"):
        api.create(NODES, {"metadata": {"name": name}})
    breaking: list[str] = []

    def parse(raw: Object, _: Problems) -> str:
        if raw["metadata"]["name"] in breaking:
            raise KeyError("something nobody thought of")
        return f"{raw['metadata']['name']} {raw['metadata'].get('labels', {})}"

    mirror = Informer(api, NODES, parse)
    mirror.refresh()
    breaking.append("odd")
    for name in ("odd", "plain"):
        api.patch(NODES, name, {"metadata": {"labels": {"a": "b"}}})
    for look in (mirror.refresh, mirror.reread):
        look()
        assert mirror.values == ("odd {}", "plain {'a': 'b'}")
        assert list(mirror.problems) == ["odd"]
    breaking.clear()
    mirror.reread()
    assert (mirror.values[0], dict(mirror.problems)) == ("odd {'a': 'b'}", {})
