"""`foreslice aws trial`: starts a few machines on a real account for some minutes and checks EC2's behaviour."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import as_input_error, cluster_options
from autoscaler.cli.common.live import connected
from autoscaler.cli.common.preflight import surroundings_of
from autoscaler.cli.common.trials import carried_out, check_cost, show
from autoscaler.cluster.resources import AWS_NODE_TEMPLATES
from autoscaler.settings.settings import AwsSettings


@click.command("trial")
@cluster_options
@click.option("--region", default="", metavar="NAME", help="[default: as the environment says]")
@click.option("--profile", default="", metavar="NAME", help="AWS profile. [default: as the environment says]")
@click.option("--template", required=True, metavar="NAME", help="AWSNodeTemplate to launch with.")
@click.option("--type", "instance_type", default="g6.xlarge", show_default=True, metavar="NAME", help="Instance type.")
@click.option("--max-usd", required=True, type=float, metavar="DOLLARS", help="The most that the trial may cost.")
@click.option("--report", default="aws-trial.json", show_default=True, metavar="PATH", help="File for the report.")
@click.option("--yes", is_flag=True, help="Launch. Without this flag the command only prints what it would do.")
@click.pass_context
def trial_aws(
    ctx: click.Context,
    *,
    kubeconfig: str,
    context: str,
    region: str,
    profile: str,
    template: str,
    instance_type: str,
    max_usd: float,
    report: str,
    yes: bool,  # click's
) -> None:
    """It launches one on-demand machine, one spot machine and a gang of two, with the subnets, the image and the role
    of an AWSNodeTemplate. They do not join the cluster. It checks repeated launch tokens, tags, network interfaces, and
    how long EC2 takes to show and to terminate a machine. It terminates every machine, also after Ctrl-C. After a
    crash, the next trial terminates the machines that are left, and each machine shuts itself down after half an hour.
    The report names no account, key or user.

    \b
    Try:
      foreslice aws trial --template gpu --max-usd 5
      foreslice aws trial --template gpu --type g6.xlarge --max-usd 5 --yes

    Exit code 0: all is as expected, or nothing was launched; 3: a check failed; 1: AWS cannot be reached, or the trial
    may cost more than --max-usd.
    """
    from autoscaler.composition.aws import aws_providers
    from providers.aws.provider import AwsProvider

    api = connected(kubeconfig, context)
    surroundings = surroundings_of(api)
    with as_input_error():
        provider = aws_providers(surroundings, AwsSettings(region=region, profile=profile))[AWS_NODE_TEMPLATES.kind]
        assert isinstance(provider, AwsProvider)
        trial = provider.trial(template, instance_type, show)
        cost = trial.cost()
        click.echo(f"five machines of {instance_type} for half an hour at most: up to ${cost}, spot below that")
        check_cost(cost, max_usd)
        if not yes:
            click.echo("nothing was launched; add --yes to launch")
            return
        about: dict[str, object] = {"instanceType": instance_type, "atMostUsd": str(cost)}
        code = carried_out(trial.run, trial.outcomes, report=report, about=about, sdks=("boto3", "botocore"))
    ctx.exit(code)
