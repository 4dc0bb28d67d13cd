"""A linear or mixed-integer program (HiGHS) that buys known nodes so that every bundle is on one.

Nodes may hold more bundles of an item than exist; the caller removes the surplus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from autoscaler.planning.packing.problem import Column, Pattern

# The price of leaving a bundle out, in dollars: more than any node.
_LEFT_OUT: Final = 1e6
_NODES: Final = 100
_ITERATIONS: Final = 50_000


class Cover:
    """Columns by their index; `demand` is the number of wanted bundles of each item."""

    def __init__(self, demand: Mapping[int, int]) -> None:
        # Imported late: loading HiGHS takes as long as a small plan.
        import highspy
        import numpy

        self._numpy, self._infinity = numpy, highspy.kHighsInf
        self._optimal, self._whole = highspy.HighsModelStatus.kOptimal, highspy.HighsVarType.kInteger
        self._program: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy ships without annotations here
        self._program.silent()
        self._program.setOptionValue("threads", 1)
        self._program.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        self._program.setOptionValue("mip_max_nodes", _NODES)
        self._rows = {item: row for row, item in enumerate(demand)}
        self._known: set[tuple[int, Pattern]] = set()
        self.columns: list[Column] = []
        nothing = numpy.array([], numpy.int32), numpy.array([], float)
        for count in demand.values():
            self._program.addRow(float(count), self._infinity, 0, *nothing)
        for row in range(len(demand)):
            self._program.addCol(_LEFT_OUT, 0.0, self._infinity, 1, numpy.array([row], numpy.int32), numpy.ones(1))

    def add(self, column: Column) -> bool:
        """Add a column, unless it is known; only items of the demand may be on it."""
        key = column.kind, column.pattern
        if key in self._known:
            return False
        self._known.add(key)
        self.columns.append(column)
        takes = Counter(column.pattern)
        rows = self._numpy.array([self._rows[item] for item in takes], self._numpy.int32)
        counts = self._numpy.array([float(count) for count in takes.values()])
        self._program.addCol(float(column.score.usd_per_hour), 0.0, self._infinity, len(takes), rows, counts)
        return True

    def want(self, item: int, count: int) -> None:
        """Change the number of wanted bundles of the item."""
        self._program.changeRowBounds(self._rows[item], float(count), self._infinity)

    def solve(self) -> float | None:
        """The cost; None if HiGHS finds no optimum within its limits."""
        self._program.run()
        if self._program.getModelStatus() != self._optimal:
            return None
        return float(self._program.getInfo().objective_function_value)

    def prices(self, items: int) -> Any:
        """The cost of one more bundle of each item, as a vector over `items` items."""
        found = self._numpy.zeros(items)
        duals = self._program.getSolution().row_dual
        for item, row in self._rows.items():
            found[item] = max(0.0, duals[row])
        return found

    def bought(self) -> Sequence[float]:
        """The number of times that each column is bought; nothing while bundles are left out."""
        values = self._program.getSolution().col_value
        return [] if sum(values[: len(self._rows)]) > 1e-6 else values[len(self._rows) :]

    def solve_whole(self) -> list[Column]:
        """Whole nodes from a few steps of the program: every column as often as it is bought; [] if there is no
        answer."""
        for column in range(self._program.getNumCol()):
            self._program.changeColIntegrality(column, self._whole)
        self._program.run()
        if not self._program.getInfo().primal_solution_status:
            return []
        return [column for column, times in zip(self.columns, self.bought(), strict=False) for _ in range(round(times))]
