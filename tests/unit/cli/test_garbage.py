"""When what is known for long is set aside, so that it is not looked through for garbage again."""

from __future__ import annotations

import pytest

from autoscaler.cli import main as command


class Collector:
    """Stands for the module gc: so many objects that survived, so many that were set aside."""

    def __init__(self, survivors: int, frozen: int) -> None:
        self.survivors, self.frozen = survivors, frozen

    def get_objects(self, *, generation: int) -> list[int]:
        assert generation == 2
        return [0] * self.survivors

    def get_freeze_count(self) -> int:
        return self.frozen

    def freeze(self) -> None:
        self.survivors, self.frozen = 0, self.frozen + self.survivors


@pytest.mark.parametrize(
    ("phase", "generation", "survivors", "frozen", "expected"),
    [
        pytest.param("stop", 2, 100, 0, 100, id="the first time"),
        pytest.param("stop", 2, 100, 100, 100, id="as many as before"),
        pytest.param("stop", 2, 101, 100, 201, id="more than before"),
        pytest.param("start", 2, 101, 100, 100, id="before garbage was collected"),
        pytest.param("stop", 1, 101, 100, 100, id="a part was looked through"),
    ],
)
def test_objects_are_set_aside_when_they_are_more_than_before(
    monkeypatch: pytest.MonkeyPatch, phase: str, generation: int, survivors: int, frozen: int, expected: int
) -> None:
    collector = Collector(survivors, frozen)
    monkeypatch.setattr(command, "gc", collector)
    command.set_aside(phase, {"generation": generation})
    assert collector.frozen == expected
