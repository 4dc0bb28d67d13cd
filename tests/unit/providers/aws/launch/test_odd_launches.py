"""After a launch nothing may raise but ProviderErrors: each member of each answer on the way is left out, each text is
one that nobody knows, tags are malformed. And the same launch, repeated, has launched each machine once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from instance_catalog.kubernetes import labels
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate
from providers.aws.provider import Account
from providers.contract import TAG_CLUSTER, LaunchRequest, Provider
from providers.errors import ProviderError
from tests.aws import CLUSTER, P4, P5, FakeAws, Rig, WrittenGroups, catalog, request
from tests.faults.groups import add_group

SERVICES = {"CreateFleet": "ec2", "RunInstances": "ec2", "DescribeInstances": "ec2", "DescribeSubnets": "ec2"} | {
    "LaunchInstances": "autoscaling",
    "DescribeAutoScalingGroups": "autoscaling",
    "DescribeScalingActivities": "autoscaling",
}
Path = tuple[Any, ...]
ODD_TAGS = [{"Key": "only-a-key"}, {"Value": "only a value"}, {}, {"Key": "foreslice.dev/resize", "Value": "?"}]


@dataclass
class World:
    """A provider on a fake of its own, and what it is asked for."""

    rig: Rig
    provider: Provider
    asked: LaunchRequest

    @property
    def launched(self) -> int:
        return sum(labels.LAUNCH_TOKEN in machine.tags for machine in self.rig.fake.account.machines.values())

    def launch(self) -> Exception | None:
        """Launch, and look at what there is; what else than a ProviderError is raised is not caught."""
        try:
            self.provider.launch(self.asked)
            list(self.provider.describe({TAG_CLUSTER: CLUSTER}).instances)
        except ProviderError as error:
            return error
        return None


def fleet() -> World:
    rig = Rig()
    return World(rig, rig.provider, request("a", "b", offerings=(P5, P4)))


def gang() -> World:
    rig = Rig()
    return World(rig, rig.provider, request("a", "b", minimum=2))


def group(*, by_instances: bool) -> World:
    rig = Rig()
    add_group(rig.fake, "members", P5.instance_type, P5.zone, P5.capacity_type)
    templates = WrittenGroups(GroupTemplate("gpu", ("members",), by_instances=by_instances))
    provider = AwsNodeGroups(Account(FakeAws(), rig.clock, catalog(), CLUSTER), templates)
    return World(rig, provider, request("a", "b"))


def by_instances() -> World:
    return group(by_instances=True)


def by_size() -> World:
    return group(by_instances=False)


@dataclass
class Mutilated:
    """Answers of one operation, changed on their way; `paths` are the members of the longest one, with their values."""

    operation: str
    change: Callable[[dict[str, Any]], None] = lambda answer: None
    paths: dict[Path, Any] = field(default_factory=dict)

    @contextmanager
    def applied(self) -> Iterator[None]:
        client = FakeAws().client(SERVICES[self.operation])
        event = f"after-call.{SERVICES[self.operation].replace('autoscaling', 'auto-scaling')}.{self.operation}"
        client.meta.events.register(event, self._seen)
        try:
            yield
        finally:
            client.meta.events.unregister(event, self._seen)

    def _seen(self, parsed: dict[str, Any], **_: object) -> None:
        whole = {key: value for key, value in parsed.items() if key != "ResponseMetadata"}
        found = dict(paths(whole))
        self.paths = found if len(found) > len(self.paths) else self.paths
        self.change(parsed)


def paths(found: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All members of an answer, with one item of each list."""
    items = found.items() if isinstance(found, dict) else enumerate(found[:1]) if isinstance(found, list) else ()
    for key, value in items:
        yield (*path, key), copy.deepcopy(value)
        yield from paths(value, (*path, key))


def changes(path: Path, value: Any) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What may be odd about a member."""

    def holder(answer: Any) -> Any:
        for key in path[:-1]:
            answer = answer[key]
        return answer

    def absent(answer: dict[str, Any]) -> None:
        del holder(answer)[path[-1]]

    def other(answer: dict[str, Any]) -> None:
        replacement = "something-new" if isinstance(value, str) else [*value, *copy.deepcopy(ODD_TAGS)]
        holder(answer)[path[-1]] = replacement

    yield _harmless(absent)
    if isinstance(value, str) or path[-1] == "Tags":
        yield _harmless(other)


def _harmless(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Later answers of the operation may lack the member."""

    def changed(answer: dict[str, Any]) -> None:
        try:
            change(answer)
        except (KeyError, IndexError, TypeError):
            return

    return changed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "operation"),
    [
        (fleet, "CreateFleet"),
        (fleet, "DescribeSubnets"),
        (gang, "RunInstances"),
        (by_instances, "LaunchInstances"),
        (by_instances, "DescribeAutoScalingGroups"),
        (by_instances, "DescribeInstances"),
        (by_size, "DescribeAutoScalingGroups"),
        (by_size, "DescribeScalingActivities"),
        (by_size, "DescribeInstances"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_an_odd_answer_is_an_error_of_the_provider_or_none(world: Callable[[], World], operation: str) -> None:
    whole = Mutilated(operation)
    with whole.applied():
        world().launch()
    raised = 0
    for path, value in whole.paths.items():
        for change in changes(path, value):
            found = world()
            with Mutilated(operation, change).applied():
                raised += found.launch() is not None
            for _ in range(2):  # EC2 answers properly again
                found.rig.clock.advance(found.rig.behaviour.pending)
                error = found.launch()
            assert error is None, f"{operation} with {path} changed: {error}"
            assert found.launched == 2, f"{operation} with {path} changed launched {found.launched} machines"
    assert raised > 0
