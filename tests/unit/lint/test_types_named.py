"""Instance types that a text names in another spelling."""

from __future__ import annotations

import pytest

from autoscaler.lint import other_systems
from autoscaler.lint.other_systems import type_named
from tests.builders import shipped


def test_text_is_read_once_for_all_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text may be as long as an object."""
    read: list[str] = []
    spelled = other_systems._spelled

    def counted(text: str) -> str:
        read.append(text)
        return spelled(text)

    monkeypatch.setattr(other_systems, "_spelled", counted)
    assert type_named("a3-highgpu-8g-pool", shipped("a3-highgpu-8g", "trn1.32xlarge", "g4dn.xlarge")) == "a3-highgpu-8g"
    assert read.count("a3-highgpu-8g-pool") == 1
