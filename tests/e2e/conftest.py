"""One control plane for all tests that only ask it questions, and the account of how often plans came true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.harness.control_plane import ControlPlane

AGREEMENT = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Kubernetes with default gates."""
    with ControlPlane() as running:
        yield running


@pytest.fixture(scope="session")
def agreement(pytestconfig: pytest.Config) -> Counter[str]:
    """Counts of pods, by what simulator and scheduler agreed on; shown at the end of the run."""
    return pytestconfig.stash.setdefault(AGREEMENT, Counter())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(AGREEMENT, Counter())
    if counts["pods"]:
        terminalreporter.write_line(
            f"examples: {counts['pods']} pods, {counts['shape']} same node shape, {counts['devices']} same devices"
        )
    if counts["random"]:
        terminalreporter.write_line(
            f"random: {counts['random']} pods, {counts['same verdict']} same verdict "
            f"({counts['Fits']} fit, {counts['DoesNotFit']} do not, {counts['Fatal']} fatal), "
            f"{counts['same devices']} of those that fit with the same devices"
        )
