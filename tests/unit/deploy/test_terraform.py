"""The Terraform examples, as far as they can be read without Terraform: they fit the chart and each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_the_role_is_for_the_service_account_of_the_installation(cloud: str) -> None:
    """docs/install.md installs into foreslice-system: another default gives the role to nobody, or to a stranger."""
    text = (ROOT / f"deploy/{cloud}/main.tf").read_text(encoding="utf-8")
    found = dict(re.findall(r'variable "(\w+)" \{[^}]*?default\s*=\s*"([^"]*)"', text))
    assert (found["namespace"], found["service_account"]) == ("foreslice-system", "foreslice")
    assert "-n foreslice-system" in (ROOT / "docs/install.md").read_text(encoding="utf-8")


def test_the_example_node_pool_has_the_label_of_its_capacity_pool() -> None:
    assert '"foreslice.dev/pool"' in (ROOT / "deploy/gcp/main.tf").read_text(encoding="utf-8")


@pytest.mark.parametrize(("cloud", "provider"), [("aws", "aws"), ("gcp", "google")])
def test_the_provider_is_named_with_the_versions_that_it_was_read_for(cloud: str, provider: str) -> None:
    """Without a bound, Terraform takes the newest one, whose arguments may be others."""
    text = (ROOT / f"deploy/{cloud}/main.tf").read_text(encoding="utf-8")
    assert re.search(rf'source  = "hashicorp/{provider}"\n +version = ">= \d[\d.]*, < \d"', text)
