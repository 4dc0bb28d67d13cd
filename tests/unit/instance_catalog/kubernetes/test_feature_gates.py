"""Feature gates as an operator gives them."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import fields
from instance_catalog.kubernetes.feature_gates import GATES, FeatureGateError, feature_gates_text, parse_feature_gates
from instance_catalog.kubernetes.profile import REFERENCE, Gates


@pytest.mark.parametrize(
    ("text", "switches"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("DRAListTypeAttributes=true", {"list_type_attributes": True}, id="one"),
        pytest.param(
            " GenericWorkload=True , DRADeviceTaints=false,",
            {"generic_workload": True, "device_taints": False},
            id="two",
        ),
        pytest.param("InPlacePodVerticalScaling=true", {}, id="one-that-changes-nothing-here"),
    ],
)
def test_gates_that_are_named(text: str, switches: dict[str, bool]) -> None:
    assert parse_feature_gates(text) == switches


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("GenericWorkload", "write GenericWorkload=true or GenericWorkload=false"),
        ("GenericWorkload=yes", "write GenericWorkload=true"),
        ("DRAListTypeAttribute=true", "did you mean 'DRAListTypeAttributes'?"),
        ("AllAlpha=true", "name those that are set"),
    ],
)
def test_mistakes_say_what_to_write(text: str, step: str) -> None:
    with pytest.raises(FeatureGateError, match=step):
        parse_feature_gates(text)


def test_every_switch_of_a_profile_has_a_name() -> None:
    assert set(GATES.values()) == {gate.name for gate in fields(Gates)}


def test_what_a_profile_assumes_can_be_given_back() -> None:
    text = feature_gates_text(REFERENCE.with_gates(gang_scheduling=True))
    assert REFERENCE.with_gates(**parse_feature_gates(text)) == REFERENCE.with_gates(gang_scheduling=True)
    assert "GangScheduling=true" in text
