"""A mirror follows its resource, also while the cluster does not serve it."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import NotFoundError, Object, Page
from autoscaler.cluster.mirror import Mirror
from autoscaler.cluster.resources import DEVICE_CLASSES, Resource
from autoscaler.kube.problem import Problems
from autoscaler.simulation.api_server import ApiServer


@dataclass
class Partial(ApiServer):
    """A cluster that serves the resource only for a while."""

    served: bool = True

    def __post_init__(self) -> None:
        super().__init__(VirtualClock())

    def list(self, resource: Resource, *, namespace: str = "", limit: int = 500, page: str = "") -> Page:
        if not self.served:
            raise NotFoundError(f"{resource} is not served")
        return super().list(resource, namespace=namespace, limit=limit, page=page)


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
