"""One advice as lines and as data: the steps, then what the plan with them is, then remarks.

Every output form shows these lines: a plan, an explanation, Markdown and pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from autoscaler.advice.trial import Advice
from autoscaler.report.advised.change_steps import change_steps
from autoscaler.report.advised.remarks import remarks, result_text
from autoscaler.report.plan_document import dollars, offering_document
from instance_catalog.dataclass import replace

NO_HELP: Final = "no single change that was tried places it"


def advice_lines(advice: Advice) -> list[str]:
    """The lines of one advice, as `listed` orders them."""
    return listed(_steps(advice), result_text(advice.result), remarks(advice))


def listed(steps: Sequence[str], result: str, notes: Iterable[str]) -> list[str]:
    """The steps, numbered if there are several; the result behind an arrow; and each remark as a note."""
    return [*_numbered(steps), f"→ {result}", *(f"note: {note}" for note in notes)]


def _steps(advice: Advice) -> tuple[str, ...]:
    return change_steps(advice.change, nodes=sum(count for _, count in advice.result.launches))


def _numbered(steps: Sequence[str]) -> list[str]:
    return [f"({number}) {step}" for number, step in enumerate(steps, 1)] if len(steps) > 1 else list(steps)


def advice_document(found: Sequence[Advice]) -> list[dict[str, Any]]:
    """Each advice as data, those that keep more of what the pods ask behind the one that they are dearer than."""
    return [_document(each) for one in found for each in (replace(one, instead=()), *one.instead)]


def _document(advice: Advice) -> dict[str, Any]:
    steps, result = _steps(advice), advice.result
    return {
        "kind": advice.change.kind.value,
        "subject": advice.change.subject,
        "text": "; ".join(_numbered(steps)),
        "steps": list(steps),
        "notes": list(remarks(advice)),
        "detail": {
            key: list(value) if isinstance(value, tuple) else value for key, value in advice.change.detail.items()
        },
        "result": {
            "text": result_text(result),
            "launches": [{"offering": offering_document(ref), "nodes": count} for ref, count in result.launches],
            "nodes": list(result.nodes),
            "needs": [
                {"instanceType": name, "problem": each.problem, "nextStep": each.next_step, "source": each.source}
                for name, each in result.needs
            ],
            "usdPerHour": dollars(result.usd_per_hour),
        },
    }
