"""One advice as a list of steps, with the result and remarks."""

from __future__ import annotations

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.trial import Advice, Result
from autoscaler.report.advised.listed import advice_document, advice_lines, listed

DROPPED = Change.of(ChangeKind.DROP_NODE_SELECTOR, "pod default/p", lambda found: found, key="disk", value="ssd")
LOWERED = Change.of(ChangeKind.LOWER_COUNT, "claim default/c, request gpu", lambda found: found, wanted=9, instead=8)
ON_NODES = Result((), None, ("node-1",), useless=("default/p: does not start there",), any_gpu="names no GPU")


def test_one_step_has_no_number_and_each_remark_is_a_note() -> None:
    assert advice_lines(Advice(DROPPED, ON_NODES)) == [
        "pod default/p: drop nodeSelector disk=ssd",
        "→ 1 existing node: node-1",
        "note: default/p: does not start there",
        "note: without it, the pod names no GPU",
    ]


def test_several_steps_are_numbered() -> None:
    advice = Advice(Change.together(DROPPED, LOWERED), Result((), None, ("node-1",)))
    assert advice_lines(advice) == [
        "(1) pod default/p: drop nodeSelector disk=ssd",
        "(2) claim default/c, request gpu: request 8 devices instead of 9",
        "→ 1 existing node: node-1",
    ]


def test_the_document_has_what_the_lines_say() -> None:
    advice = Advice(Change.together(DROPPED, LOWERED), ON_NODES)
    (found,) = advice_document([advice])
    assert listed(found["steps"], found["result"]["text"], found["notes"]) == advice_lines(advice)
    assert found["text"] == (
        "(1) pod default/p: drop nodeSelector disk=ssd; "
        "(2) claim default/c, request gpu: request 8 devices instead of 9"
    )
