"""What a person is told who wrote something that is no selector."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.program import compile_selector
from instance_catalog.kubernetes.profile import REFERENCE


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        (
            'device.capacity["gpu.example.com"].memory >= quantity("40Gi")',
            'write device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        ),
        (
            'device.capacity["gpu.example.com"].memory > quantity("40Gi")',
            'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))',
        ),
        ('device.name == "gpu-0"', "Selectors cannot see a device's name"),
        ('device.attribute["x"].y == "z"', "Did you mean device.attributes?"),
        ("device.driver == nvidia", 'put it in quotes: "nvidia"'),
        ('attributes["x"].y == "z"', "Write device.attributes."),
        ("device.driver", "A selector must be a condition"),
        ("device.driver == 5", "different types"),
        ('device.driver = "x"', "Write == to compare"),
        ('device.driver == "x" and true', "Write && instead of and"),
        ('not (device.driver == "x") or true', "Write || instead of or"),
        ('not device.driver == "x"', "Write ! instead of not"),
        ('device.driver == "x" & true', "Write && for and"),
        ('device.driver.lower() == "x"', "Did you mean lowerAscii()?"),
        ('["x"].exist(d, d == "x")', "Did you mean exists()?"),
        ('["x"].exists(d)', "exists() exists, but not with these arguments"),
        ("gpuCount(device) == 1", "There is no function of this name"),
        ('device.driver.lowerAscii("x") == "x"', "called as <string>.lowerAscii()."),
        ("device.driver.matches(5)", "called as matches(string, string) or <string>.matches(string)."),
        ("[true, 1].size() == 2", "The two sides have different types"),
        ('device.driver == "x" || 5', "take only true or false; compare the value"),
        ('device.driver == "x', 'The text that begins here has no closing "'),
        ("device.driver == 'x", "The text that begins here has no closing '"),
    ],
)
def test_the_usual_mistakes_get_the_usual_fix(expression: str, hint: str) -> None:
    failure = compile_selector(expression, REFERENCE)
    assert isinstance(failure, CompileFailure)
    assert hint in failure.hint


@pytest.mark.parametrize("expression", ["", "1 +", "[1, 2].map(", 'device.driver == "x" &&', "(device.driver"])
def test_what_ends_too_early_says_so(expression: str) -> None:
    failure = compile_selector(expression, REFERENCE)
    assert isinstance(failure, CompileFailure)
    assert failure.message == "Syntax error: unexpected end of the expression"
    assert failure.column == len(expression) + 1


def test_a_bad_regular_expression_is_told_in_words() -> None:
    failure = compile_selector("device.driver.matches('(a')", REFERENCE)
    assert isinstance(failure, CompileFailure)
    assert failure.message.endswith("error parsing regexp: missing closing ): `(a`")
