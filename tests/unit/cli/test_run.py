"""Settings of `foreslice run`: a file, over it the environment, over both the flags."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli import run as command
from autoscaler.errors import BadInputError
from autoscaler.settings import Settings


class Recorded:
    """Stands for the controller: keeps what it was made with, and ends at once."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def __call__(self, **given: Any) -> Recorded:
        self.given = given
        return self

    def run(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to stop."""

    @property
    def settings(self) -> Settings:
        found = self.given["settings"]
        assert isinstance(found, Settings)
        return found


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    monkeypatch.setattr(command, "controller", recorded)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    return recorded


@pytest.mark.parametrize(
    ("environment", "flags", "idle"),
    [
        pytest.param({}, [], 3, id="file"),
        pytest.param({"FORESLICE_BATCH_IDLE": "4s"}, [], 4, id="environment over file"),
        pytest.param({"FORESLICE_BATCH_IDLE": "4s"}, ["--batch-idle", "5s"], 5, id="flag over both"),
    ],
)
def test_who_overrides_whom(
    controller: Recorded, tmp_path: Path, environment: dict[str, str], flags: list[str], idle: int
) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("batch-idle: 3s\nresync: 1m30s\ncontext: staging\n")
    result = CliRunner().invoke(command.run, ["--config", str(config), *flags], env=environment)
    assert result.exit_code == 0, result.output
    assert controller.settings.batch.idle == timedelta(seconds=idle)
    assert controller.settings.batch.longest == timedelta(seconds=10)
    assert controller.settings.loop.resync == timedelta(seconds=90)
    assert controller.given["context"] == "staging"


def test_the_file_can_come_from_the_environment(controller: Recorded, tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("batch-max: 20s\n")
    assert CliRunner().invoke(command.run, [], env={"FORESLICE_CONFIG": str(config)}).exit_code == 0
    assert controller.settings.batch.longest == timedelta(seconds=20)


@pytest.mark.parametrize(
    ("text", "message", "step"),
    [
        pytest.param("batch-idel: 3s", "there is no setting 'batch-idel'", "did you mean 'batch-idle'?", id="misspelt"),
        pytest.param("{{", "cannot be read", "give a YAML file", id="not YAML"),
        pytest.param("- a", "there is no setting", "the settings are: batch-idle, ", id="not a mapping"),
    ],
)
def test_a_file_that_cannot_be_used(controller: Recorded, tmp_path: Path, text: str, message: str, step: str) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text(text)
    result = CliRunner().invoke(command.run, ["--config", str(config)])
    assert isinstance(result.exception, BadInputError)
    assert message in result.exception.message
    assert step in result.exception.next_step
    assert controller.given == {}


def test_a_value_that_cannot_be_used(controller: Recorded) -> None:
    result = CliRunner().invoke(command.run, ["--resync", "soon"])
    assert result.exit_code == 2
    assert "write it like 30m" in result.output
    assert controller.given == {}
