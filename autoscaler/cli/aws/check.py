"""`foreslice aws check`: checks that AWS is ready for launches."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import cluster_options
from autoscaler.cli.common.output import output_option
from autoscaler.cli.common.preflight import exit_code, findings_of, print_findings
from autoscaler.settings.settings import AwsSettings
from providers.finding import FindingTopic


@click.command("check")
@cluster_options
@click.option("--region", default="", metavar="NAME", help="[default: as the environment says]")
@click.option("--profile", default="", metavar="NAME", help="AWS profile. [default: as the environment says]")
@click.option(
    "--queue",
    default="",
    metavar="URL",
    envvar="FORESLICE_AWS_QUEUE",
    show_envvar=True,
    help="Queue with EC2's interruption notices, the controller's setting aws.queue. Without it no queue is checked.",
)
@output_option()
@click.pass_context
def check_aws(
    ctx: click.Context, kubeconfig: str, context: str, region: str, profile: str, queue: str, output: str
) -> None:
    """Launches nothing.

    Account and region, the cluster's AWSNodeTemplates with their subnets, security groups, images, instance profiles
    and placement groups, permissions (by dry runs), its AWSGroupNodeTemplates, quotas, EFA, reservations, and the queue
    of interruption notices: whether it exists, who may send to it, and which events EventBridge sends.

    \b
    Try:
      foreslice aws check
      foreslice aws check --queue https://sqs.us-east-1.amazonaws.com/123456789012/foreslice-research
      foreslice aws check -o json | jq '.[] | select(.required and (.passed | not))'

    Exit code 0: all that is required is there; 3: something is missing; 1: the cluster or AWS cannot be reached.
    """
    from autoscaler.composition.aws import aws_providers

    settings = AwsSettings(region=region, profile=profile, queue=queue)
    findings = findings_of(kubeconfig, context, lambda surroundings: aws_providers(surroundings, settings))
    if any(found.topic is FindingTopic.NODE_GROUPS for found in findings):  # groups alone are enough
        findings = [found for found in findings if found.topic is not FindingTopic.NO_NODE_TEMPLATES]
    print_findings(findings, output)
    ctx.exit(exit_code(findings))
