"""Expressions that are meant to take all time and memory there is. The API admits 10 KiB of text.

Each runs in a process of its own, so that its memory can be told apart; the grammar is loaded before.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import compile_selector
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import Device

TARGET = 200.0  # milliseconds
_ROUNDS = 3
_TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
_LONG = '"' + "a" * 1000 + '"'


def _nested_loops(depth: int) -> str:
    expression = "true"
    for index in range(depth):
        expression = f"{_TEN}.all(x{index}, {expression})"
    return expression


def _chained(macro: str, times: int, tail: str) -> str:
    return "optional.of(1)" + "".join(f".{macro.replace('@', f'v{i}')}" for i in range(times)) + tail


EXPRESSIONS = {
    "249 parentheses": "(" * 249 + "true" + ")" * 249,
    "5,000 parentheses": "(" * 5000 + "true" + ")" * 5000,
    "3,000 brackets": "[" * 3000 + "]" * 3000 + " == []",
    "249 lists in each other": "[" * 249 + "]" * 249 + " == []",
    "200 negations in parentheses": "!(" * 200 + "true" + ")" * 200,
    "240 ternaries in a row": "true ? true : " * 240 + "true",
    "240 maps in each other": "{1: " * 240 + "1" + "}" * 240 + " == {}",
    "10^8 steps of all()": _nested_loops(8),
    "10^5 lists by map()": f"{_TEN}.map(a, {_TEN}.map(b, {_TEN}.map(c, {_TEN}.map(d, {_TEN}.map(e, [a, b]))))) == []",
    "10^9 steps over lists.range()": "lists.range(1000000).all(i, lists.range(1000).all(j, j >= 0))",
    "40 optMap in a row": _chained("optMap(@, @ + 1)", 40, ".hasValue()"),
    "40 optFlatMap in a row": _chained("optFlatMap(@, optional.of(@ + 1))", 40, ".hasValue()"),
    "60 bindings in each other": "".join(f"cel.bind(v{i}, 1, " for i in range(60)) + "true" + ")" * 60,
    "a list joined with itself 20 times": "".join(
        f"cel.bind(v{i + 1}, v{i} + v{i}, " for i in range(20)
    ).replace("v0", _TEN) + "v20 == v20" + ")" * 20,
    "regex (a+)+$": f'{_LONG}.matches("(a+)+$") && {_LONG}.matches("^(a|a)*b")',
    "regex of 10^6 repetitions": f'{_LONG}.matches("((a{{1,100}}){{1,100}}){{1,100}}")',
    "regex in a loop of 10^4": f'{_TEN}.all(a, {_TEN}.all(b, {_TEN}.all(c, {_LONG}.matches("(.*)(.*)(.*)[^a]"))))',
    "text by replace() to 10^13": '"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 12 + ".size() > 0",
    "text by replace() to 10^9": f'{_LONG}.replace("a", {_LONG}).replace("a", {_LONG}).size() > 0',
    "text joined with itself 24 times": "".join(
        f"cel.bind(v{i + 1}, v{i} + v{i}, " for i in range(24)
    ).replace("v0", _LONG) + "v24.size() > 0" + ")" * 24,
    "quantity of 10^999999999": 'quantity("1e999999999").isGreaterThan(quantity("1"))',
    "10 kB: 2,500 undeclared names": " || ".join(["a"] * 2500),
    "10 kB: 480 comparisons": " && ".join(['device.driver != ""'] * 480),
    "10 kB: 900 numbers compared": " && ".join(["1 < 2"] * 1000),
    "10 kB: a list of 3,000 numbers": "[" + ",".join(["1"] * 3000) + "].size() == 3000",
    "10 kB: 500 optional reads": " || ".join(['device.?driver == ""'] * 420),
    "10 kB: 240 sums": " && ".join(["+".join(["1"] * 240) + " > 0"] * 20),
    "10 kB: 200 exists()": " || ".join(["[1].exists(x, x > 1)"] * 400),
    "10 kB: 200 bindings": " && ".join(["cel.bind(x, 1, x > 0)"] * 400),
    "10 kB: 170 calls of format()": " || ".join(['"%s%d".format(["a", 1]) == ""'] * 300),
    "10 kB: one text": f'device.driver == "{"a" * 10_000}"',
    "10 kB: 10,000 times the same sign": "-" * 10_000 + "1 > 0",
    "10 kB: garbage": "§$%&" * 2500,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stopped:
    """How an expression ended: CPU milliseconds from text to answer, and MiB that the process grew by."""

    name: str
    outcome: str
    milliseconds: float
    mebibytes: float

    def __str__(self) -> str:
        mark = "" if self.milliseconds <= TARGET else "  above target"
        return f"  {self.name:<36} {self.milliseconds:>7.1f} ms {self.mebibytes:>6.1f} MiB  {self.outcome}{mark}"


def stopped() -> Iterator[Stopped]:
    """Every expression, one after the other, the fastest of some rounds."""
    _answer('device.driver.matches("a")')
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for name in EXPRESSIONS:
            yield min(pool.map(_measured, [name] * _ROUNDS, chunksize=1), key=lambda found: found.milliseconds)


def _measured(name: str) -> Stopped:
    before = _peak()
    started = time.process_time()
    outcome = _answer(EXPRESSIONS[name])
    milliseconds = (time.process_time() - started) * 1000
    return Stopped(name, outcome, milliseconds, _peak() - before)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _answer(expression: str) -> str:
    program = compile_selector(expression, REFERENCE)
    if isinstance(program, CompileFailure):
        return f"refused: {program.message[:60]}"
    found = program.evaluate(DeviceView.of("gpu.nvidia.com", Device("gpu-0"), REFERENCE))
    return f"{found.outcome.value}: {found.message[:60]}" if found.message else found.outcome.value
