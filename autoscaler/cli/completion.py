"""`foreslice completion SHELL`: prints the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from autoscaler.cli.main import foreslice


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """\b
    bash:  foreslice completion bash > ~/.local/share/bash-completion/completions/foreslice
    zsh:   foreslice completion zsh > "${fpath[1]}/_foreslice"
    fish:  foreslice completion fish > ~/.config/fish/completions/foreslice.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click has the three shells of the choice"
    click.echo(found(foreslice, {}, "foreslice", "_FORESLICE_COMPLETE").source())
