"""`foreslice gcp provisioning-request`: writes requests that GKE's autoscaler serves in its own node pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from autoscaler.cli.common.commands import catalog_option, skip_unknown_option
from autoscaler.cli.common.files import decided_for, read_manifests
from autoscaler.cli.common.output import print_data, yaml_text
from autoscaler.cli.common.where import Asked
from autoscaler.errors import BadInputError
from autoscaler.manifests.load import Loaded
from autoscaler.manifests.queued.requests import STARTING, QueuedRequest, exist_already, queued_requests
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector

_CLOUD = "gcp"
# Reasons that only say that the machine is not bought on demand.
_NOT_BOUGHT = (Code.NEEDS_RESERVATION, Code.OVERFLOW_NEVER)


@click.command("provisioning-request")
@click.option(
    "-f", "--filename", "paths", multiple=True, required=True, metavar="PATH", help="File, directory, or - for stdin."
)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the request.  [default: that of the workload or gang]"
)
@click.option(
    "--live", is_flag=True, help="Also check whether objects with these names exist in a cluster. Changes nothing."
)
@click.option("--kubeconfig", default="", metavar="PATH", help="With --live.  [default: as kubectl]")
@click.option("--context", default="", metavar="NAME", help="With --live.  [default: the current context]")
@click.option(
    "--kubernetes-version",
    metavar="VERSION",
    help="Read the manifests like this version of Kubernetes.  [default: 1.36]",
)
@catalog_option
@skip_unknown_option
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def provisioning_request(
    *,
    paths: tuple[str, ...],
    name: str,
    live: bool,
    kubeconfig: str,
    context: str,
    kubernetes_version: str | None,
    directories: tuple[Path, ...],
    skip_unknown: bool,
    output: str,
) -> None:
    """For node pools created with --enable-queued-provisioning. Only GKE's autoscaler scales these.

    It prints one request of class queued-provisioning.gke.io for each Pod, Job or JobSet, or for all pods of a gang,
    with the pod templates of the files as PodTemplates. The machines of a request start all at once or not at all. They
    run for the time that the pods state (foreslice.dev/expected-duration, activeDeadlineSeconds) plus 30 minutes for
    starting; without a stated time for seven days, GKE's default. Nothing is written to a cluster. The command also
    plans the pods on Google Cloud, and names those that cannot be placed on standard error.

    A request is used once. A request that already exists in the files, or with --live in the cluster, is an error.

    \b
    Try:
      foreslice gcp provisioning-request -f train.yaml > request.yaml
      foreslice gcp provisioning-request -f train.yaml --live --name train-2 | kubectl apply -f -
      kubectl get job/train resourceclaimtemplates -o yaml | foreslice gcp provisioning-request -f -

    Exit code 0: the requests are printed; 1: they cannot be printed, and the message says why.
    """
    if (kubeconfig or context) and not live:
        raise click.UsageError("--kubeconfig and --context say where to look: give --live with them.")
    loaded = read_manifests(paths, kubernetes_version, directories, skip_unknown=skip_unknown)
    requests, problems = queued_requests(loaded, name, cloud=_CLOUD)
    if live and not problems:
        problems = _in_cluster(requests, kubeconfig, context)
    if problems:
        raise BadInputError("no request is written\n" + "\n".join(problem.block for problem in problems))
    if not requests:
        step = "give a Pod, Job or JobSet, and the claim templates and groups that it names"
        raise BadInputError("the manifests have no workload to request capacity for", next_step=step)
    for note in (*_unplaced(loaded, directories), *_notes(requests)):
        click.echo(f"note: {note}", err=True)
    documents = [document for request in requests for document in request.documents()]
    if output == "json":
        print_data({"apiVersion": "v1", "kind": "List", "items": documents}, output)
        return
    for request in requests:
        click.echo("\n".join(f"# {line}" for line in _annotations(request)))
    click.echo("---\n".join(yaml_text(document) for document in documents), nl=False)


def _in_cluster(requests: Sequence[QueuedRequest], kubeconfig: str, context: str) -> tuple[Diagnostic, ...]:
    from autoscaler.cli.gcp.existing import existing_objects  # the client takes a while to import

    return tuple(exist_already(requests, existing_objects(requests, kubeconfig, context), "the cluster"))


def _annotations(request: QueuedRequest) -> Iterator[str]:
    """The annotations that the pods need, as text: the pod template of an existing Job cannot be changed."""
    yield f"{', '.join(request.workloads)}: the pods need these annotations, in the pod template, before they are made:"
    for key, value in request.annotations.items():
        yield f"  {key}: {value}"


def _notes(requests: Sequence[QueuedRequest]) -> Iterator[str]:
    for request in requests:
        if request.seconds is None:
            yield (
                f"{request.name}: its machines run for 7 days, GKE's default: not all pods say how long they run "
                "(foreslice.dev/expected-duration), or a Job starts them one after another"
            )
        else:
            starting = int(STARTING.total_seconds() // 60)
            yield f"{request.name}: machines run for {request.seconds} s, {starting} minutes of it for starting"
        if request.kueue:
            yield (
                f"{request.name}: Kueue admits {' and '.join(request.workloads)}. If its queue has an admission check "
                "for ProvisioningRequests it writes one by itself, and this one would be a second"
            )
        if any(template["spec"].get("resourceClaims") for template in request.templates):
            yield (
                f"{request.name}: whether GKE's autoscaler serves pods with ResourceClaims is not known; Cluster "
                "Autoscaler does not. Try one small request first"
            )


def _unplaced(loaded: Loaded, directories: Sequence[Path]) -> Iterator[str]:
    """Pods for which the plan has no machine of Google Cloud: their request would wait for ever. A plan from files does
    not know the node pools, so it ignores the pods' selection of one; and a type that is not sold on demand can still
    be requested."""
    pods = [_anywhere(pod) for pod in loaded.snapshot.pods]
    free = replace(loaded, snapshot=replace(loaded.snapshot, pods=tuple(pods)))
    found = decided_for(free, directories, policy=Policy(), asked=Asked((_CLOUD,)))
    for left in (*found.plan.left_out, *found.plan.outside):
        if left.reasons and all(reason.code in _NOT_BOUGHT for reason in left.reasons):
            continue
        yield f"pod {left.pod} has no place in the plan: `foreslice plan --cloud {_CLOUD}` with these files says why"


def _anywhere(pod: Pod) -> Pod:
    chosen = {key: value for key, value in pod.node_selector.items() if key != labels.GKE_NODE_POOL}
    terms = pod.affinity.terms if pod.affinity else ()
    rest = tuple(
        replace(term, match_expressions=tuple(r for r in term.match_expressions if r.key != labels.GKE_NODE_POOL))
        for term in terms
    )
    required = (
        NodeSelector(rest) if all(term.match_expressions or term.match_fields for term in rest) and rest else None
    )
    return replace(pod, node_selector=FrozenMap(chosen), affinity=required)
