"""Which reasons evict: a closed table, and what the API of the version before holds."""

from __future__ import annotations

import pytest

from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.lifecycle.leaving import WHY_IT_GOES, PodsThen, evicts, may_evict
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from instance_catalog.dataclass import replace
from tests.builders import NOW, ours

EVICTING = {
    Code.BLOCK_ENDING,
    Code.MACHINE_RECREATED,
    Code.NODE_DISPENSABLE,
    Code.NODE_RECLAIMED,
    Code.POOL_DELETED,
    Code.SLICE_BROKEN,
}


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.value)
def test_only_these_evict(code: Code) -> None:
    assert evicts((Reason.of(code),)) is (code in EVICTING)


def test_every_reason_to_go_is_in_the_table() -> None:
    kept = {Code.NODE_EMPTY, Code.NODE_DRIFTED, Code.NODE_UNHEALTHY, Code.NODE_FAILED, Code.NODE_STOPPED}
    assert {code for code, pods in WHY_IT_GOES.items() if pods is PodsThen.KEPT} == kept


def stored(*reasons: dict[str, object], deleted: bool = False) -> ProvisionedNode:
    """A draining node as the API holds it."""
    manifest = write_provisioned_node(replace(ours("n"), phase=Phase.DRAINING, phase_since=NOW))
    manifest["status"]["reasons"] = list(reasons)
    if deleted:
        manifest["metadata"]["deletionTimestamp"] = "2026-01-05T09:00:00Z"
    return parse_provisioned_node(manifest)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(stored({"code": "BlockEnding", "subject": "block b"}), True, id="block"),
        pytest.param(stored({"code": "NodeEmpty"}), False, id="empty"),
        pytest.param(stored(), False, id="no reason was written"),
        pytest.param(stored({"code": "SinceThen"}), False, id="a reason of another version"),
        pytest.param(stored({"code": "NodeEmpty"}, deleted=True), True, id="a person's order"),
    ],
)
def test_what_the_api_holds_decides(node: ProvisionedNode, expected: bool) -> None:
    assert may_evict(node) is expected
