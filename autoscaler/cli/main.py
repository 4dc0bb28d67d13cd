"""`foreslice`: the command group, which imports a command's module only when that command is asked for."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
from typing import Any, Final

import click

from autoscaler.cli.common.terminal import guard_streams, guarded_streams

# name -> (module, one line for --help): the modules stay unimported until used.
COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("autoscaler.cli.plan", "Say which nodes the pending pods of your manifests need, why, and at what price."),
    "slices": ("autoscaler.cli.slices", "Show the ResourceSlices that an instance type's drivers will publish."),
    "lint": ("autoscaler.cli.lint", "Check claims and classes: what is refused, what never matches, what fails."),
    "cel": ("autoscaler.cli.cel", "Try a selector on the devices of an instance type, of slices, or of every type."),
    "catalog": ("autoscaler.cli.catalog.group", "List, show and check the catalog of instance types."),
    "status": ("autoscaler.cli.status", "Show the pools of a cluster, what they have and what they would launch."),
    "explain": ("autoscaler.cli.explain", "Say why one pod waits, and what was done about it."),
    "nodes": ("autoscaler.cli.nodes", "List the nodes that Foreslice asked for in a cluster."),
    "doctor": ("autoscaler.cli.doctor", "Look for what would keep nodes from being bought or from working."),
    "blocks": ("autoscaler.cli.blocks.group", "List the capacity blocks of a cluster; find and buy some."),
    "aws": ("autoscaler.cli.aws", "Check what AWS needs to be ready for launches."),
    "run": ("autoscaler.cli.run", "Run the controller of a cluster: observe, or launch for pools in mode Act."),
    "probe": ("autoscaler.cli.probe", "Read this GPU node into a record that the catalog can import."),
    "demo": ("autoscaler.cli.demo", "Run the whole autoscaler on an embedded cluster and a simulated cloud."),
    "completion": ("autoscaler.cli.completion", "Print the shell completion script for bash, zsh or fish."),
    "version": ("autoscaler.cli.version", "Print the version, the Kubernetes profiles and the catalog's digest."),
}


_INTERRUPTED: Final = 128 + signal.SIGINT  # as a shell tells of a program that Ctrl-C ended


class LazyGroup(click.Group):
    """Knows the names and one-line helps of its commands; loads a command's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command object, which is named like the command in its module."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; whatever it prints is made printable."""
        with guarded_streams():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. That `| head` has read enough is no failure, which click would make of it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            ctx.exit(0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Unknown names get the nearest known one; click itself only knows commands that are imported."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from instance_catalog.spelling import did_you_mean

            step = did_you_mean(args[0], COMMANDS, "`foreslice --help` lists them")
            raise click.UsageError(f"{error.message.rstrip('.')}; {step}", ctx) from error


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"foreslice {version('foreslice')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--no-color",
    is_flag=True,
    default=lambda: bool(os.environ.get("NO_COLOR")),
    help="Plain text on terminals, too, as with the environment variable NO_COLOR.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version; the command `version` tells more.",
)
@click.pass_context
def foreslice(ctx: click.Context, no_color: bool) -> None:
    """Plan and launch nodes for pods that claim devices through Dynamic Resource Allocation (DRA).

    \b
    Try:
      foreslice demo                          see the whole thing work, nothing needed
      foreslice plan -f manifests/            which nodes would my pending pods get, and why
      foreslice plan --live                   the same for a cluster, which is only read
      foreslice slices p5.48xlarge            what the drivers on that type will publish
      foreslice catalog list --accelerator H100

    \b
    Exit codes:
      0    all is well
      1    the input cannot be used, or something failed; the message says what to do
      2    wrong usage
      3    it worked, and the answer is bad: a pod without a place, an error that lint or doctor found, drift
      130  interrupted
    """
    ctx.color = False if no_color else None


def collect_rarely() -> None:
    """Looks for garbage as seldom as suits a process that lives on.

    A round makes hundreds of thousands of objects that last until its plan is written. At Python's own pace, all that
    is known of the cluster and the catalog is looked through several times meanwhile: half the time of a large round.
    """
    gc.set_threshold(50_000, 10, 10)


def main() -> None:
    """The entry point."""
    one_shot = sys.argv[1:2] != ["run"]
    if one_shot:
        # A command ends before garbage would matter; collecting it cost a quarter of a plan's time.
        gc.disable()
    else:
        collect_rarely()
    guard_streams()
    code = _flushed(_run())
    if one_shot:
        # Taking a plan apart, object by object, cost a sixth of its time; the process ends anyway.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    """The exit code; errors that a person can act on are printed without a traceback."""
    from autoscaler.errors import ForesliceError

    try:
        # Outside its standalone mode, click returns the code of an early exit such as --help.
        code = foreslice.main(prog_name=_prog_name(), standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return _INTERRUPTED
    except ForesliceError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except OSError as error:
        return _disk_full(error)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            code = code or _disk_full(error)
        # What is left goes nowhere: the interpreter would complain of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _disk_full(error: OSError) -> int:
    """The exit code where the output goes to a disk that is full; any other failure is raised again."""
    if error.errno != errno.ENOSPC:
        raise error
    click.echo("error: the output cannot be written: the disk is full\n  free some space, or write elsewhere", err=True)
    return 1


def _prog_name() -> str:
    return "kubectl foreslice" if os.path.basename(sys.argv[0]).startswith("kubectl-") else "foreslice"
