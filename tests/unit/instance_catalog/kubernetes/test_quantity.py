"""Quantities follow k8s.io/apimachinery v0.36.3 (pkg/api/resource/quantity.go)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from instance_catalog.kubernetes.quantity import Quantity, QuantityError

parse = Quantity.parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5Gi", "1536Mi"),
        ("1000m", "1"),
        ("0", "0"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1500.5Ki", "1536512"),
        ("100Ti", "100Ti"),
        ("12Ei", "9223372036854775807"),
        ("2000", "2k"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("1E3", "1E3"),
        ("1E", "1E"),
        (".5", "500m"),
        ("-1.5", "-1500m"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1e-1000000000", "1e-9"),
        ("5.Gi", "5.Gi"),
        ("+5", "+5"),
        ("-1.5Gi", "-1536Mi"),
    ],
)
def test_prints_as_the_api_server_does(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize("text", [".", "+", "-", "-.", "G", "Mi", "e3", "000", "-0"])
def test_a_number_without_digits_is_zero(text: str) -> None:
    assert parse(text) == Quantity.of(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "quantities must match the regular expression"),
        ("1 ", "quantities must match the regular expression"),
        ("1_0", "quantities must match the regular expression"),
        ("1..2", "quantities must match the regular expression"),
        ("10Mo", "quantities must match the regular expression"),
        ("10Mm", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("1K", "unable to parse quantity's suffix"),
        ("1ki", "unable to parse quantity's suffix"),
        ("Pi", "unable to parse numeric part of quantity"),
        ("\u0661", "quantities must match the regular expression"),
    ],
)
def test_refuses_with_upstream_text(text: str, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        parse(text)


@pytest.mark.parametrize("text", ["1k", "9E", "1e3", "999999999999999999", "16Ti", "99Ti", "0", "5"])
def test_fast_form(text: str) -> None:
    quantity = parse(text)
    assert not quantity.big
    assert quantity.as_int64() == quantity.value


@pytest.mark.parametrize(
    "text", ["1.0", "0.0", "0m", "1000m", "1.5Gi", "100Ti", "1Pi", "10E", "1000000000000000000", "1000000Gi", "0Ei"]
)
def test_not_an_integer_for_kubernetes(text: str) -> None:
    assert parse(text).as_int64() is None


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("200M", "0.2G", 0),
        ("2M", "2000k", 0),
        ("50M", "50Mi", -1),
        ("150Mi", "100Mi", 1),
        ("1.5Gi", "1536Mi", 0),
        ("12Ei", "11Ei", 0),
        ("9Ei", "8Ei", 0),
        ("1e1000000000", "5", 1),
        ("-1e1000000000", "5", -1),
        ("10e999999999", "1e1000000000", 0),
        ("0", "0e5", 0),
        ("-1", "-2", 1),
    ],
)
def test_compares_by_value(left: str, right: str, expected: int) -> None:
    one, other = parse(left), parse(right)
    assert one.compare(other) == expected
    assert other.compare(one) == -expected
    assert (one == other) == (expected == 0)
    assert (one < other) == (expected < 0)
    if expected == 0:
        assert hash(one) == hash(other)


def test_long_numbers_survive_the_conversion_limit_of_python() -> None:
    text = "9" * 9000
    assert str(parse(text)) == text
    assert parse(text) > parse("9" * 8999)


@pytest.mark.parametrize(
    ("left", "right", "total", "fast"),
    [
        ("50k", "20", "50020", True),
        ("1Gi", "1", "1073741825", True),
        ("0", "1Gi", "1Gi", True),
        ("500m", "500m", "1", True),
        ("1.5Gi", "512Mi", "2Gi", False),
        ("9E", "9E", "18E", True),
        ("9223372036854775807e0", "1", "9223372036854775808e0", False),
    ],
)
def test_addition_keeps_upstreams_format_and_form(left: str, right: str, total: str, fast: bool) -> None:
    result = parse(left) + parse(right)
    assert result == parse(total)
    assert str(result) == str(Quantity(result.digits, result.scale, result.format, result.big))
    assert result.big != fast


def test_subtraction_and_negation() -> None:
    assert parse("50k") - parse("20") == parse("49.98k")
    assert str(parse("1Gi") - parse("1Gi")) == "0"
    assert -parse("1Gi") == parse("-1Gi")


def test_an_addition_that_would_write_out_a_billion_digits_is_refused() -> None:
    with pytest.raises(QuantityError, match="too large"):
        parse("1e1000000000") + parse("1")


@pytest.mark.parametrize(
    ("text", "whole", "thousandths", "int64"),
    [
        ("1500m", 2, 1500, 2),
        ("-1500m", -1, -1500, -2),
        ("1Ki", 1024, 1024000, 1024),
        ("1u", 1, 1, 1),
        ("10E", 10**19, 10**22, 0),
    ],
)
def test_whole_numbers_round_up(text: str, whole: int, thousandths: int, int64: int) -> None:
    quantity = parse(text)
    assert (quantity.ceil(), quantity.milli(), quantity.int64_value()) == (whole, thousandths, int64)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1Gi", "1Gi", True),
        ("1Gi", "1024Mi", False),
        ("1", "1000m", False),
        ("1", "1e0", False),
        ("1.5Gi", "1.5Gi", False),
    ],
)
def test_same_form_is_gos_struct_equality(left: str, right: str, same: bool) -> None:
    assert parse(left).same_form(parse(right)) is same


def test_value_and_float() -> None:
    assert parse("1500m").value == Fraction(3, 2)
    assert parse("50.703k").as_approximate_float() == 50703.0
    assert parse("1e1000000000").as_approximate_float() == float("inf")
    with pytest.raises(QuantityError, match="too large"):
        _ = parse("1e1000000000").value


@pytest.mark.parametrize(
    ("text", "canonical", "whole"),
    [
        ("1.5Gi", "1536Mi", 1536 * 2**20),
        ("80.0", "80", 80),
        ("1000m", "1", 1),
        ("1Gi", "1Gi", 2**30),
        ("1024Mi", "1Gi", 2**30),
        ("0.5", "500m", None),
        ("1e3", "1e3", 1000),
        ("1" + "0" * 5000, "100", 100),
        ("-12" + "0" * 700, "-120", -120),
        ("0.1Gi", "107374182400m", None),
        (" 80Gi ", "80Gi", 80 * 2**30),
    ],
)
def test_a_cluster_has_the_text_that_the_api_server_prints(text: str, canonical: str, whole: int | None) -> None:
    stored = Quantity.stored(text)
    assert str(stored) == canonical
    assert stored.as_int64() == whole
    assert stored.same_form(Quantity.parse(canonical))
