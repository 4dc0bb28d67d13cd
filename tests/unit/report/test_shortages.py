"""Who lacks a resource, and which machine comes near: all types that a pod asks for, or only some of them."""

from __future__ import annotations

import pytest

from autoscaler.model.plan import LeftOut, LeftOutVerdict, NearMiss
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.report.reasons import text_of
from autoscaler.report.tables.plan_summary import left_out_lines

POD = Subject("pod", "default/p")
NONE = Reason.of(Code.INSUFFICIENT_RESOURCE, POD, resource="example.com/fpga", wanted=1, free=0)
CPU = Reason.of(Code.INSUFFICIENT_RESOURCE, POD, resource="cpu", wanted=9000, free=1930)
SELECTED = Reason.of(Code.NODE_SELECTOR_MISMATCH, POD, key="a", wanted="b")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param((), "no type on offer has any;", id="all"),
        pytest.param((NearMiss(SELECTED, 7, "s"),), "no type on offer has any;", id="beside types not selected"),
        pytest.param((NearMiss(CPU, 1, "l"),), "these have none;", id="one type has it"),
    ],
)
def test_that_nothing_has_a_resource_is_said_only_where_it_is_so(others: tuple[NearMiss, ...], expected: str) -> None:
    entry = LeftOut(
        "default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=(NearMiss(NONE, 3, "s"), *others), types=9
    )
    (line,) = left_out_lines(entry)
    assert expected in line


def test_all_resources_that_nothing_has_are_in_one_line() -> None:
    named = [("a.com/x", ()), ("nvidia.com/gpumem", ()), ("a.com/x", ("nvidia.com/gpumem",))]
    *alone, both = (
        Reason.of(Code.INSUFFICIENT_RESOURCE, POD, resource=resource, wanted=1, free=0, nor=nor)
        for resource, nor in named
    )
    misses = (NearMiss(both, 3, "s"),)
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, tuple(alone), near_misses=misses, types=3)
    (line,) = left_out_lines(entry)
    assert "3 Insufficient a.com/x and nvidia.com/gpumem (no type on offer has any; " in line
    assert "`foreslice catalog set TYPE allocatable.a.com/x=… --into" in line
    assert "free; nor any nvidia.com/gpumem" in text_of(both)


@pytest.mark.parametrize("resource", ["rdma/hca", "vke.volcengine.com/rdma", "tke.cloud.tencent.com/eni-ip"])
def test_no_resource_of_others_is_added_to_a_machine(resource: str) -> None:
    none = Reason.of(Code.INSUFFICIENT_RESOURCE, POD, resource=resource, wanted=1, free=0)
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (none,), near_misses=(NearMiss(none, 3, "s"),), types=3)
    (line,) = left_out_lines(entry)
    assert f"3 Insufficient {resource} (1 requested, no type on offer has any)" in line
    assert "catalog set" not in line


def test_no_machine_is_near_where_other_pods_decide() -> None:
    apart = Reason.of(Code.POD_AFFINITY, POD, keys=("nvidia.com/gpu.clique",))
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=_misses(apart), types=4)
    (line,) = left_out_lines(entry)
    assert "pod affinity" in line
    assert "nearest" not in line
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=_misses(CPU), types=4)
    assert "nearest s" in next(left_out_lines(entry))


def _misses(nearest: Reason) -> tuple[NearMiss, ...]:
    return NearMiss(nearest, 1, "s"), NearMiss(NONE, 3, "l")


def test_huge_pages_are_what_nodes_keep() -> None:
    short = Reason.of(Code.INSUFFICIENT_RESOURCE, POD, resource="hugepages-2Mi", wanted=2**34, free=2**33)
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=_misses(short), types=4)
    assert "allocatable.hugepages-2Mi=…" in next(left_out_lines(entry))
