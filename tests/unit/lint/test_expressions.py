"""Taking selectors apart, and saying what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.lint.devices.readings import readings
from autoscaler.lint.expressions import conditions, drivers_named
from autoscaler.lint.rules import RULES
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, RuntimeOnly, Version

D = 'device.attributes["d"]'


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("true", ("true",)),
        ('device.driver == "a" && true', ('device.driver == "a"', "true")),
        ("(true && false) && true", ("(true && false)", "true")),
        ("true && false || true", ("true && false || true",)),
        ("true && (false || true)", ("true", "(false || true)")),
        ("true ? false && true : true", ("true ? false && true : true",)),
        ('device.driver == "a && b" && true', ('device.driver == "a && b"', "true")),
        ("device.driver == 'it\\'s && so' && true", ("device.driver == 'it\\'s && so'", "true")),
        (f"{D}.?x.orValue(true) == true && true", (f"{D}.?x.orValue(true) == true", "true")),
        ("true && // both\n false", ("true && // both\n false",)),
        ('r"\\" == "a" && true', ('r"\\" == "a"', "true")),
        ("[1, 2].all(x, x > 0 && x < 3) && true", ("[1, 2].all(x, x > 0 && x < 3)", "true")),
    ],
)
def test_conditions(expression: str, parts: tuple[str, ...]) -> None:
    assert conditions(expression, REFERENCE) == parts


@pytest.mark.parametrize(
    ("expression", "drivers"),
    [
        ('device.driver == "a.example.com"', {"a.example.com"}),
        ("'a.example.com'==device.driver && true", {"a.example.com"}),
        ('device.driver != "a.example.com"', set()),
        ('device.driver == "a" || device.driver == "b"', {"a", "b"}),
        ("true", set()),
    ],
)
def test_drivers_named(expression: str, drivers: set[str]) -> None:
    assert drivers_named((expression,)) == drivers


def test_readings_are_texts_with_short_names() -> None:
    attributes: dict[str, AttributeValue] = {
        "s": "text",
        "i": 3,
        "b": True,
        "v": Version("1.2.3-rc.1+b"),
        "u": RuntimeOnly("string", "node:u"),
    }
    device = Device("x", FrozenMap(attributes | {"o.org/n": 4}), FrozenMap({"mem": Capacity(Quantity.parse("40Gi"))}))
    view = DeviceView.of("d", device, REFERENCE)
    paths = [("attributes", "d", name) for name in ("s", "i", "b", "v", "u", "gone")]
    found = dict(readings(view, [*paths, ("attributes", "o.org", "n"), ("capacity", "d", "mem"), ("driver", "", "")]))
    assert found == {
        "s": "text",
        "i": "3",
        "b": "true",
        "v": "1.2.3-rc.1+b",
        "u": "(not known before launch)",
        "gone": "(absent)",
        "o.org/n": "4",
        "mem": "40Gi",
        "driver": "d",
    }
    assert readings(view, None) == ()


def test_rules_have_distinct_names_and_texts() -> None:
    assert len({rule.id for rule in RULES}) == len({rule.title for rule in RULES}) == len(RULES)
    assert all(rule.why.endswith(".") and not rule.title.endswith(".") for rule in RULES)


def test_the_documentation_lists_all_rules_in_order() -> None:
    page = Path(__file__).parents[3].joinpath("docs", "lint.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{rule.id}` | {rule.level.value} | {rule.title} | {rule.why} |" for rule in RULES]
