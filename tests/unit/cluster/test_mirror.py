"""A mirror follows its resource, also while the cluster does not serve it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import NO_FIELDS, NO_LABELS, NotFoundError, Object, Page
from autoscaler.cluster.mirror import Mirror
from autoscaler.cluster.resources import DEVICE_CLASSES, NODES, Resource
from autoscaler.kube.node import parse_node
from autoscaler.kube.problem import Problems
from autoscaler.simulation.api_server import ApiServer


@dataclass
class Partial(ApiServer):
    """A cluster that serves the resource only for a while."""

    served: bool = True

    def __post_init__(self) -> None:
        super().__init__(VirtualClock())

    asked: int = 0

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        fields: Mapping[str, str] = NO_FIELDS,
        limit: int = 500,
        page: str = "",
    ) -> Page:
        self.asked += 1
        if not self.served:
            raise NotFoundError(f"{resource} is not served")
        return super().list(resource, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page)


def name_of(raw: Object, problems: Problems) -> str:
    return str(raw["metadata"]["name"])


def test_an_api_that_comes_later_is_found() -> None:
    api = Partial(served=False)
    mirror = Mirror(api, DEVICE_CLASSES, name_of)
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    assert not mirror.refresh()
    assert (mirror.values, mirror.version) == ((), 0)
    api.served = True
    assert mirror.refresh()
    assert mirror.values == ("gpu",)


def test_an_api_that_is_removed_has_no_objects() -> None:
    api = Partial()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    mirror = Mirror(api, DEVICE_CLASSES, name_of)
    mirror.refresh()
    assert mirror.values == ("gpu",)
    api.served = False
    api.compact()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "other"}})
    api.compact()
    assert mirror.refresh()
    assert mirror.values == ()


def test_a_list_that_became_empty_leaves_nothing() -> None:
    api = Partial()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    mirror = Mirror(api, DEVICE_CLASSES, name_of)
    mirror.refresh()
    assert mirror.values == ("gpu",)
    api.delete(DEVICE_CLASSES, "gpu")
    api.compact()
    assert mirror.refresh()
    assert mirror.values == ()


def test_an_api_that_is_not_served_is_asked_for_ever_more_rarely() -> None:
    api = Partial(served=False)
    mirror = Mirror(api, DEVICE_CLASSES, name_of)
    for _ in range(1 + 1 + 2 + 4 + 8 + 16 + 16):
        assert not mirror.refresh()
    assert api.asked == 7


def test_what_changes_nothing_that_is_read_is_no_change() -> None:
    api = Partial()
    api.create(NODES, node("n", "2026-01-01T00:00:00Z"))
    mirror = Mirror(api, NODES, parse_node)
    assert mirror.refresh()
    (before,) = mirror.values
    api.patch(NODES, "n", {"status": node("n", "2026-01-01T00:05:00Z")["status"]}, subresource="status")
    version = mirror.version
    assert not mirror.refresh()
    assert mirror.version > version
    assert mirror.values[0] is before
    api.patch(NODES, "n", {"status": node("n", "2026-01-01T00:05:00Z", ready="False")["status"]}, subresource="status")
    assert mirror.refresh()
    assert not mirror.values[0].ready


def node(name: str, heartbeat: str, ready: str = "True") -> Object:
    """A node as its kubelet reports it."""
    ready_condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}, "conditions": [ready_condition]}}


def test_a_list_is_converted_page_by_page() -> None:
    api = Partial()
    for number in range(1200):
        api.create(DEVICE_CLASSES, {"metadata": {"name": f"c{number:04}"}})
    mirror = Mirror(api, DEVICE_CLASSES, name_of)
    assert mirror.refresh()
    assert (len(mirror.values), api.asked) == (1200, 3)
    assert not mirror.refresh()
