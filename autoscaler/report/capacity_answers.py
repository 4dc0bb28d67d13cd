"""The messages of the conditions of ProvisioningRequests and CapacityBuffers.

Kueue shows the message of Provisioned to users who wait for a job, so it names what the job waits for. It names no pods
of other namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from autoscaler.model.capacity_answers import AnswerCondition, BufferAnswer, RequestAnswer, Why
from autoscaler.model.requested_capacity import CapacityBuffer, ProvisioningRequest
from autoscaler.model.virtual_pods import buffer_pod, request_pod
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.redaction import of_namespace, redacted
from autoscaler.report.words import counted, few, money

# A condition takes 32768 characters, and so does the state of Kueue's check, which adds words of its own (0.19:
# "Retrying after booking expired: "). Kueue does not shorten the sum: with a longer one it cannot write anything.
_LONGEST = 32000


def request_message(answer: RequestAnswer, condition: AnswerCondition) -> str:
    return _message(condition, answer.request)


def buffer_message(answer: BufferAnswer, condition: AnswerCondition) -> str:
    return _message(condition, answer.buffer)


def _message(condition: AnswerCondition, about: ProvisioningRequest | CapacityBuffer) -> str:
    why = texts_of(redacted(condition.reasons, of_namespace(about.namespace)))
    return _as_written(_sentence(condition, why + _miss(condition, about.namespace, why)), about)[:_LONGEST]


def _miss(condition: AnswerCondition, namespace: str, why: str) -> str:
    """The nearest miss; without its text if the reasons have it already."""
    if condition.miss is None:
        return ""
    (reason,) = redacted([condition.miss.reason], of_namespace(namespace))
    text = text_of(reason)
    what = "" if text in why.split("; ") else f"{text} on "
    return f"; nearest miss: {what}{counted(condition.miss.types, 'type')} such as {condition.miss.example}"


def _as_written(text: str, about: ProvisioningRequest | CapacityBuffer) -> str:
    """The text with claims named as in the pod template: people cannot look up claims that exist only in a plan."""
    for pod in _pods(about):
        # The pod's index, then the claim's name: resourceclaim_controller.go names claims after pod and entry.
        text = re.sub(re.escape(f"{about.namespace}/{pod.removesuffix('0')}") + r"\d+-", "", text)
    return text


def _pods(about: ProvisioningRequest | CapacityBuffer) -> Iterator[str]:
    """The first pod of each set; the longest names first, because others may be a prefix of them."""
    if isinstance(about, CapacityBuffer):
        yield buffer_pod(about.name, 0)
        return
    for template in sorted((pod_set.template for pod_set in about.pod_sets), key=len, reverse=True):
        yield request_pod(about.name, template, 0)


def _sentence(condition: AnswerCondition, why: str) -> str:
    pods, nodes = f"{condition.count} of {counted(condition.total, 'pod')}", _on(condition)
    have = "has" if condition.total == 1 else "have"
    match condition.why:
        case Why.ACCEPTED:
            return "Foreslice looks for nodes for it"
        case Why.PROVISIONED | Why.FOUND:
            return f"every pod has a place on {nodes}, and its claims their devices"
        case Why.COMING:
            return why or f"{pods} {have} a place on a node that is ready; the others wait for {nodes}"
        case Why.SCATTERED:
            return (
                f"{nodes} hold every pod, but kube-scheduler may place pods of different sizes so that only {pods} "
                "find room: room for more is looked for"
            )
        case Why.NOT_FOUND:
            has = f"{pods} {have} a place: " if condition.total else ""
            return f"{has}{why or (f'the others need {nodes}' if condition.nodes else 'nothing takes the others')}"
        case Why.NO_PODS | Why.UNCHECKED | Why.TEMPLATE_MISSING | Why.SCALABLE_MISSING | Why.UNRESOLVED | Why.NOT_READY:
            return why
        case Why.EXPIRED:
            return "no nodes were found for it in time: create a new request, perhaps for fewer pods"
        case Why.BOOKING_EXPIRED:
            return f"only {pods} came for the nodes that were kept, which are free for others from now on"
        case Why.CONSUMED:
            return "its pods are bound to its nodes"
        case Why.RECLAIMED:
            end = "end" if len(condition.nodes) > 1 else "ends"
            return f"{nodes} {end} or {_are(condition)} gone{f': {why}' if why else ''}"
        case Why.RESOLVED:
            return f"room for {counted(condition.total, 'pod')} is kept"
        case Why.EMPTY:
            return "it asks for no pods"
        case Why.FITS:
            return f"{counted(condition.total, 'pod')} have room on {nodes}{_costs(condition)}"
        case Why.NEEDS_NODES:
            return f"{pods} {have} room; the others wait for {nodes}{_costs(condition)}"


def _are(condition: AnswerCondition) -> str:
    return "are" if len(condition.nodes) > 1 else "is"


def _on(condition: AnswerCondition) -> str:
    return f"node{'s' if len(condition.nodes) > 1 else ''} {few(condition.nodes)}" if condition.nodes else "no node"


def _costs(condition: AnswerCondition) -> str:
    if condition.usd_per_hour is None:
        return "; it keeps nodes without a price"
    return (
        f"; it keeps nodes for {money(condition.usd_per_hour)} $/h"
        if condition.usd_per_hour
        else "; it keeps no node alone"
    )
