"""Names of manifests in commands that people paste into a shell."""

from __future__ import annotations

import shlex

import pytest

from autoscaler.advice.together import Helping
from autoscaler.cli.common import advice
from autoscaler.lint import other_systems
from autoscaler.lint.pods.unknown_types import told_type
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.report.tables.shortages import shortage_text
from tests.builders import CATALOG

HOSTILE = "a; rm x|sh#'"


def command_in(text: str) -> list[str]:
    return shlex.split(text.split("`")[1])


def test_the_pod_to_explain() -> None:
    (text,) = advice._others(Helping(untried=(f"default/{HOSTILE}",)))
    assert command_in(text) == ["foreslice", "explain", f"default/{HOSTILE}"]


def test_the_type_to_add() -> None:
    assert command_in(told_type(HOSTILE, CATALOG)[2])[:4] == ["foreslice", "catalog", "add", HOSTILE]


@pytest.mark.parametrize("resource", [f"example.com/{HOSTILE}", f"hugepages-{HOSTILE}"])
def test_the_resource_to_set(resource: str) -> None:
    pod = Subject("pod", "default/p")
    reason = Reason.of(Code.INSUFFICIENT_RESOURCE, pod, resource=resource, wanted=1, free=0)
    words = command_in(shortage_text(reason, on_all_types=True))
    assert words[4:] == [f"allocatable.{resource}=…", "--into", "DIR", "--reason", "WHY"]


def test_the_resources_of_nobody() -> None:
    resource = "example.com/a;rm|sh"
    assert f"allocatable.{resource}=…" in command_in(other_systems._unknown(resource)[2])
