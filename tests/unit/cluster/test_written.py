"""What this process wrote is not converted again when a watch shows it, unless it is not what the answer was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import Object
from autoscaler.cluster.informer import Informer
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.parsed import Written
from autoscaler.cluster.resources import PROVISIONED_NODES
from autoscaler.cluster.store import Store
from autoscaler.kube.custom.provisioned_node import write_provisioned_node
from autoscaler.kube.problem import Problems
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.kubernetes.profile import REFERENCE
from tests.builders import ours

NAME = ("provisionednodes", "n")


def test_a_watch_shows_the_very_value_of_the_journal() -> None:
    api, written = ApiServer(VirtualClock()), Written()
    store, journal = Store(api, REFERENCE, written=written), Journal(api, written=written)
    store.refresh()
    journal.adopt(ours("n", provider_id="m"))
    store.refresh()
    (seen,) = store.snapshot().provisioned
    assert seen is journal.node("n")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "known"),
        ({"status": {"phase": "Ready"}}, "converted"),  # such as by a proxy
        ({"metadata": {"uid": "1", "resourceVersion": "8"}}, "converted"),
        ({"metadata": {"uid": "2", "resourceVersion": "7"}}, "converted"),
        ({"metadata": {"uid": "1", "resourceVersion": "7", "labels": {"a": "b"}}}, "converted"),
    ],
)
def test_only_the_same_content_of_the_same_version_is_known(changed: Mapping[str, Any], expected: str) -> None:
    written = Written()
    answer: Object = {"metadata": {"uid": "1", "resourceVersion": "7"}, "status": {"phase": "Intended"}}
    written.put(NAME, answer, "known")
    found = written.take(NAME, {**answer, **changed})
    assert (found or ("converted",))[0] == expected


def test_what_another_client_wrote_is_converted() -> None:
    api, read = ApiServer(VirtualClock()), list[str]()

    def parse(raw: Object, problems: Problems) -> str:
        read.append(raw["metadata"]["name"])
        return "value"

    informer = Informer(api, PROVISIONED_NODES, parse, parsed=Written())
    informer.refresh()
    api.create(PROVISIONED_NODES, write_provisioned_node(ours("n")))
    informer.refresh()
    assert read == ["n"]


def test_the_last_answer_stays_until_the_watch_shows_it_or_the_end_of_the_object() -> None:
    written = Written()
    first, last = ({"metadata": {"uid": "1", "resourceVersion": version}} for version in ("7", "8"))
    written.put(NAME, first, "first")
    written.put(NAME, last, "last")
    assert written.take(NAME, first) is None
    assert written.take(NAME, last) == ("last", ())
    assert written.take(NAME, last) is None
    written.put(NAME, last, "last")
    written.forget(NAME)
    assert written.take(NAME, last) is None


def test_answers_that_no_watch_shows_are_forgotten() -> None:
    written, answer = Written(), {"metadata": {"uid": "1", "resourceVersion": "1"}}
    names = [("provisionednodes", str(number)) for number in range(1025)]
    for name in names:
        written.put(name, answer, "known")
    assert written.take(names[0], answer) is None
    assert written.take(names[-1], answer) is not None
