"""The public behaviour of compiled selectors that the recorded cases do not show."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from autoscaler.cel.checker.environment import View
from autoscaler.cel.common.outcome import CompileFailure, Evaluation, Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program, compile_selector, estimated_cost
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity, Device, ListValue, RuntimeOnly, Unset, Version

DRIVER = "gpu.example.com"
GPU = Device(
    "gpu-0",
    attributes=FrozenMap(
        {
            "model": "H100",
            "index": 3,
            "ecc": True,
            "version": Version("1.2.3"),
            "uuid": RuntimeOnly("string", "gpu-0"),
            "topology.example.com/root": RuntimeOnly("string", "root-0"),
        }
    ),
    capacity=FrozenMap({"memory": Capacity(Quantity.parse("80Gi")), "huge": Capacity(Quantity.parse("100Ti"))}),
)


def compiled(expression: str) -> Program:
    program = compile_selector(expression.replace("@", f'device.attributes["{DRIVER}"]'), REFERENCE)
    assert isinstance(program, Program), program
    return program


def evaluate(expression: str, device: Device = GPU) -> Evaluation:
    return compiled(expression).evaluate(DeviceView.of(DRIVER, device, REFERENCE))


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ('@.uuid == "x"', Outcome.UNKNOWN),
        ('@.uuid != "x"', Outcome.UNKNOWN),
        ('@.uuid == "x" && false', Outcome.FALSE),
        ('false && @.uuid == "x"', Outcome.FALSE),
        ('@.uuid == "x" || true', Outcome.TRUE),
        ('@.uuid == "x" || false', Outcome.UNKNOWN),
        ('@.uuid == "x" && 1/0 == 1', Outcome.UNKNOWN),
        ('1/0 == 1 && @.uuid == "x"', Outcome.UNKNOWN),
        ("has(@.uuid)", Outcome.TRUE),
        ('"uuid" in @', Outcome.TRUE),
        ("has(@.nothing)", Outcome.FALSE),
        ("@.uuid.startsWith('GPU-')", Outcome.UNKNOWN),
        ("@.?uuid.hasValue()", Outcome.UNKNOWN),
        ("@.uuid in ['a', 'b']", Outcome.UNKNOWN),
        ("@.exists(k, k == 'uuid')", Outcome.TRUE),
        ("@.exists(k, v, v == 'H100')", Outcome.TRUE),
        ("@.all(k, v, v != 'A100')", Outcome.UNKNOWN),
        ("@.uuid == 'x' ? true : true", Outcome.UNKNOWN),
        ("[@.model, @.uuid] == ['A100', 'x']", Outcome.UNKNOWN),
        ("@.model == 'H100'", Outcome.TRUE),
    ],
)
def test_values_that_exist_only_at_run_time(expression: str, outcome: Outcome) -> None:
    assert evaluate(expression).outcome is outcome


def test_an_unknown_names_all_it_depends_on() -> None:
    expression = '@.uuid == "x" || device.attributes["topology.example.com"].root == "y"'
    evaluation = evaluate(expression)
    assert evaluation.unknown_attributes == (f"{DRIVER}/uuid", "topology.example.com/root")
    assert "once the node runs" in evaluation.message or evaluation.message.startswith("depends on")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("d", attributes=FrozenMap({"x": Unset("stringsValue")})), "attribute x: unsupported attribute value"),
        (Device("d", attributes=FrozenMap({"x": Version("1.0")})), "attribute x: parse semantic version"),
        (Device("d", attributes=FrozenMap({"x": ListValue("int", (1,))})), "attribute x: unsupported attribute value"),
    ],
    ids=["unset", "bad version", "list without the gate"],
)
def test_one_bad_attribute_fails_every_expression(device: Device, message: str) -> None:
    evaluation = evaluate("true", device)
    assert evaluation.outcome is Outcome.ERROR
    assert evaluation.message.startswith(message)


def test_lists_are_values_with_the_gate() -> None:
    profile = REFERENCE.with_gates(list_type_attributes=True)
    device = Device("d", attributes=FrozenMap({"models": ListValue("string", ("a", "b"))}))
    program = compile_selector(f'device.attributes["{DRIVER}"].models.includes("b")', profile)
    assert isinstance(program, Program)
    assert program.evaluate(DeviceView.of(DRIVER, device, profile)).outcome is Outcome.TRUE


def test_a_failure_has_a_position() -> None:
    failure = compile_selector('device.driver == "x" &&\n  device.nmae == "y"', REFERENCE)
    assert isinstance(failure, CompileFailure)
    assert (failure.line, failure.column) == (2, 10)
    assert str(failure).startswith("2:10: undefined field 'nmae'")


@pytest.mark.parametrize("expression", ['{b"": 1} == {}', "{semver('1.0.0'): 1} == {}"])
def test_keys_without_a_hash_are_errors(expression: str) -> None:
    program = compile_selector(expression, REFERENCE)
    assert isinstance(program, CompileFailure) or evaluate(expression).outcome is Outcome.ERROR


@pytest.mark.parametrize("expression", ["", "// nothing", "(", '"', "device.driver =="])
def test_an_incomplete_text_is_a_failure(expression: str) -> None:
    failure = compile_selector(expression, REFERENCE)
    assert isinstance(failure, CompileFailure)
    assert failure.message.startswith("Syntax error")


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ('device.driver == "x"', {("driver", "", "")}),
        (
            'device.attributes["d"].a == 1 && device.capacity.d["m"] != null',
            {("attributes", "d", "a"), ("capacity", "d", "m")},
        ),
        ('device.attributes["d"].a == 1', {("attributes", "d", "a")}),
        ('has(device.attributes["d"].a) && device.attributes.e.?b.hasValue()',
         {("attributes", "d", "a"), ("attributes", "e", "b")}),
        ('"d" in device.attributes', None),
        ('cel.bind(a, device.attributes["d"], a.x == 1)', None),
        ("device.attributes[device.driver].x == 1", None),
        ("[1].exists(device, device == 1)", None),
        ("true", set()),
    ],
)  # fmt: skip
def test_reads(expression: str, reads: set[tuple[str, str, str]] | None) -> None:
    assert compiled(expression).reads == reads


def test_programs_and_failures_are_cached() -> None:
    assert compile_selector("true", REFERENCE) is compile_selector("true", REFERENCE)
    assert compile_selector("nonsense", REFERENCE) is compile_selector("nonsense", REFERENCE)


def test_new_expressions_honour_gates() -> None:
    profile = REFERENCE.with_gates(consumable_capacity=False)
    expression = "device.allowMultipleAllocations"
    assert isinstance(compile_selector(expression, profile), Program)
    assert isinstance(compile_selector(expression, profile, view=View.NEW), CompileFailure)


@pytest.mark.parametrize(
    ("expression", "version", "view", "accepted"),
    [
        ("[1, 1].distinct() == [1]", "1.34", View.NEW, False),
        ("[1, 1].distinct() == [1]", "1.34", View.STORED, True),
        ("[1, 1].distinct() == [1]", "1.35", View.NEW, True),
        ("[1].isSorted()", "1.34", View.NEW, True),
        ('"a".includes("a")', "1.37", View.NEW, False),
        ('"a".includes("a")', "1.37", View.STORED, True),
    ],
)
def test_new_expressions_use_what_the_release_before_knows(
    expression: str, version: str, view: View, accepted: bool
) -> None:
    assert isinstance(compile_selector(expression, profile_for(version), view=view), Program) is accepted


@pytest.mark.parametrize(
    "expression",
    [
        'device.capacity["gpu.example.com"].huge.sub(1).compareTo(quantity("100Ti")) == -1',
        'device.capacity["gpu.example.com"].memory.isLessThan(quantity("100Ti")) && '
        '!device.capacity["gpu.example.com"].memory.isInteger()',
        'device.capacity["gpu.example.com"].memory.isInteger()',
    ],
)
def test_changed_quantities_do_not_outlive_an_evaluation(expression: str) -> None:
    view = DeviceView.of(DRIVER, GPU, REFERENCE)
    for _ in range(3):
        view.answers.clear()
        assert compiled(expression).evaluate(view).outcome is Outcome.TRUE


def _bound_in_turn(value: str, result: str) -> str:
    """cel.bind for x0 … x23, each made of the one before."""
    opened = "".join(f"cel.bind(x{n}, {value.replace('_', f'x{n - 1}')}, " for n in range(1, 24))
    return f"cel.bind(x0, [1, 1], {opened}{result}{')' * 24}"


def test_comparing_does_not_change_what_others_see() -> None:
    memory = 'device.capacity["gpu.example.com"].memory'
    assert evaluate(f'{memory}.isLessThan(quantity("100Ti"))').outcome is Outcome.TRUE
    assert evaluate(f"{memory}.isInteger()").outcome is Outcome.TRUE


@pytest.mark.parametrize(
    "expression",
    [
        '"%e|%e|%f".format([1.5, -0.0, -0.0]) == "1.500000×10⁰⁰|0.000000×10⁰⁰|0.000000"',
        '"%e|%.1e".format([double("NaN"), double("-inf")]) == "   NaN|-∞"',
        '"%.20e".format([1e300]) == "      1.000000×10³⁰⁰"',
        "-1.5.includes(-1.5)",
        "optional.ofNonZeroValue(optional.none()).hasValue()",
        '[semver("1.0.0")].last().optFlatMap(x, optional.of(x)).hasValue()',
        'quantity("0").sub(-9223372036854775808).isLessThan(quantity("0"))',
    ],
)
def test_what_the_upstream_library_answers_true_to(expression: str) -> None:
    assert evaluate(expression).outcome is Outcome.TRUE


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 3].flatten(-7).size() == 3",
        "[dyn(1), dyn(2.0), semver('1.0.0')].isSorted()",
        "[optional.of(quantity('1'))].all(x, x == x)",
    ],
)
def test_what_the_upstream_library_fails_on(expression: str) -> None:
    program = compile_selector(expression, REFERENCE)
    assert isinstance(program, CompileFailure) or evaluate(expression).outcome is Outcome.ERROR


HOSTILE = {
    "lists that share their parts": _bound_in_turn("[_, _]", "x23 == x23"),
    "doubling lists": _bound_in_turn("_ + _", "size(x23) == 1"),
    "loops that cost nothing": "cel.bind(l, lists.range(10000), l.exists_one(x, l.exists_one(y, false)))",
    "a sum with a billion digits": 'quantity("1e1000000000").add(1).isInteger()',
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE.keys())
def test_work_without_cost_ends_as_unknown(expression: str) -> None:
    assert evaluate(expression).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(100000).distinct().size() == 3",
        "sets.contains(lists.range(100000), lists.range(100000))",
        "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))",
        '"aaaaaaaaaa"' + '.replace("", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")' * 5 + ".size() == 1",
        "optional.of(1)" + ".optMap(x, x + 1)" * 30 + ".hasValue()",
    ],
    ids=["distinct", "sets", "loops", "growing text", "targets evaluated twice"],
)
def test_the_cost_limit_stops_expensive_expressions(expression: str) -> None:
    evaluation = evaluate(expression)
    assert evaluation.outcome is Outcome.ERROR
    assert "cost limit exceeded" in evaluation.message
    assert evaluation.cost > 1_000_000


@pytest.mark.parametrize(("links", "cost"), [(3, 44), (10, 6140)])
def test_what_optmap_evaluates_twice_costs_twice(links: int, cost: int) -> None:
    chain = "optional.of(1)" + "".join(f".optMap(v{link}, v{link} + 1)" for link in range(links)) + ".hasValue()"
    assert evaluate(chain).cost == cost  # as k8s.io/dynamic-resource-allocation v0.36.3 counts


@pytest.mark.parametrize(
    "expression",
    [
        "1 == " + "1+(" * 200 + "1" + ")" * 200,
        "[1].all(x," * 100 + "true" + ")" * 100,
        "[" * 200 + "1" + "]" * 200 + " == " + "[" * 200 + "1" + "]" * 200,
        "!" * 2001 + "true",
        " || ".join(['device.driver == "x"'] * 300),
        "1" + " - 1" * 249 + " == 2",
        "(" * 300 + "true" + ")" * 300,
        "[" * 249 + "]" * 249 + " == []",
        "{1: " * 249 + "1" + "}" * 249 + " == {}",
        "[" * 3000 + "]" * 3000 + " == []",
    ],
    ids=[
        "sums",
        "loops",
        "lists",
        "nots",
        "ors",
        "chain",
        "too many parentheses",
        "empty lists",
        "maps",
        "too many lists",
    ],
)
def test_deep_expressions_end_without_recursion_errors(expression: str) -> None:
    program = compile_selector(expression, REFERENCE)
    if isinstance(program, CompileFailure):
        assert "recursion limit exceeded" in program.message
    else:
        assert program.evaluate(DeviceView.of(DRIVER, GPU, REFERENCE)).outcome in (Outcome.TRUE, Outcome.FALSE)
        assert isinstance(estimated_cost(expression, REFERENCE), int)


def test_a_name_published_twice_is_unknown_where_the_values_differ() -> None:
    device = Device("d", attributes=FrozenMap({"x": 1, f"{DRIVER}/x": 2, "y": 1, f"{DRIVER}/y": 1}))
    assert evaluate("@.x == 1", device).outcome is Outcome.UNKNOWN
    assert "published twice" in evaluate("@.x == 1", device).message
    assert evaluate("@.y == 1", device).outcome is Outcome.TRUE


def test_equal_devices_share_one_view() -> None:
    other = Device("gpu-1", attributes=GPU.attributes, capacity=GPU.capacity)
    assert DeviceView.of(DRIVER, GPU, REFERENCE) is DeviceView.of(DRIVER, other, REFERENCE)


@pytest.mark.parametrize(
    ("expression", "version", "warned"),
    [
        ('device.capacity["d"].m.sub(1).isInteger()', "1.36", True),
        ('device.capacity["d"].m.sub(1).isInteger()', "1.37", False),
        ('quantity("1").sub(1).isInteger()', "1.36", False),
        ('device.capacity["d"].m.isInteger()', "1.36", False),
    ],
)
def test_arithmetic_on_capacities_is_unreliable_before_1_37(expression: str, version: str, warned: bool) -> None:
    program = compile_selector(expression, profile_for(version))
    assert isinstance(program, Program)
    assert bool(program.warning) is warned


def test_loading_the_room_is_cheap() -> None:
    code = "import sys, autoscaler.cel.program; sys.exit(bool({'celpy', 're2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_one_program_in_many_threads() -> None:
    expression = (
        "lists.range(50).map(x, x * 2).exists(x, x == 40) && "
        'cel.bind(a, @, a.model == "H100" && a.index == 3) && '
        'device.capacity["gpu.example.com"].memory.add(1).isGreaterThan(quantity("80Gi"))'
    )
    program, view = compiled(expression), DeviceView.of(DRIVER, GPU, REFERENCE)
    expected = program.evaluate(view)

    def evaluate_again(_: int) -> Evaluation:
        view.answers.clear()
        return program.evaluate(view)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(evaluate_again, range(400)))
    assert expected.outcome is Outcome.TRUE
    assert results == [expected] * 400
