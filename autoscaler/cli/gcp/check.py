"""`foreslice gcp check`: whether the project, the node pools and the groups are ready for launches."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import as_input_error, cluster_options
from autoscaler.cli.common.live import connected
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import NAMESPACES
from autoscaler.settings.settings import GcpSettings
from instance_catalog.files.loader import load_catalog
from providers.contract import Preflight
from providers.plugins import Surroundings

SOMETHING_MISSING = 3
_KEYS = ("subject", "passed", "required", "message", "nextStep")


@click.command("check")
@cluster_options
@click.option("--project", default="", metavar="ID", help="[default: as the environment says]")
@output_option()
@click.pass_context
def check_gcp(ctx: click.Context, kubeconfig: str, context: str, project: str, output: str) -> None:
    """Launches nothing.

    The project, the permission to list machines, and the cluster's GCPNodeTemplates: node pools and instance groups,
    what they start, GKE's autoscaling, auto-repair, the GPU driver that GKE installs, and room for names. What is wrong
    comes with the gcloud command that corrects it.

    \b
    Try:
      foreslice gcp check
      foreslice gcp check --project my-project -o json | jq '.[] | select(.passed | not)'

    Exit code 0: all that is required is there; 3: something is missing; 1: the cluster cannot be asked.
    """
    # With google-cloud-compute; `--help` needs none of it.
    from autoscaler.composition.gcp import gcp_providers

    api = connected(kubeconfig, context)
    uid = str(api.get(NAMESPACES, "kube-system")["metadata"]["uid"])
    surroundings = Surroundings(uid, SystemClock(), ProviderObjects(api), load_catalog())
    with as_input_error():
        providers = gcp_providers(surroundings, GcpSettings(project=project)).values()
        findings = [found for one in providers if isinstance(one, Preflight) for found in one.check()]
    if output != "table":
        facts = [(f.subject, f.passed, f.required, f.message, f.next_step) for f in findings]
        print_data([dict(zip(_KEYS, fact, strict=True)) for fact in facts], output)
    else:
        marks = {(True, True): "ok", (True, False): "ok", (False, True): "MISSING", (False, False): "note"}
        print_table(
            ("", "what", "found", "next step"),
            [(marks[f.passed, f.required], f.subject, f.message, "" if f.passed else f.next_step) for f in findings],
        )
    ctx.exit(SOMETHING_MISSING if any(found.required and not found.passed for found in findings) else 0)
