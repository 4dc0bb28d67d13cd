"""`foreslice lint`: checks claims and classes before a pod waits for them."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import click

from autoscaler.cli.common.commands import catalog_option, skip_unknown_option
from autoscaler.cli.common.files import catalog_of, now_of, parsed_manifests, problems_text
from autoscaler.cli.common.output import output_option, print_data
from autoscaler.errors import BadInputError
from autoscaler.lint.advice import advice
from autoscaler.lint.check import lint as check
from autoscaler.lint.devices.offers import catalog_offers, pool_driver_sets
from autoscaler.lint.meant_advice import meant_advice
from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.releases import names_of_releases
from autoscaler.lint.rules import CEL_COMPILE, INVALID_OBJECT, QUESTIONABLE, UNKNOWN_FIELD, Finding, Level
from autoscaler.lint.subjects import subject_of
from autoscaler.manifests.load import Loaded
from autoscaler.planning.supply.drivers import wanted_drivers
from autoscaler.report.tables.lint_sarif import sarif_of
from autoscaler.report.tables.lint_text import document_of, lines_of
from instance_catalog.diagnostic import Severity
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.prediction.variants import chosen_profiles
from instance_catalog.types.catalog import Catalog

ERRORS_FOUND = 3
_RULES = {
    Severity.ERROR: INVALID_OBJECT,
    Severity.UNKNOWN_FIELD: UNKNOWN_FIELD,
    Severity.WARNING: QUESTIONABLE,
}


@click.command()
@click.option(
    "-f", "--filename", "paths", multiple=True, required=True, metavar="PATH", help="File, directory, or - for stdin."
)
@click.option(
    "--kubernetes-version", metavar="VERSION", help="Decide like this version of Kubernetes.  [default: 1.36]"
)
@catalog_option
@skip_unknown_option
@output_option("sarif")
def lint(
    *,
    paths: tuple[str, ...],
    kubernetes_version: str | None,
    directories: tuple[Path, ...],
    skip_unknown: bool,
    output: str,
) -> None:
    """It evaluates selectors on every device that the catalog's instance types will publish, with every driver profile
    that they may run, and on the ResourceSlices in the manifests. It also checks pods, pools and all other objects that
    `plan` reads. docs/lint.md lists the rules.

    \b
    Try:
      foreslice lint -f deploy/
      kubectl get deviceclasses,resourceclaimtemplates -A -o yaml | foreslice lint -f -
      foreslice lint -f deploy/ -o sarif > foreslice.sarif

    Exit code 0: no errors (warnings may be printed); 3: errors; 1: the input cannot be read.
    """
    loaded = _load(paths, kubernetes_version, directories, skip_unknown=skip_unknown)
    findings = _findings(loaded, directories)
    if loaded.snapshot.profile.note:
        click.echo(f"note: {loaded.snapshot.profile.note}", err=True)
    match output:
        case "table":
            for line in lines_of(findings):
                click.echo(line)
        case "sarif":
            print_data(sarif_of(findings, version("foreslice")), "json")
        case _:
            print_data(document_of(findings), output)
    if any(finding.level is Level.ERROR for finding in findings):
        sys.exit(ERRORS_FOUND)


def _load(paths: tuple[str, ...], version: str | None, directories: tuple[Path, ...], *, skip_unknown: bool) -> Loaded:
    loaded = parsed_manifests(paths, version, directories, skip_unknown=skip_unknown, planned=False)
    if not loaded.documents and loaded.problems:
        raise BadInputError(f"nothing to check\n{problems_text(loaded)}")
    return loaded


def _findings(loaded: Loaded, directories: tuple[Path, ...]) -> list[Finding]:
    """The findings of the checks and of the parsers, by place. A selector that does not compile is reported once."""
    documents = {(document.file, document.line, document.name): document for document in loaded.documents}
    subjects = [
        subject
        for document in loaded.documents
        if (subject := subject_of(document.value, document.name, document.origin)) is not None
    ]
    catalog, profile = catalog_of(loaded, directories, now_of(loaded)), loaded.snapshot.profile
    offers = catalog_offers(catalog, profile, _driver_sets(loaded, catalog))
    found = []
    for finding in check(subjects, loaded.snapshot, offers, releases=names_of_releases(catalog, profile)):
        problem = finding.diagnostic
        document = documents[problem.file, problem.line, problem.subject]
        found.append(finding.at(document.file, document.locate(problem.path) if problem.path else document.line))
    surprises = (
        *advice(loaded.snapshot),
        *foreign_advice(loaded.snapshot, catalog),
        *meant_advice(loaded.snapshot, catalog),
    )
    found += [Finding(QUESTIONABLE, surprise) for surprise in surprises]
    reported = [f.diagnostic for f in found if f.rule is CEL_COMPILE]
    places = {(p.file, p.line, p.path) for p in reported}
    found += [Finding(_RULES[p.severity], p) for p in loaded.problems if (p.file, p.line, p.path) not in places]
    worst_first = list(Level)
    return sorted(found, key=lambda f: (f.diagnostic.file, f.diagnostic.line, worst_first.index(f.level)))


def _driver_sets(loaded: Loaded, catalog: Catalog) -> tuple[DriverSet, ...]:
    """The sets of pools and blocks, and drivers that are not installed by default if a claim or class names them."""
    snapshot = loaded.snapshot
    classes = {found.name: found for found in snapshot.classes}
    requests = [request for claim in snapshot.claims.values() for request in claim.requests]
    named = wanted_drivers(requests, classes)
    return (*pool_driver_sets(snapshot, catalog), *chosen_profiles(named))
