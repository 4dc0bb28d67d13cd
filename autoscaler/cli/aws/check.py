"""`foreslice aws`: what AWS needs to be ready for launches."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import as_input_error, cluster_options
from autoscaler.cli.common.live import connected
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import NAMESPACES
from autoscaler.settings.settings import AwsSettings
from instance_catalog.files.loader import load_catalog
from providers.contract import Preflight
from providers.plugins import Surroundings

SOMETHING_MISSING = 3
_KEYS = ("subject", "passed", "required", "message", "nextStep")


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
    help="Queue with EC2's notices, the controller's setting aws.queue. Without it no queue is looked at.",
)
@output_option()
@click.pass_context
def check_aws(
    ctx: click.Context, kubeconfig: str, context: str, region: str, profile: str, queue: str, output: str
) -> None:
    """Launches nothing.

    Account and region, the cluster's AWSNodeTemplates with their subnets, security groups, images, instance profiles
    and placement groups, permissions (by dry runs), its AWSGroupNodeTemplates, quotas, EFA, reservations, and the queue
    of notices: whether it exists, who may send to it and what EventBridge sends.

    \b
    Try:
      foreslice aws check
      foreslice aws check --queue https://sqs.us-east-1.amazonaws.com/123456789012/foreslice-research
      foreslice aws check -o json | jq '.[] | select(.required and (.passed | not))'

    Exit code 0: all that is required is there; 3: something is missing; 1: the cluster or AWS cannot be asked.
    """
    from autoscaler.composition.aws import aws_providers

    api = connected(kubeconfig, context)
    uid = str(api.get(NAMESPACES, "kube-system")["metadata"]["uid"])
    surroundings = Surroundings(uid, SystemClock(), ProviderObjects(api), load_catalog())
    with as_input_error():
        providers = aws_providers(surroundings, AwsSettings(region=region, profile=profile, queue=queue)).values()
        findings = [found for one in providers if isinstance(one, Preflight) for found in one.check()]
    if any(found.subject.startswith("AWSGroupNodeTemplate ") for found in findings):
        findings = [found for found in findings if found.subject != "AWSNodeTemplates"]  # groups alone are enough
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
