"""`foreslice gcp check`: checks that the project, the node pools and the groups are ready for launches."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import cluster_options
from autoscaler.cli.common.output import output_option
from autoscaler.cli.common.preflight import exit_code, findings_of, print_findings
from autoscaler.settings.settings import GcpSettings


@click.command("check")
@cluster_options
@click.option("--project", default="", metavar="ID", help="[default: as the environment says]")
@output_option()
@click.pass_context
def check_gcp(ctx: click.Context, kubeconfig: str, context: str, project: str, output: str) -> None:
    """Launches nothing.

    It checks the project, the permissions of your account, and the cluster's GCPNodeTemplates: node pools and instance
    groups, the machines that they start, whether their zones offer these machines, GKE's autoscaling, auto-repair, the
    GPU driver that GKE installs, and whether the names that Foreslice gives to machines fit. For each problem it prints
    the gcloud command that corrects it.

    \b
    Try:
      foreslice gcp check
      foreslice gcp check --project my-project -o json | jq '.[] | select(.passed | not)'

    Exit code 0: all that is required is there; 3: something is missing; 1: the cluster cannot be reached.
    """
    # With google-cloud-compute; `--help` needs none of it.
    from autoscaler.composition.gcp import gcp_providers

    settings = GcpSettings(project=project)
    findings = findings_of(kubeconfig, context, lambda surroundings: gcp_providers(surroundings, settings))
    print_findings(findings, output)
    ctx.exit(exit_code(findings))
