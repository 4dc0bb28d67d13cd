"""Semantic versions follow blang/semver v4 and the apiserver's normalisation (library/semverlib.go, v0.36.3)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from instance_catalog.kubernetes.semver import SemanticVersion, SemverError

parse = SemanticVersion.parse


@pytest.mark.parametrize("text", ["1.2.3", "1.2.3-beta.1+build.1", "0.0.0", "1.2.3--", "18446744073709551615.0.0"])
def test_accepts(text: str) -> None:
    assert parse(text) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "v1.0.0", " 1.0.0", "1. 0.0", "1.0.0 ", "01.01.01", "1", "1.1", "1.2.3-", "1.2.3+", "1.2.3-01",
        "1.2.3-a..b", "1.2.3-ä", "18446744073709551616.0.0", "1.2.3.4", "-1.2.3",
    ],
)  # fmt: skip
def test_refuses(text: str) -> None:
    with pytest.raises(SemverError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("v1.0.0", "1.0.0"), ("01.01.01", "1.1.1"), ("1", "1.0.0"), ("1.1", "1.1.0"), ("v01.01", "1.1.0"),
        ("1.2.03-a", "1.2.3-a"),
    ],
)  # fmt: skip
def test_normalizes(text: str, meaning: str) -> None:
    assert parse(text, normalize=True) == parse(meaning)


@pytest.mark.parametrize("text", ["", "v", "vv1", "1.", " 1.0.0", "1.1-beta", "01.02.03-01"])
def test_refuses_even_when_normalizing(text: str) -> None:
    with pytest.raises(SemverError):
        parse(text, normalize=True)


def test_order_is_precedence() -> None:
    ordered = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-11",
        "1.0.0-a",
        "1.0.0-a.1",
        "1.0.0-a.b",
        "1.0.0",
        "1.0.1",
        "1.1.0",
        "2.0.0",
    ]
    versions = [parse(text) for text in ordered]
    assert all(earlier < later for earlier, later in pairwise(versions))


def test_build_metadata_is_ignored() -> None:
    assert parse("1.2.3+a") == parse("1.2.3+b")
    assert hash(parse("1.2.3+a")) == hash(parse("1.2.3"))
