"""A valid object of every kind, spoiled field by field: rounds go on, and what cannot be read is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import EVENTS, PODS, RESOURCE_CLAIMS, SPENDINGS, Resource
from autoscaler.cluster.store import Store
from autoscaler.loop.loop import Loop, Tick
from autoscaler.model.reason import Code
from autoscaler.simulation.api_server import ApiServer, merged
from instance_catalog.kubernetes.profile import REFERENCE
from tests.unit.simulation.test_poison import cluster, loop, named
from tests.unit.simulation.valid_objects import VALID

POISONS: Final[tuple[Any, ...]] = (
    None,
    "poison",
    -1,
    1e308,
    [],
    {},
    [None],
    {"a": None},
    True,
    "9" * 400,
    10**400,
    "2027-13-45T99:99:99Z",
    "",
    ["x"],
    {"x": {"y": "z"}},
    [[]],
    "\x00",
    "a/b/c",
    "-5",
)
# What an API server itself reads of every object.
ITS_OWN: Final = (("metadata",), ("metadata", "labels"))
Path = tuple[str | int, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every field, at any depth."""
    fields: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in fields:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def with_field(value: Any, path: Path, poison: Any) -> Any:
    """A copy with something else in one field."""
    if not path:
        return poison
    copy = value.copy()
    copy[path[0]] = with_field(value[path[0]], path[1:], poison)
    return copy


def spoiled(resource: Resource) -> Iterator[dict[str, Any]]:
    """The valid object with each of its fields spoiled; over all fields, all poisons are used."""
    fields = (path for path in paths(VALID[resource]) if path not in ITS_OWN)
    for number, path in enumerate(fields):
        yield with_field(VALID[resource], path, POISONS[number * 7 % len(POISONS)])


def create(api: ApiServer, resource: Resource, manifest: dict[str, Any], name: str) -> None:
    """As a client does it: status is written apart."""
    api.create(resource, {**manifest, "metadata": {**manifest["metadata"], "name": name}})
    if resource.status and isinstance(manifest.get("status"), dict):
        namespace = "default" if resource.namespaced else ""
        api.patch(resource, name, {"status": manifest["status"]}, namespace=namespace, subresource="status")


def served(tick: Tick) -> bool:
    """Whether the healthy pod gets a node: a new one, or one that an object of ours says is coming."""
    return any(placement.pod == "default/healthy" for placement in tick.plan.placements)


@pytest.mark.parametrize("resource", VALID, ids=str)
def test_no_spoiled_field_stops_a_round(resource: Resource) -> None:
    api, controller = cluster()
    for number, manifest in enumerate(spoiled(resource)):
        create(api, resource, manifest, f"spoiled-{number}")
    for one in (controller, controller, loop(api, VirtualClock())):
        assert served(one.tick())


def test_no_spoiled_account_stops_a_round() -> None:
    """There is only one, of a name of its own."""
    for manifest in spoiled(SPENDINGS):
        api, controller = cluster()
        create(api, SPENDINGS, manifest, "cluster")
        assert served(controller.tick())
        assert served(controller.tick())


@pytest.mark.parametrize("resource", [r for r in VALID if r != SPENDINGS], ids=str)
def test_every_object_is_valid_before_it_is_spoiled(resource: Resource) -> None:
    """Otherwise most of the fields would never be reached."""
    api = ApiServer(VirtualClock())
    create(api, resource, VALID[resource], "valid")
    store = Store(api, REFERENCE)
    store.refresh()
    assert [f"{key}: {problem}" for _, key, problem in store.problems()] == []


@pytest.mark.parametrize(
    ("resource", "patch", "field"),
    [
        pytest.param(PODS, {"spec": {"nodeSelector": ["x"]}}, "spec.nodeSelector", id="pod"),
        pytest.param(PODS, {"spec": {"tolerations": "all"}}, "spec.tolerations", id="pod-constraint"),
        pytest.param(
            RESOURCE_CLAIMS,
            {"spec": {"devices": {"constraints": "none"}}},
            "spec.devices.constraints",
            id="claim",
        ),
    ],
)
def test_nothing_is_bought_on_what_cannot_be_read(resource: Resource, patch: dict[str, Any], field: str) -> None:
    api, controller = _with_another_pod()
    api.update(resource, merged(api.get(resource, "other", namespace="default"), patch))
    tick = controller.tick()
    assert served(tick)
    (left,) = (left for left in tick.plan.left_out if left.pod == "default/other")
    assert (left.verdict, left.reasons[0].code) == ("unknown", Code.UNSUPPORTED)
    (event,) = (event for event in list_all(api, EVENTS)[0] if event["reason"] == "Invalid")
    assert event["involvedObject"]["name"] == "other"
    assert event["message"].startswith(field)


def _with_another_pod() -> tuple[ApiServer, Loop]:
    """Besides the healthy pod, one that is as healthy so far."""
    api, controller = cluster()
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    api.create(RESOURCE_CLAIMS, named("other", {"devices": {"requests": [request]}}))
    claims = [{"name": "gpu", "resourceClaimName": "other"}]
    api.create(PODS, named("other", {"containers": [{"name": "main"}], "resourceClaims": claims}))
    return api, controller
