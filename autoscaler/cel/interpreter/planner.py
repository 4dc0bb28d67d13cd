"""Plans a checked expression as closures (cel-go v0.26.0 interpreter/planner.go, decorators.go and interpretable.go).

Every step becomes one closure over a `Frame`; no step reads the syntax tree while an expression runs. Faults are
returned, not raised, because upstream continues to evaluate and to charge after one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from autoscaler.cel.checker.environment import Environment
from autoscaler.cel.common.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Expression,
    ExpressionError,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Select,
    parts,
)
from autoscaler.cel.common.evaluation import DEVICE, FIRST_SLOT, Frame, Run, charge
from autoscaler.cel.common.values import (
    FAULTS,
    Failure,
    TypeName,
    UInt,
    Value,
)
from autoscaler.cel.cost.call_costs import call_cost, result_cost
from autoscaler.cel.interpreter.aggregates import list_run, map_run, message_run
from autoscaler.cel.interpreter.attributes import Chain, Choice, Code, Constant, Link, Step, resolver, run_of
from autoscaler.cel.interpreter.bounds import MONOTONE, has_bounds, ordered_run
from autoscaler.cel.interpreter.calls import (
    binary_run,
    equality_run,
    logical_run,
    membership_run,
    or_value_run,
    unary_run,
    variadic_run,
)
from autoscaler.cel.interpreter.dispatch import SINGLETONS, dispatched, guarded, implementations
from autoscaler.cel.interpreter.folds import BOUND, append_run, bound_variable_run, fold_run, kept_runs, quantifier_run
from autoscaler.cel.library.arithmetic import SINGLETONS as OPERATORS
from autoscaler.cel.library.pattern_tree import PatternError
from autoscaler.cel.library.patterns import UnsupportedPatternError, compiled

_FOLDED: Final = frozenset({"bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint"})
# Functions of one constant whose result may be computed once, in programs that cannot observe a change of a quantity.
_PURE: Final = frozenset(
    {"quantity", "isQuantity", "semver", "isSemver", "url", "isURL", "ip", "isIP", "cidr", "isCIDR"}
)
_OBSERVERS: Final = frozenset({"isInteger", "asInteger", "add", "sub"})
_PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
Scope = Mapping[str, "int | Run"]
_GLOBALS: Final[Scope] = {"device": DEVICE}


class Planner:
    """Plans one expression. `constants`: by identity of a literal, its value in place of the one that it has."""

    def __init__(
        self, environment: Environment, calls: list[Call], constants: Mapping[int, Value] | None = None
    ) -> None:
        dialect = environment.dialect
        self._environment = environment
        self._constants = constants or {}
        self._modern = dialect.modern
        self.observes_quantities = any(call.function in _OBSERVERS for call in calls)
        self._code = implementations(
            modern=self._modern, mutating=dialect.add_mutates, converting=self.observes_quantities
        )
        self._steps: dict[int, Step] = {}
        self._kept: dict[int, tuple[Run, Run]] = {}
        self.slots = FIRST_SLOT
        self.loops = False

    def plan(self, root: Expression) -> Run:
        """The closure of the whole expression. Raises ExpressionError."""
        return run_of(self._plan(root, _GLOBALS))

    def _plan(self, node: Expression, scope: Scope) -> Step:
        """The step of `node`. Its parts are planned first, without recursion within a scope."""
        planned = self._steps.get(id(node))
        if planned is not None:
            return planned
        pending = [(node, False)]
        while pending:
            at, ready = pending.pop()
            if id(at) in self._steps:
                continue
            below = () if ready else parts(at)
            if below:
                pending.append((at, True))
                pending += [(part, False) for part in below]
            else:
                self._steps[id(at)] = self._planned(at, scope)
        return self._steps[id(node)]

    def _planned(self, node: Expression, scope: Scope) -> Step:
        match node:
            case Literal():
                return Constant(self._constants.get(id(node), node.value))
            case Identifier():
                return self._variable(node, scope)
            case Select():
                if node.qualified is not None:
                    return Constant(TypeName(node.qualified))
                return self._linked(node.operand, Link(node.name, test_only=node.test_only), scope)
            case Call():
                return self._call(node, scope)
            case ListLiteral():
                return self._list(node, scope)
            case MapLiteral():
                return self._map(node, scope)
            case MessageLiteral():
                return self._message(node, scope)
            case Comprehension():
                return self._comprehension(node, scope)

    def _run(self, node: Expression, scope: Scope) -> Run:
        return run_of(self._plan(node, scope))

    def _variable(self, node: Identifier, scope: Scope) -> Step:
        name = node.name.removeprefix(".")
        place = (scope if name == node.name or not self._modern else _GLOBALS).get(name)
        if place is None:
            return Constant(TypeName(name))
        if node.type.kind == "type":
            # cel-go v0.26 and v0.29 interpreter/planner.go treat every name of type `type` as the name of a type.
            raise ExpressionError(f"reference to undefined type: {name}", node.position)
        if type(place) is int:
            slot = place

            def read(frame: Frame) -> Value:
                return frame[slot]

            return Chain(read, slot, not self._modern)
        assert callable(place)
        return Chain(place, None, not self._modern)

    def _linked(self, operand: Expression, link: Link, scope: Scope) -> Step:
        step = self._plan(operand, scope)
        if isinstance(step, (Chain, Choice)):
            return step.linked(link)
        return Chain(run_of(step), None, not self._modern).linked(link)

    def _call(self, node: Call, scope: Scope) -> Step:
        match node.function:
            case "_&&_" | "_||_":
                terms = [self._run(argument, scope) for argument in node.arguments]
                return Code(logical_run(terms, decisive=node.function == "_||_"))
            case "_?_:_":
                condition, truthy, falsy = node.arguments
                return Choice(self._run(condition, scope), self._branch(truthy, scope), self._branch(falsy, scope))
            case "_?._":
                operand, name = node.arguments
                assert isinstance(name, Literal)
                return self._linked(operand, Link(name.value, optional=True), scope)
            case "_[_]" | "_[?_]":
                return self._index(node, scope)
            case "or" | "orValue":
                assert node.target is not None
                left, right = self._run(node.target, scope), self._run(node.arguments[0], scope)
                return Code(or_value_run(left, right, unwrap=node.function == "orValue", strict=self._modern))
        return self._function(node, scope)

    def _branch(self, node: Expression, scope: Scope) -> Chain | Choice:
        step = self._plan(node, scope)
        return step if isinstance(step, (Chain, Choice)) else Chain(run_of(step), None, not self._modern)

    def _index(self, node: Call, scope: Scope) -> Step:
        operand, key = node.arguments
        optional = node.function == "_[?_]"
        step = self._plan(key, scope)
        if isinstance(step, Constant):
            if type(step.value) not in (str, int, UInt, bool, float):
                raise ExpressionError(f"invalid qualifier type: {type(step.value).__name__}", key.position)
            return self._linked(operand, Link(step.value, optional=optional), scope)
        dynamic = resolver(step) if isinstance(step, (Chain, Choice)) else step.run
        return self._linked(operand, Link(dynamic=dynamic, optional=optional), scope)

    def _function(self, node: Call, scope: Scope) -> Step:
        nodes = node.arguments if node.target is None else [node.target, *node.arguments]
        if node.function == "_+_" and _is_accumulator(nodes[0]) and isinstance(nodes[1], ListLiteral):
            return self._append(nodes[0], nodes[1], scope)
        steps = [self._plan(argument, scope) for argument in nodes]
        if nodes and nodes[0].twice and not self.observes_quantities:
            first, second = self._kept_runs(nodes[0], steps[0])
            steps[0] = Code(second if node.function == "value" else first)
        constant = [step.value for step in steps if isinstance(step, Constant)]
        if node.function in _FOLDED and len(steps) == len(constant) == 1:
            return self._folded(node, constant[0])
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        if overload == "in_list" and isinstance(steps[1], Constant) and type(steps[1].value) is list:
            membership = membership_run(run_of(steps[0]), steps[1].value)
            if membership is not None:
                return membership
        runs = [run_of(step) for step in steps]
        # If a program can observe changes of quantities, a compared value may differ from the device's.
        bounded = [not self.observes_quantities and has_bounds(*pair) for pair in zip(nodes, steps, strict=True)]
        if node.function in ("_==_", "_!=_"):
            return Code(equality_run(steps, runs, bounded, negated=node.function == "_!=_"))
        pattern = self._constant_pattern(node, steps)
        code, variadic = self._implementation(node)
        before = call_cost(node.function, node.overloads, modern=self._modern)
        after = result_cost(node.function, node.overloads)
        if len(constant) == len(steps) > 0 and node.function in _PURE and not self.observes_quantities:
            return Code(_precomputed(code(*constant), before(tuple(constant)) if before else 1))
        if len(runs) == 1 and not variadic:
            return Code(unary_run(runs[0], code, before, after))
        if len(runs) == 2 and any(bounded) and node.function in MONOTONE:
            return Code(ordered_run(runs, bounded, code, before, after))
        if len(runs) == 2 and not variadic and not pattern:
            return Code(binary_run(runs[0], runs[1], code, before, after))
        return Code(variadic_run(runs, code, before, after))

    def _kept_runs(self, node: Expression, step: Step) -> tuple[Run, Run]:
        """The closures for the target of optMap(): its expansion calls hasValue() on it, and value() right after."""
        if id(node) not in self._kept:
            self._kept[id(node)] = kept_runs(run_of(step), self._slot())
        return self._kept[id(node)]

    def _append(self, accumulator: Expression, item: ListLiteral, scope: Scope) -> Step:
        step = self._plan(item.items[0], scope)
        created = 0 if isinstance(step, Constant) else 10
        return Code(append_run(self._run(accumulator, scope), run_of(step), created))

    def _folded(self, node: Call, value: Value) -> Step:
        code, _ = self._implementation(node)
        result = value if type(value) in FAULTS else code(value)
        if type(result) is Failure:
            raise ExpressionError(result.message, node.position)
        return Constant(result)

    def _constant_pattern(self, node: Call, steps: list[Step]) -> bool:
        """True if the call has a constant regular expression, which is compiled now."""
        if node.function not in _PATTERN_FUNCTIONS or len(steps) < 2:
            return False
        step = steps[1]
        if not isinstance(step, Constant) or type(step.value) is not str:
            return False
        try:
            compiled(step.value)
        except PatternError as error:
            raise ExpressionError(str(error), node.position) from error
        except UnsupportedPatternError:  # reported at evaluation
            pass
        return True

    def _implementation(self, node: Call) -> tuple[Any, bool]:
        """The code of a call; and True if upstream evaluates its arguments one after the other until one fails."""
        function = node.function
        if function in OPERATORS or function in SINGLETONS:
            return SINGLETONS[function], False
        declared = self._environment.functions[function]
        if len(node.overloads) == 1 or len(declared) == 1:
            overload = next(o for o in declared if o.id == node.overloads[0])
            return guarded(overload, self._code[overload.id]), function == "format" or len(overload.arguments) > 2
        return dispatched([(o, self._code[o.id]) for o in declared]), True

    def _list(self, node: ListLiteral, scope: Scope) -> Step:
        steps = [self._plan(item, scope) for item in node.items]
        items = [(run_of(step), index in node.optional) for index, step in enumerate(steps)]
        if all(isinstance(step, Constant) for step in steps):
            return Constant(list_run(items, 0)([0]))
        return Code(list_run(items, 10))

    def _map(self, node: MapLiteral, scope: Scope) -> Step:
        steps = [(self._plan(key, scope), self._plan(value, scope), optional) for key, value, optional in node.entries]
        entries = [(run_of(key), run_of(value), optional) for key, value, optional in steps]
        if all(isinstance(step, Constant) for key, value, _ in steps for step in (key, value)):
            return Constant(map_run(entries, 0)([0]))
        return Code(map_run(entries, 30))

    def _message(self, node: MessageLiteral, scope: Scope) -> Step:
        fields = [(name, self._run(value, scope), optional) for name, value, optional in node.fields]
        return Code(message_run(node.name, fields, 40))

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _comprehension(self, node: Comprehension, scope: Scope) -> Step:
        self.loops = True
        iterated = self._run(node.iteration_range, scope)
        if isinstance(node.condition, Literal) and node.condition.value is False:
            return self._binding(node, scope)
        first = self._slot()
        second = self._slot() if node.second_variable else None
        accumulator = self._slot()
        outer = {**scope, node.accumulator: accumulator}
        inner = {**outer, node.variable: first}
        if second is not None:
            inner[node.second_variable] = second
        if isinstance(node.condition, Call):
            # Only exists() and all() may end early; each joins the accumulator with its condition on an element.
            assert isinstance(node.step, Call)
            predicate = self._run(node.step.arguments[1], inner)
            decisive = node.step.function == "_||_"
            return Code(quantifier_run(iterated, predicate, decisive=decisive, slots=(first, second)))
        initial = self._plan(node.initial, scope)
        assert isinstance(initial, Constant)
        step, result = self._run(node.step, inner), self._run(node.result, outer)
        return Code(
            fold_run(iterated, initial=initial.value, step=step, result=result, slots=(accumulator, first, second))
        )

    def _binding(self, node: Comprehension, scope: Scope) -> Step:
        """cel.bind() and macros that expand to it: a loop over nothing, whose accumulator is the variable."""
        slot = self._slot()
        inner = {**scope, node.accumulator: bound_variable_run(slot, self._run(node.initial, scope))}
        self._plan(node.step, inner)  # never run, but upstream fails here for a step that cannot be planned
        result = self._run(node.result, inner)

        def run(frame: Frame) -> Value:
            frame[slot] = BOUND
            return result(frame)

        return Code(run)


def _is_accumulator(node: Expression) -> bool:
    return isinstance(node, Identifier) and node.name == ACCUMULATOR


def _precomputed(value: Value, units: int) -> Run:
    def run(frame: Frame) -> Value:
        charge(frame, units)
        return value

    return run
