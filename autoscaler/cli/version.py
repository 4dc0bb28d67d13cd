"""`foreslice version`."""

from __future__ import annotations

from importlib.metadata import version as installed

import click

from autoscaler.cli.common.output import output_option, print_data
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import PROFILES, REFERENCE


@click.command()
@output_option()
def version(output: str) -> None:

    catalog = load_catalog()
    facts = {
        "version": installed("foreslice"),
        "kubernetesProfiles": [profile.name for profile in PROFILES],
        "referenceProfile": REFERENCE.name,
        "catalogTypes": len(catalog.types),
        "catalogDigest": catalog.digest,
    }
    if output != "table":
        print_data(facts, output)
        return
    click.echo(f"foreslice {facts['version']}")
    click.echo(f"Kubernetes profiles: {', '.join(p.name for p in PROFILES)} (reference {REFERENCE.name})")
    click.echo(f"catalog: {len(catalog.types)} instance types, digest {catalog.digest}")
