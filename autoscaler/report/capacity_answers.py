"""The messages of the conditions of ProvisioningRequests and CapacityBuffers.

Kueue shows the message of Provisioned to users who wait for a job, so it names what the job waits for. It names no pods
of other namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from autoscaler.model.capacity_answers import BufferAnswer, RequestAnswer, Said, Why
from autoscaler.model.requested_capacity import CapacityBuffer, ProvisioningRequest
from autoscaler.model.virtual_pods import buffer_pod, request_pod
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.redaction import of_namespace, redacted
from autoscaler.report.words import counted, few, money

# A condition takes 32768 characters, and so does the state of Kueue's check, which adds words of its own (0.19:
# "Retrying after booking expired: "). Kueue does not shorten the sum: with a longer one it cannot write anything.
_LONGEST = 32000


def request_message(answer: RequestAnswer, said: Said) -> str:
    return _message(said, answer.request)


def buffer_message(answer: BufferAnswer, said: Said) -> str:
    return _message(said, answer.buffer)


def _message(said: Said, about: ProvisioningRequest | CapacityBuffer) -> str:
    why = texts_of(redacted(said.reasons, of_namespace(about.namespace)))
    return _as_written(_sentence(said, why + _miss(said, about.namespace, why)), about)[:_LONGEST]


def _miss(said: Said, namespace: str, why: str) -> str:
    """The nearest miss; without its text if the reasons have it already."""
    if said.miss is None:
        return ""
    (reason,) = redacted([said.miss.reason], of_namespace(namespace))
    text = text_of(reason)
    what = "" if text in why.split("; ") else f"{text} on "
    return f"; nearest miss: {what}{counted(said.miss.types, 'type')} such as {said.miss.example}"


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


def _sentence(said: Said, why: str) -> str:
    pods, nodes = f"{said.count} of {counted(said.total, 'pod')}", _on(said)
    have = "has" if said.total == 1 else "have"
    match said.why:
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
            has = f"{pods} {have} a place: " if said.total else ""
            return f"{has}{why or (f'the others need {nodes}' if said.nodes else 'nothing takes the others')}"
        case Why.NO_PODS | Why.UNCHECKED | Why.TEMPLATE_MISSING | Why.SCALABLE_MISSING | Why.UNRESOLVED | Why.NOT_READY:
            return why
        case Why.EXPIRED:
            return "no nodes were found for it in time: create a new request, perhaps for fewer pods"
        case Why.BOOKING_EXPIRED:
            return f"only {pods} came for the nodes that were kept, which are free for others from now on"
        case Why.CONSUMED:
            return "its pods are bound to its nodes"
        case Why.RECLAIMED:
            return f"{nodes} {'end' if len(said.nodes) > 1 else 'ends'} or {_are(said)} gone{f': {why}' if why else ''}"
        case Why.RESOLVED:
            return f"room for {counted(said.total, 'pod')} is kept"
        case Why.EMPTY:
            return "it asks for no pods"
        case Why.FITS:
            return f"{counted(said.total, 'pod')} have room on {nodes}{_costs(said)}"
        case Why.NEEDS_NODES:
            return f"{pods} {have} room; the others wait for {nodes}{_costs(said)}"


def _are(said: Said) -> str:
    return "are" if len(said.nodes) > 1 else "is"


def _on(said: Said) -> str:
    return f"node{'s' if len(said.nodes) > 1 else ''} {few(said.nodes)}" if said.nodes else "no node"


def _costs(said: Said) -> str:
    if said.usd_per_hour is None:
        return "; it keeps nodes without a price"
    return f"; it keeps nodes for {money(said.usd_per_hour)} $/h" if said.usd_per_hour else "; it keeps no node alone"
