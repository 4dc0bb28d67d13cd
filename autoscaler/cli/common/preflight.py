"""Shared parts of `aws check` and `gcp check`: run the providers' checks, print the findings, set the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from autoscaler.cli.common.commands import as_input_error
from autoscaler.cli.common.live import connected
from autoscaler.cli.common.output import print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import NAMESPACES
from instance_catalog.files.loader import load_catalog
from providers.contract import Preflight
from providers.finding import Finding
from providers.plugins import Surroundings

SOMETHING_MISSING = 3
_KEYS = ("subject", "passed", "required", "message", "nextStep")
_MARKS = {(True, True): "ok", (True, False): "ok", (False, True): "MISSING", (False, False): "note"}


def surroundings_of(api: KubernetesApi) -> Surroundings:
    """The inputs of a cluster's providers, with the shipped catalog."""
    uid = str(api.get(NAMESPACES, "kube-system")["metadata"]["uid"])
    return Surroundings(uid, SystemClock(), ProviderObjects(api), load_catalog())


def findings_of(
    kubeconfig: str, context: str, providers: Callable[[Surroundings], Mapping[str, object]]
) -> list[Finding]:
    """The findings of a cloud's providers. Raises BadInputError if the cluster or the cloud cannot be reached."""
    surroundings = surroundings_of(connected(kubeconfig, context))
    with as_input_error():
        asked = [one for one in providers(surroundings).values() if isinstance(one, Preflight)]
        return [found for one in asked for found in one.check()]


def print_findings(findings: Sequence[Finding], output: str) -> None:
    if output != "table":
        facts = [(f.subject, f.passed, f.required, f.message, f.next_step) for f in findings]
        print_data([dict(zip(_KEYS, fact, strict=True)) for fact in facts], output)
        return
    rows = [(_MARKS[f.passed, f.required], f.subject, f.message, "" if f.passed else f.next_step) for f in findings]
    print_table(("", "what", "found", "next step"), rows)


def exit_code(findings: Iterable[Finding]) -> int:
    """3 if something that is required is missing."""
    return SOMETHING_MISSING if any(found.required and not found.passed for found in findings) else 0
