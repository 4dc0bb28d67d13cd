"""Objects of which something cannot be read: an event names the field, once."""

from __future__ import annotations

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.publishing.publisher import Publisher
from autoscaler.cluster.resources import EVENTS
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Diagnostic, Severity
from tests.desk import new_desk

POD = Pod("team", "a", uid="u-a")


def problem(severity: Severity) -> Diagnostic:
    path = ("metadata", "annotations", "x/delay")
    return Diagnostic("'soon' is not a duration", "write it like 30s", path, severity=severity)


@pytest.mark.parametrize(
    ("kind", "key", "severity", "told"),
    [
        pytest.param("Pod", "team/a", Severity.ERROR, ("team", "a", "u-a"), id="a-pod"),
        pytest.param("Pod", "team/a", Severity.WARNING, ("team", "a", "u-a"), id="an-annotation-of-a-pod"),
        pytest.param("Pod", "team/a", Severity.UNKNOWN_FIELD, None, id="a-field-that-the-verdict-tells"),
        pytest.param("ResourceClaim", "team/c", Severity.ERROR, ("team", "c", None), id="a-claim"),
        pytest.param("ResourceSlice", "s", Severity.ERROR, ("default", "s", None), id="of-no-namespace"),
        pytest.param("Node", "n", Severity.WARNING, None, id="a-node-that-is-coming-up"),
        pytest.param("CapacityPool", "p", Severity.ERROR, ("default", "p", None), id="a-pool-beside-its-condition"),
    ],
)
def test_what_cannot_be_read_is_told_where_people_look(
    kind: str, key: str, severity: Severity, told: tuple[str, str, str | None] | None
) -> None:
    desk = new_desk()
    publisher = Publisher(desk.api)
    for _ in range(2):
        publisher.judge(Snapshot(pods=(POD,)), [(kind, key, problem(severity))], desk.now)
    found = list_all(desk.api, EVENTS)[0]
    about = [(e["metadata"]["namespace"], e["involvedObject"]["name"], e["involvedObject"].get("uid")) for e in found]
    assert about == ([told] if told else [])
    assert all(event["reason"] == "Invalid" for event in found)
    assert all(
        event["message"] == "metadata.annotations['x/delay']: 'soon' is not a duration; write it like 30s"
        for event in found
    )
