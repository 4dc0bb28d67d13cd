"""A package that is missing: which extra of foreslice installs it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from autoscaler.cli.common.extras import missing_extra
from instance_catalog.types.clouds import cloud_facts

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
EXTRAS = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
SDKS = [(package, cloud) for cloud, facts in cloud_facts().items() for package in facts.sdk]


@pytest.mark.parametrize(("package", "extra"), [*SDKS, ("kubernetes", "cluster")])
def test_the_extra_of_a_missing_package_is_named(package: str, extra: str) -> None:
    error = missing_extra(ModuleNotFoundError(name=f"{package}.part"))
    assert error is not None
    assert error.next_step == f"pip install 'foreslice[{extra}]'"
    assert extra in EXTRAS


def test_a_package_of_no_extra_is_no_ones() -> None:
    assert missing_extra(ModuleNotFoundError(name="numpy")) is None
