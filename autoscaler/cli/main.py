"""`foreslice`: the program with its commands, exit codes and streams."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from autoscaler.cel.parser.kept_tables import keep_tables_in
from autoscaler.cli.common.commands import LazyGroup
from autoscaler.cli.common.extras import missing_extra
from autoscaler.cli.common.terminal import guard_streams, guarded_streams, no_styles
from autoscaler.composition.commands import CLOUD_COMMANDS
from autoscaler.errors import ForesliceError
from instance_catalog.package_data import keep_contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from instance_catalog.package_data import Folders

# name -> ("module:function", first sentence of the help)
COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("autoscaler.cli.plan:plan", "Show which nodes the pending pods need, why, and at what price."),
    "diff": ("autoscaler.cli.diff:diff", "Show how two plans, or the plans for two revisions of manifests, differ."),
    "simulate": (
        "autoscaler.cli.simulate:simulate",
        "Simulate days of a workload under several policies: cost, waiting, GPU-hours.",
    ),
    "slices": ("autoscaler.cli.slices:slices", "Show the ResourceSlices that an instance type's drivers will publish."),
    "lint": ("autoscaler.cli.lint:lint", "Check claims and classes: what is refused, what never matches, what fails."),
    "cel": (
        "autoscaler.cli.cel:cel",
        "Evaluate a CEL selector on the devices of an instance type, of slices, or of every type.",
    ),
    "catalog": ("autoscaler.cli.catalog.group:catalog", "List, show, check and change the catalog of instance types."),
    "status": ("autoscaler.cli.status:status", "Show the pools: nodes, spending, and what they would launch."),
    "explain": ("autoscaler.cli.explain:explain", "Explain why a pod waits, and what was done about it."),
    "nodes": ("autoscaler.cli.nodes:nodes", "List the ProvisionedNodes: phase, age, offering, price and reason."),
    "doctor": (
        "autoscaler.cli.doctor:doctor",
        "Check for problems that would stop nodes from launching or joining, and say what to do about each.",
    ),
    "blocks": ("autoscaler.cli.blocks.group:blocks", "List the capacity blocks of a cluster; find and buy blocks."),
    **CLOUD_COMMANDS,
    "run": ("autoscaler.cli.run:run", "Run the controller: observe, or launch nodes for pools in mode Act."),
    "probe": ("autoscaler.cli.probe:probe", "Read this GPU node into a record that the catalog can import."),
    "demo": ("autoscaler.cli.demo:demo", "Run the whole autoscaler on an embedded cluster and a simulated cloud."),
    "completion": (
        "autoscaler.cli.completion:completion",
        "Print the shell completion script for bash, zsh or fish.",
    ),
    "version": (
        "autoscaler.cli.version:version",
        "Print the version, the supported Kubernetes versions and the catalog's digest.",
    ),
}

_INTERRUPTED: Final = 128 + signal.SIGINT  # the exit code of shells for a program that Ctrl-C ended


class Foreslice(LazyGroup):
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program; all its output is made printable."""
        with guarded_streams():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. A reader such as `| head` that closes the pipe is no failure, as it would be for click; a
        missing package of an extra is an error with the command that installs it."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None
        except BrokenPipeError:
            ctx.exit(0)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's callback
    if wanted:
        from importlib.metadata import version

        click.echo(f"foreslice {version('foreslice')}")
        ctx.exit()


@click.group(cls=Foreslice, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "color": True})
@click.option(
    "--no-color",
    is_flag=True,
    default=lambda: bool(os.environ.get("NO_COLOR")),
    help="Print plain text on terminals as well, as with the environment variable NO_COLOR.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version; the command `version` prints more.",
)
@click.pass_context
def foreslice(ctx: click.Context, *, no_color: bool) -> None:
    """Plan and launch nodes for pods that claim devices through Dynamic Resource Allocation (DRA).

    \b
    Try:
      foreslice demo                          run everything in memory, without a cluster or a cloud
      foreslice plan -f manifests/            which nodes would my pending pods get, and why
      foreslice plan --live                   the same for a cluster, which it does not change
      foreslice slices p5.48xlarge            what the drivers on that type will publish
      foreslice catalog list --accelerator H100

    \b
    Exit codes:
      0    success
      1    the input is invalid, or something failed; the message ends with the next step
      2    unknown option or wrong arguments
      3    the command worked and found a problem: a pod that cannot be placed, an error of lint or doctor, drift
      130  interrupted
    """
    if no_color:
        no_styles(ctx)


def collect_rarely() -> None:
    """Looks for garbage as seldom as suits a process that lives on.

    A reconcile makes hundreds of thousands of objects that last until its plan is written. At Python's own pace, all
    that is known of the cluster and the catalog is looked through several times meanwhile: half the time of a large
    reconcile.
    """
    gc.set_threshold(50_000, 10, 10)
    gc.callbacks.append(set_aside)


def set_aside(phase: str, info: dict[str, int]) -> None:
    """Excludes the objects that survive a full collection from later collections.

    A full collection in a cluster of 5,000 nodes takes seconds. An excluded object is still freed with its last
    reference, except for cycles; so this happens only if there are more objects than were excluded before, which is
    rare.
    """
    if phase == "stop" and info["generation"] == 2 and len(gc.get_objects(generation=2)) > gc.get_freeze_count():
        gc.freeze()


def _cache_directory() -> Path | None:
    # Nothing that a help text needs, and pathlib takes a tenth of its time.
    from autoscaler.catalog_refresh.cache_directory import cache_directory

    return cache_directory()


def _facts(read: Callable[[], Folders]) -> Folders:
    from autoscaler.catalog_refresh.shipped_cache import shipped_facts

    return shipped_facts(read)


def main() -> None:
    one_shot = sys.argv[1:2] != ["run"]
    if one_shot:
        # A command ends before garbage would matter; collecting it cost a quarter of a plan's time.
        gc.disable()
        # Other packages' plugins of pydantic have no say here, and looking for them took 0.01 s.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
        keep_tables_in(_cache_directory)
        keep_contents(_facts)
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
        click.echo(f"error: {error}", err=True, color=True)
        return 1
    except OSError as error:
        return _disk_full(error)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            code = code or _disk_full(error)
        # Discard what is left: the interpreter would report an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _disk_full(error: OSError) -> int:
    """The exit code for a full disk; any other failure is raised again."""
    if error.errno != errno.ENOSPC:
        raise error
    click.echo("error: the output cannot be written: the disk is full\n  free some space, or write elsewhere", err=True)
    return 1


def _prog_name() -> str:
    return "kubectl foreslice" if os.path.basename(sys.argv[0]).startswith("kubectl-") else "foreslice"
