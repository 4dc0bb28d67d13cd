"""The labels that keep a pod from everything on offer are those that nothing on offer has."""

from __future__ import annotations

import pytest

from autoscaler.model.reason import Code
from autoscaler.planning.missing_labels import missing_labels
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import pod

NODES = (FrozenMap({"type": "a", "zone": "1"}), FrozenMap({"type": "b", "zone": "2"}))
TEAM = Requirement("team", "In", ("x", "y"))


def requiring(*requirements: Requirement) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(requirements),))


def test_a_label_that_some_node_has_is_no_obstacle_for_all() -> None:
    asked = pod("p", node_selector=FrozenMap({"type": "a", "team": "x"}))
    found = missing_labels(asked, NODES)
    assert found is not None
    assert (found.code, found.detail["key"], found.detail["wanted"]) == (Code.NODE_SELECTOR_MISMATCH, "team", "x")


def test_nothing_is_missing_where_each_label_is_on_some_node() -> None:
    """Not on one node together, which is another finding."""
    assert missing_labels(pod("p", node_selector=FrozenMap({"type": "a", "zone": "2"})), NODES) is None


def test_node_affinity_alone() -> None:
    asked = replace(pod("p"), affinity=requiring(Requirement("type", "In", ("a",)), TEAM))
    found = missing_labels(asked, NODES)
    assert found is not None
    assert found.code is Code.NODE_AFFINITY_MISMATCH
    assert text_of(found) == "pod default/p: node affinity wants team In [x, y]"


def test_values_that_are_left_out_are_counted() -> None:
    asked = replace(pod("p"), affinity=requiring(Requirement("team", "In", ("v", "w", "x", "y", "z"))))
    found = missing_labels(asked, NODES)
    assert found is not None
    assert text_of(found) == "pod default/p: node affinity wants team In [v, w, x and 2 more]"


def test_both_are_named() -> None:
    asked = pod("p", node_selector=FrozenMap({"type": "a", "queued": "true"}))
    found = missing_labels(replace(asked, affinity=requiring(TEAM)), NODES)
    assert found is not None
    assert text_of(found) == "pod default/p: node selector wants queued=true, node affinity team In [x, y]"


def test_terms_are_alternatives() -> None:
    either = NodeSelector((NodeSelectorTerm((TEAM,)), NodeSelectorTerm((Requirement("type", "In", ("a",)),))))
    assert missing_labels(replace(pod("p"), affinity=either), NODES) is None


@pytest.mark.parametrize("bad", [Requirement("team", "Like", ("x",)), Requirement("zone", "Gt", ("many",))])
def test_what_cannot_be_parsed_is_left_to_the_verdict(bad: Requirement) -> None:
    assert missing_labels(replace(pod("p"), affinity=requiring(bad)), NODES) is None
