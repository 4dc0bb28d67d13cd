"""`foreslice diff`: compares two plans, or the plans for two revisions of manifests."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click

from autoscaler.cli.common.commands import catalog_option, skip_unknown_option, strict_option
from autoscaler.cli.common.files import decided_for, read_manifests
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.cli.common.where import Asked, where_options
from autoscaler.errors import BadInputError
from autoscaler.planning.policy import Policy
from autoscaler.report.plan_diff import NotAPlanError, PlanFacts, diff_document, diff_summary, diff_tables, lost_places
from autoscaler.report.plan_document import document_of
from instance_catalog.dataclass import dataclass

PLACES_LOST = 3


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="PATH", help="Manifests that both have, such as pools."
)
@click.option(
    "--kubernetes-version", metavar="VERSION", help="Decide like this version of Kubernetes.  [default: 1.36]"
)
@catalog_option
@skip_unknown_option
@strict_option
@where_options
@output_option()
def diff(
    *,
    before: str,
    after: str,
    paths: tuple[str, ...],
    kubernetes_version: str | None,
    directories: tuple[Path, ...],
    skip_unknown: bool,
    strict: bool,
    output: str,
    asked: Asked,
) -> None:
    """A and B are plans that `plan -o json` printed, or manifests to plan for: files, directories, or `git:REV:PATH`
    for a path as a git revision has it.

    Shows the nodes that are added and removed, the pods that move or lose their place, and the difference in cost.

    \b
    Try:
      foreslice diff git:main:deploy/ deploy/
      foreslice diff yesterday.json today.json
      foreslice diff old/ new/ -f pools/ -o json

    Exit code 0: B places every pod that A places; 3: it does not place all of them; 1: the input cannot be used.
    """
    if before == after == "-":
        raise BadInputError("- is given twice", next_step="standard input is read once: give one of the two as a file")
    options = _Options(paths, kubernetes_version, directories, asked, strict=strict, skip_unknown=skip_unknown)
    with ExitStack() as kept:
        facts = [
            _facts(kept.enter_context(checked_out(given)) if given.startswith(PREFIX) else given, options)
            for given in (before, after)
        ]
    found = diff_document(*facts)
    if output != "table":
        print_data(found, output)
    else:
        for table in diff_tables(found):
            if table.rows:
                print_table(table.columns, table.rows, title=table.title)
                click.echo("")
        click.echo(diff_summary(found))
    if lost_places(found):
        sys.exit(PLACES_LOST)


@dataclass(frozen=True, slots=True)
class _Options:
    paths: Sequence[str]
    version: str | None
    directories: Sequence[Path]
    asked: Asked
    strict: bool
    skip_unknown: bool


def _facts(source: str | Checkout, options: _Options) -> PlanFacts:
    """Of a plan that is there already, or of one that is made for the manifests."""
    given = source if isinstance(source, str) else source.path
    known_as = ("", "") if isinstance(source, str) else (source.folder, source.revision)
    document = _plan_in(given)
    if document is None:
        loaded = read_manifests(
            [given, *options.paths],
            options.version,
            options.directories,
            strict=options.strict,
            skip_unknown=options.skip_unknown,
            known_as=known_as,
        )
        document = document_of(decided_for(loaded, options.directories, policy=Policy(), asked=options.asked).plan)
    try:
        return PlanFacts.of(document)
    except NotAPlanError as error:
        step = "make it with this version: foreslice plan -f PATH -o json"
        name = given.replace(*known_as)
        raise BadInputError(f"{name} is not a plan that can be compared: {error}", next_step=step) from error


def _plan_in(given: str) -> dict[str, Any] | None:
    """The Plan that a file holds; None for a file of anything else."""
    file = Path(given)
    if not file.is_file():
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except RecursionError:
        step = "make it with this version: foreslice plan -f PATH -o json"
        raise BadInputError(f"{given} is not a plan: its values are nested too deep", next_step=step) from None
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("kind") == "Plan" else None


PREFIX: Final = "git:"


@dataclass(frozen=True, slots=True)
class Checkout:
    """The temporary location of the path; `folder` is replaced by `revision` ("git:main:") in every message."""

    path: str
    folder: str
    revision: str


@contextmanager
def checked_out(text: str) -> Iterator[Checkout]:
    """A folder with the path as the revision has it, for as long as it is needed. Raises BadInputError."""
    revision, _, path = text.removeprefix(PREFIX).partition(":")
    if not revision or not path:
        raise BadInputError(f"{text} names no revision and path", next_step="write git:main:deploy/")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", about=text)
    archive = _git("archive", "--format=tar", commit.decode().strip(), "--", path, about=text)
    with tempfile.TemporaryDirectory(prefix="foreslice-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for member in files:
                content = files.extractfile(member) if member.isfile() else None
                if content is not None:
                    file = Path(folder) / member.name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content.read())
        yield Checkout(str(Path(folder) / path), f"{folder}/", f"{PREFIX}{revision}:")


def _git(*arguments: str, about: str) -> bytes:
    if shutil.which("git") is None:
        raise BadInputError(f"{about} needs git, which is not installed", next_step="install git, or give files")
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    if done.returncode:
        error = done.stderr.decode(errors="replace").strip() or "there is no such revision"
        raise BadInputError(
            f"{about} cannot be read: {error}", next_step="run it inside the repository, and check REV and PATH"
        )
    return done.stdout
