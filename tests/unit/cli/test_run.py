"""`foreslice run`: every setting is a flag, and the controller gets what was given."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli import run as command
from autoscaler.errors import BadInputError
from autoscaler.settings.names import all_settings
from autoscaler.settings.settings import LogSettings, Settings


class Recorded:
    """Stands for the controller: keeps what it was made with, and ends at once."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.ran = 0

    def __call__(self, *given: Any) -> Recorded:
        self.made.append(given)
        return self

    def run(self) -> None:
        self.ran += 1

    def stop(self) -> None:
        """Nothing to stop."""

    @property
    def settings(self) -> Settings:
        found = self.made[-1][0]
        assert isinstance(found, Settings)
        return found


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    logged: list[LogSettings] = []
    monkeypatch.setattr(command, "controller", recorded)
    monkeypatch.setattr(command, "log_to_stderr", lambda settings, _: logged.append(settings))
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    return recorded


def test_file_environment_and_flags_meet(controller: Recorded, tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("batch: {idle: 3s}\nloop: {resync: 1m30s}\ncluster: {name: prod}\n")
    result = CliRunner().invoke(
        command.run,
        ["--config", str(config), "--batch-idle", "5s"],
        env={"FORESLICE_BATCH_IDLE": "4s", "FORESLICE_LOOP_RETRY": "7s"},
    )
    assert result.exit_code == 0, result.output
    assert controller.ran == 1
    assert controller.settings.batch.idle == timedelta(seconds=5)
    assert controller.settings.loop.resync == timedelta(seconds=90)
    assert controller.settings.loop.retry == timedelta(seconds=7)
    assert controller.settings.cluster.name == "prod"


def test_the_file_can_come_from_the_environment(controller: Recorded, tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("batch: {longest: 20s}\n")
    assert CliRunner().invoke(command.run, [], env={"FORESLICE_CONFIG": str(config)}).exit_code == 0
    assert controller.settings.batch.longest == timedelta(seconds=20)


@pytest.mark.parametrize("flag", ["--context", "--cluster-context"])
def test_the_cluster_is_chosen_as_in_other_commands(controller: Recorded, flag: str) -> None:
    assert CliRunner().invoke(command.run, [flag, "staging"]).exit_code == 0
    assert controller.settings.cluster.context == "staging"


def test_a_value_that_cannot_be_used_is_told_with_its_flag(controller: Recorded) -> None:
    result = CliRunner().invoke(command.run, ["--loop-resync", "soon"])
    assert isinstance(result.exception, BadInputError)
    assert result.exception.message.startswith("--loop-resync: 'soon' is not a duration")
    assert controller.made == []


def test_help_lists_every_setting_with_its_default() -> None:
    text = " ".join(CliRunner().invoke(command.run, ["--help"], terminal_width=200).output.split())
    for setting in all_settings():
        assert setting.flag in text
        assert setting.variable in text
        assert setting.default_text in text
