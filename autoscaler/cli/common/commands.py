"""Building blocks of commands: groups that import a command on first use, shared options, errors of providers."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

Command = TypeVar("Command", bound=Callable[..., Any])


class LazyGroup(click.Group):
    """Lists its commands without importing them.

    `lazy` maps a name to "module:function" and the first sentence of the help. That sentence stands only there:
    the docstring of the function continues it.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with its whole help."""
        if cmd_name not in self.lazy:
            return None
        place, summary = self.lazy[cmd_name]
        module, _, function = place.partition(":")
        command = copy.copy(getattr(importlib.import_module(module), function))
        assert isinstance(command, click.Command)
        command.help = f"{summary}\n\n{inspect.cleandoc(command.help or '')}".rstrip()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, with whole sentences: click would cut them off to fit 80 columns."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or an error that names the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from instance_catalog.spelling import did_you_mean  # slow to import, and only needed here

            step = did_you_mean(args[0], self.lazy, f"`{ctx.command_path} --help` lists them")
            raise click.UsageError(f"{error.message.rstrip('.')}; {step}", ctx) from error


class PathType(click.Path):
    """click.Path with pathlib paths. `--help` shows options without a value, so it does not import pathlib."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> Path:
        """The text of an option as a path."""
        from pathlib import Path

        return Path(value)


_DIRECTORY: Final = PathType()

catalog_option = click.option(
    "--catalog",
    "directories",
    metavar="DIR",
    multiple=True,
    type=_DIRECTORY,
    help="Directory of catalog files that override the shipped ones. May be repeated; the last one wins.",
)
skip_unknown_option = click.option(
    "--skip-unknown", is_flag=True, help="Leave out objects of kinds that Foreslice does not know, with a warning."
)
strict_option = click.option("--strict", is_flag=True, help="Treat unknown fields of manifests as errors.")
below_option = click.option(
    "--catalog",
    "directories",
    metavar="DIR",
    multiple=True,
    type=_DIRECTORY,
    help="Directory of catalog files that those of --into override. May be repeated.",
)
into_option = click.option(
    "--into",
    "target",
    metavar="DIR",
    required=True,
    type=PathType(file_okay=False),
    help="Directory of your catalog files, created if needed. Give it to other commands as --catalog.",
)
kubernetes_option = click.option(
    "--kubernetes-version", metavar="VERSION", default="1.36", show_default=True, help="Version of the API server."
)


@contextmanager
def as_input_error() -> Iterator[None]:
    """Raise ProviderErrors as BadInputErrors, which `foreslice` prints with their next step."""
    from autoscaler.errors import BadInputError
    from providers.errors import ProviderError

    try:
        yield
    except ProviderError as error:
        raise BadInputError(error.message, next_step=error.next_step) from error


def cluster_options(command: Command) -> Command:
    """--kubeconfig and --context, as kubectl has them."""
    for decorate in (
        click.option("--context", default="", metavar="NAME", help="[default: the current context]"),
        click.option("--kubeconfig", default="", metavar="PATH", help="[default: as kubectl]"),
    ):
        command = decorate(command)
    return command


def refuse_both(paths: tuple[str, ...], *, live: bool) -> None:
    """Raises UsageError unless exactly one of manifests and --live is given."""
    if live == bool(paths):
        raise click.UsageError("Give either -f with manifests, or --live for the pods of a running cluster.")
